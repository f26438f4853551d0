"""Where a step's time goes, and how deep drafts pay, on servers of known truth."""

from __future__ import annotations

from tests.diagnose.asking import CHAINS, TREES, interval, measured, told
from tests.diagnose.planted import Night, Server, chain, plain


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


def test_a_depth_that_noise_hides_is_not_claimed() -> None:
    server = Server(forward_ms=2.0, token_ms=0.5, falls=0.8, keeps={"/d/one": 0.8})
    configs = [plain(), *(chain(steps) for steps in (1, 2, 3))]
    calm = told(Night(server, 0.2, 5).measure(configs))["positions"].title
    assert calm == "Beyond draft 2 each further step costs more than it brings"
    titles = [told(Night(server, 8.0, 3, seed).measure(configs))["positions"].title for seed in range(8)]
    claimed = [title for title in titles if title.startswith("Beyond")]
    assert len(claimed) <= 4
    assert all(title.startswith("Beyond draft 2 ") for title in claimed), "what is claimed is as planted"
