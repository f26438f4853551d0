"""Suspicious patterns, planted and not."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

from sweeper.errors import FailureKind
from sweeper.records import Failure, GpuWindow, TrialRecord
from tests.diagnose.asking import CHAINS, measured, told
from tests.diagnose.planted import OBJECTIVE, Night, Server, chain, changed, plain


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
    assert "acceptance_decay" not in told(decaying(trials, 8.0, noise_pct=12.0)), "a fall within the noise"


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
    assert "prompt_classes" not in told(classed([1.8, 1.0, 1.4])), "a gain within what trials differ by"
