"""Every rule on servers of known truth: told when it is so, silent when it is not, silent when noise hides it."""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence

import pytest

from analysis.diagnose import RULES, Finding, Severity, findings
from sweeper.errors import FailureKind
from sweeper.records import Failure, GpuWindow, TrialRecord
from sweeper.spec import ServerConfig
from tests.diagnose.planted import ENGINE, OBJECTIVE, Night, Server, chain, changed, plain, with_env

CHAINS = [plain(), *(chain(steps) for steps in (1, 2, 3, 5))]
TREES = [*CHAINS, chain(3, 4, 8), chain(3, 4, 16), chain(5, 4, 16)]


def told(trials: Sequence[TrialRecord]) -> dict[str, Finding]:
    return {finding.rule: finding for finding in findings(trials, OBJECTIVE, ENGINE)}


def measured(
    server: Server, configs: Sequence[ServerConfig], noise_pct: float = 0.5, seed: int = 0
) -> list[TrialRecord]:
    return Night(server, noise_pct, launches=3, seed=seed).measure(configs)


def interval(text: str) -> tuple[float, float, float]:
    """Value and bounds of the first interval in a text."""
    found = re.search(r"(-?\+?[\d.]+)(?: ms| %)? \(([-+]?[\d.]+) to ([-+]?[\d.]+)\)", text)
    assert found is not None, text
    value, low, high = (float(part) for part in found.groups())
    return value, low, high


def test_a_step_is_divided_as_planted() -> None:
    server = Server(base_ms=10.0, forward_ms=1.5, token_ms=0.4, overhead_ms=3.0)
    finding = told(measured(server, TREES, noise_pct=0.3))["step_split"]
    parts = {one.what: interval(one.value) for one in finding.evidence}
    best = max(TREES[1:], key=lambda config: (1 + sum(server.shares(config))) / server.step_ms(config))
    steps, tokens = (best.flags[f"speculative_num_{name}"] for name in ("steps", "draft_tokens"))
    assert isinstance(steps, int)
    assert isinstance(tokens, int)
    planted = {"draft": 1.5 * steps, "verify": 10 + 0.4 * (tokens - 1), "overhead": 3.0}
    for name, truth in planted.items():
        _, low, high = parts[name]
        assert low - 0.01 <= truth <= high + 0.01, (name, parts[name], truth)


def test_chains_alone_do_not_tell_drafting_from_verifying() -> None:
    finding = told(measured(Server(forward_ms=1.5, token_ms=0.5), CHAINS))["step_split"]
    assert "cannot be told from what was measured" in finding.title
    assert "chains" in finding.text
    _, low, high = interval(finding.text[finding.text.index("One more step") :].replace(" ms", "", 1))
    assert low <= 2.0 <= high
    assert "tree" in finding.next_step


def test_one_drafting_trial_says_nothing_of_a_step() -> None:
    assert "step_split" not in told(measured(Server(), [plain(), chain(3)]))


def test_break_even_is_where_the_planted_server_equals_the_baseline() -> None:
    server = Server(keeps={"/d/one": 0.5, "/d/two": 0.3}, overhead_ms=8.0)
    found = told(measured(server, [plain(), chain(2), chain(3), chain(3, drafter="/d/two")]))
    finding = found["break_even"]
    assert finding.severity is Severity.LIMIT
    needed = re.search(r"accept_len ([\d.]+) \(([\d.]+) to ([\d.]+)\)", finding.title)
    assert needed is not None
    best = max((chain(2), chain(3)), key=lambda config: (1 + sum(server.shares(config))) / server.step_ms(config))
    truth = server.step_ms(best) / server.base_ms
    assert float(needed[2]) <= truth <= float(needed[3])
    assert len(finding.evidence) == 2
    assert "draft_limit" in found


def test_a_drafter_that_pays_is_no_limit() -> None:
    found = told(measured(Server(keeps={"/d/one": 0.9}), CHAINS))
    assert found["break_even"].severity is Severity.NOTE
    assert "pays" in found["break_even"].next_step
    assert "draft_limit" not in found


def test_a_step_that_no_drafter_can_pay_is_not_blamed_on_the_drafter() -> None:
    found = told(measured(Server(overhead_ms=40.0), [plain(), chain(1), chain(2)]))
    assert "step_limit" in found
    assert "draft_limit" not in found


def test_a_drafter_within_the_noise_is_not_called_the_limit() -> None:
    server = Server(keeps={"/d/one": 0.55}, overhead_ms=4.1)  # as fast as the baseline, to a percent
    found = told(measured(server, [plain(), chain(1)], noise_pct=3.0))
    assert "draft_limit" not in found
    assert "Confirm" in found["break_even"].next_step


GRAPHS = [plain(), *(chain(n, disable_cuda_graph=off) for n in (2, 3) for off in (False, True))]


def test_cuda_graphs_bring_what_was_planted() -> None:
    found = told(measured(Server(slower={"disable_cuda_graph=True": 1.4}), GRAPHS))
    _, low, high = interval(found["cuda_graphs"].title)
    assert low <= 40 <= high
    assert "launch_bound" in found


@pytest.mark.parametrize(("factor", "noise_pct"), [(1.0, 0.5), (1.02, 6.0)])
def test_graphs_that_bring_nothing_or_less_than_noise_are_not_claimed(factor: float, noise_pct: float) -> None:
    found = told(measured(Server(slower={"disable_cuda_graph=True": factor}), GRAPHS, noise_pct))
    assert "no difference" in found["cuda_graphs"].title
    assert found["cuda_graphs"].severity is Severity.NOTE
    assert "launch_bound" not in found


def test_without_a_server_without_graphs_nothing_is_said_of_them() -> None:
    assert "cuda_graphs" not in told(measured(Server(), CHAINS))


def test_what_changed_along_with_graphs_is_named() -> None:
    trials = measured(
        Server(slower={"disable_cuda_graph=True": 1.4}), [plain(), chain(2, disable_cuda_graph=True), chain(3)]
    )
    finding = told(trials)["cuda_graphs"]
    assert "speculative_num_steps (3 against 2)" in finding.title
    assert finding.severity is Severity.NOTE
    assert "launch_bound" not in told(trials)


NCCL = [plain(), *(with_env(chain(n), NCCL_PROTO=proto) for n in (2, 3) for proto in ("LL", "Simple"))]


def test_a_variable_of_nccl_that_brings_much_is_told() -> None:
    found = told(measured(Server(slower={"NCCL_PROTO=Simple": 1.1}), NCCL))
    assert "NCCL_PROTO=LL against Simple" in found["nccl"].title
    _, low, high = interval(found["nccl"].title)
    assert low <= 10 <= high
    assert "communication_bound" in found


@pytest.mark.parametrize(("factor", "noise_pct"), [(1.0, 0.5), (1.03, 6.0)])
def test_a_variable_of_nccl_that_brings_nothing_is_not(factor: float, noise_pct: float) -> None:
    found = told(measured(Server(slower={"NCCL_PROTO=Simple": factor}), NCCL, noise_pct))
    assert "no setting makes a difference" in found["nccl"].title
    assert "communication_bound" not in found


def test_settings_that_never_vary_alone_are_told_by_a_model_and_said_so() -> None:
    configs = [plain()]
    for steps in (2, 3):
        configs += [
            with_env(chain(steps, disable_cuda_graph=True), NCCL_PROTO="Simple"),
            with_env(chain(steps, disable_cuda_graph=False), NCCL_PROTO="Simple") if steps == 2 else chain(steps),
            with_env(chain(steps, attention_backend="fa3"), NCCL_PROTO="LL"),
        ]
    server = Server(slower={"attention_backend=fa3": 1.2, "NCCL_PROTO=Simple": 1.1})
    found = told(measured(server, configs))
    assert "other_settings" not in found or "fa3" not in found["other_settings"].title


def test_steps_that_differ_are_told_and_steps_that_do_not_are_not() -> None:
    deep = told(measured(Server(forward_ms=4.0, falls=0.5), [plain(), chain(2), chain(6)]))["num_steps"]
    assert "6 against 2 steps: -" in deep.title
    same = told(measured(Server(forward_ms=1.0), [plain(), chain(3), chain(4)], noise_pct=4.0))["num_steps"]
    assert "cannot be told apart" in same.title
    assert same.next_step.startswith("Keep the smaller")


def test_draft_tokens_are_compared_where_all_else_is_equal() -> None:
    finding = told(measured(Server(token_ms=0.5), [plain(), chain(3, 4, 8), chain(3, 4, 32)]))["draft_tokens"]
    assert "32 against 8 draft tokens: -" in finding.title


def test_other_settings_that_bring_something_are_told() -> None:
    configs = [plain(), chain(3), chain(3, attention_backend="triton"), chain(3, attention_backend="fa3")]
    found = told(measured(Server(slower={"attention_backend=triton": 1.08}), configs))
    assert "attention_backend=fa3 against triton" in found["other_settings"].title
    calm = told(measured(Server(), configs))
    assert "other_settings" not in calm


def test_the_depth_that_pays_is_found() -> None:
    server = Server(forward_ms=2.0, token_ms=0.5, falls=0.6, keeps={"/d/one": 0.8})
    configs = [plain(), *(chain(steps) for steps in (1, 2, 3, 4, 6))]
    finding = told(measured(server, configs, noise_pct=0.3))["positions"]
    best = max(configs[1:], key=lambda config: (1 + sum(server.shares(config))) / server.step_ms(config))
    assert finding.title.startswith("Beyond draft")
    depth = int(finding.title.split()[2])
    assert abs(depth - int(str(best.flags["speculative_num_steps"]))) <= 1


def test_drafts_that_all_pay_are_not_called_too_deep() -> None:
    server = Server(forward_ms=0.2, token_ms=0.05, falls=1.0, keeps={"/d/one": 0.9})
    finding = told(measured(server, CHAINS))["positions"]
    assert finding.title == "Drafts up to 5 pay"


def test_acceptance_by_position_alone_is_told_without_a_cost() -> None:
    finding = told(measured(Server(), [plain(), chain(3)]))["positions"]
    assert finding.title.startswith("Acceptance by position: 75")
    assert "cannot be told" in finding.text


def test_tokens_that_cost_nothing_mean_memory_bound_and_dear_ones_do_not() -> None:
    assert "memory_bound" in told(measured(Server(token_ms=0.02), TREES, noise_pct=0.2))
    dear = told(measured(Server(token_ms=1.0), TREES, noise_pct=0.2))
    assert "memory_bound" not in dear
    assert "compute_bound" in dear
    noisy = told(measured(Server(token_ms=0.02), TREES, noise_pct=8.0))
    assert not {"memory_bound", "compute_bound"} & noisy.keys()


def test_equals_are_named_with_the_simplest() -> None:
    finding = told(measured(Server(), [plain(), chain(3), chain(3, attention_backend="fa3")], noise_pct=1.0))[
        "equals"
    ]
    assert "these 2: choose the simplest, trial 1" in finding.title
    apart = told(
        measured(
            Server(slower={"attention_backend=fa3": 1.3}), [plain(), chain(3), chain(3, attention_backend="fa3")]
        )
    )
    assert "equals" not in apart


def test_single_launches_are_called_uncertain() -> None:
    once = Night(Server(), launches=1).measure(CHAINS)
    assert told(once)["unknown_noise"].severity is Severity.WARNING
    assert "unknown_noise" not in told(measured(Server(), CHAINS))


def test_drafts_that_are_never_kept_are_noticed() -> None:
    assert "never_kept" in told(measured(Server(keeps={"/d/one": 0.01}), CHAINS))
    assert "never_kept" not in told(measured(Server(keeps={"/d/one": 0.3}), CHAINS))
    trials = measured(Server(), [plain(), chain(3)])
    failure = Failure(kind=FailureKind.SILENT_BYPASS, message="accept_length 1.000")
    bypassed = changed(trials[1], {0: {"failure": failure, "metrics": {}}})
    assert told([trials[0], bypassed])["never_kept"].evidence[0].trials == (1,)


def decaying(trials: Sequence[TrialRecord], pct_per_hour: float, noise_pct: float = 0.0) -> list[TrialRecord]:
    """The trials in which accept_length falls with the hour."""
    found = []
    for trial in trials:
        update: dict[int, dict[str, object]] = {}
        for launch in trial.launches:
            if "accept_length" in launch.metrics:
                hours = (launch.started_at - trials[0].launches[0].started_at).total_seconds() / 3600
                wobble = noise_pct * (-1) ** launch.launch_number
                length = launch.metrics["accept_length"] * (1 - (pct_per_hour * hours + wobble) / 100)
                update[launch.launch_number] = {"metrics": {**launch.metrics, "accept_length": length}}
        found.append(changed(trial, update))
    return found


def test_acceptance_that_decays_is_noticed_and_a_steady_one_is_not() -> None:
    trials = measured(Server(), CHAINS)
    assert "acceptance_decay" in told(decaying(trials, 10.0))
    assert "acceptance_decay" not in told(trials)
    assert "acceptance_decay" not in told(decaying(trials, 1.0, noise_pct=6.0))


def test_cold_first_passes_are_noticed() -> None:
    trials = measured(Server(), CHAINS)

    def passes(first: float) -> list[TrialRecord]:
        return [
            changed(t, {n.launch_number: {"repeat_throughputs": (first, 100.0, 101.0)} for n in t.launches})
            for t in trials
        ]

    assert "cold_passes" in told(passes(90.0))
    assert "cold_passes" not in told(passes(100.2))


def baselines(values: Sequence[float]) -> list[TrialRecord]:
    """A night whose baseline did these values, an hour apart."""
    trials = Night(Server(), launches=len(values)).measure([plain(), chain(3)])
    start = trials[0].launches[0].started_at
    update: dict[int, dict[str, object]] = {
        n: {"metrics": {OBJECTIVE: value}, "started_at": start + datetime.timedelta(hours=n)}
        for n, value in enumerate(values)
    }
    return [changed(trials[0], update), trials[1]]


def test_a_cold_first_launch_is_noticed_and_noise_is_not() -> None:
    assert "cold_first_launch" in told(baselines([80.0, 100.0, 100.3, 99.8, 100.1, 99.7, 100.2]))
    assert "cold_first_launch" not in told(baselines([98.0, 100.0, 103.0, 97.0, 101.0, 99.0, 102.0]))


def test_a_host_that_drifts_is_noticed_and_a_steady_one_is_not() -> None:
    assert "baseline_drift" in told(baselines([100.0, 98.0, 96.1, 94.0, 92.2]))
    assert "baseline_drift" not in told(baselines([100.0, 101.0, 99.5, 100.5, 100.0]))


def test_throttled_launches_are_named() -> None:
    trials = measured(Server(), [plain(), chain(3)])
    hot = GpuWindow(num_samples=10, gpus=(0,), throttled={"sw_thermal_slowdown": 0.4, "sw_power_cap": 0.9})
    finding = told([trials[0], changed(trials[1], {1: {"gpu": hot}})])["throttling"]
    assert finding.evidence[0].trials == (1,)
    assert "power" not in finding.text
    capped = GpuWindow(num_samples=10, gpus=(0,), throttled={"sw_power_cap": 1.0, "hw_slowdown": 0.01})
    assert "throttling" not in told([trials[0], changed(trials[1], {1: {"gpu": capped}})])


def classed(code: Sequence[float], noise: float = 0.0) -> list[TrialRecord]:
    """Drafting trials that gain `code` times on code, and nothing on prose."""
    trials = measured(Server(), [plain(), *(chain(n + 1) for n in range(len(code)))])
    rates = [(50.0, 50.0), *((50.0 * gain, 50.0 * (1 + noise * (-1) ** n)) for n, gain in enumerate(code))]
    return [
        changed(t, {n.launch_number: {"class_throughputs": {"code": c, "prose": p}} for n in t.launches})
        for t, (c, p) in zip(trials, rates, strict=True)
    ]


def test_kinds_of_prompts_that_gain_differently_are_told_apart() -> None:
    finding = told(classed([1.5, 1.6, 1.55]))["prompt_classes"]
    assert "code" in finding.title
    assert "prose" in finding.title
    assert "prompt_classes" not in told(classed([1.01, 0.99, 1.0]))
    assert "prompt_classes" not in told(classed([1.6, 1.0, 0.7], noise=0.2))


def test_nothing_measured_gives_no_finding() -> None:
    assert findings([], OBJECTIVE, ENGINE) == []
    assert findings(Night().measure([plain()])[:1], OBJECTIVE, "unheard of") == []


def test_every_finding_says_what_to_do_next() -> None:
    seen: dict[str, Finding] = {}
    for server in (Server(), Server(keeps={"/d/one": 0.4}), Server(slower={"disable_cuda_graph=True": 1.5})):
        seen |= told(measured(server, [*TREES, chain(3, disable_cuda_graph=True)]))
    assert all(finding.next_step.endswith(".") and finding.text and finding.evidence for finding in seen.values())
    assert len(RULES) == len({rule.__name__ for rule in RULES})


def test_noise_alone_is_seldom_called_an_effect() -> None:
    """Twenty nights without any difference but noise: of all contrasts about one of twenty may look like one."""
    server = Server(forward_ms=0.0, token_ms=0.0, falls=0.0)
    claims = 0
    configs = [
        plain(),
        *(with_env(chain(3, disable_cuda_graph=g), NCCL_PROTO=p) for g in (False, True) for p in ("LL", "S")),
    ]
    for seed in range(20):
        found = told(measured(server, configs, noise_pct=2.0, seed=seed))
        claims += found["cuda_graphs"].severity is Severity.LIMIT
        claims += found["nccl"].severity is Severity.LIMIT
        assert not {"communication_bound", "launch_bound", "other_settings"} & found.keys()
    assert claims <= 5
