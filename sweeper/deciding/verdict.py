"""The verdict: does any configuration beat the baseline, and can the best ones be told apart?"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sweeper.deciding.drift import drift_of
from sweeper.deciding.fresh import Confirmed, before_confirming, compare, was_finalist
from sweeper.deciding.hosts import on_scale_of, scale_text
from sweeper.deciding.lossless import STRICT, Gate
from sweeper.deciding.noise import noise_of
from sweeper.deciding.verdict_record import Comparison as Comparison
from sweeper.deciding.verdict_record import Excluded as Excluded
from sweeper.deciding.verdict_record import Verdict as Verdict
from sweeper.deciding.verdict_record import VerdictKind as VerdictKind
from sweeper.deciding.verdict_words import words
from sweeper.naming import difference_text
from sweeper.records import TrialRecord, TrialState
from sweeper.spec import ServerConfig
from sweeper.statistics.stats import CONFIDENCE

MAX_RIVALS = 5
"""Without confirmed finalists so many of the best are shown."""

Simplicity = Callable[[ServerConfig], tuple[float, ...]]


def decide(
    trials: Sequence[TrialRecord], objective: str, simplicity: Simplicity, gate: Gate = STRICT, host: str = ""
) -> Verdict:
    """The verdict on `trials` as far as they are measured. The greater the objective, the better.

    `host`: on whose scale the launches of several hosts are compared.
    """
    scale, trials = scale_text(trials, objective, host), on_scale_of(trials, objective, host)
    baseline = next((trial for trial in trials if trial.is_baseline and trial.mean(objective)), None)
    if baseline is None:
        text = "No verdict: the baseline has not been measured."
        return Verdict(kind=VerdictKind.NO_GAIN, confirmed=False, advised=None, text=text)
    measured = [t for t in trials if not t.is_baseline and t.state is TrialState.COMPLETE and t.mean(objective)]
    admits = gate.admits(trials)
    rivals = [trial for trial in measured if admits(trial)]
    finalists = [trial for trial in rivals if was_finalist(trial)]
    so_far = compare(baseline, finalists, objective, before_confirming(trials, objective))
    verdict = (
        _from_fresh(so_far, trials, simplicity) if so_far else _from_single_launches(baseline, rivals, objective)
    )
    drift = drift_of(baseline.launches, objective)
    barred = [trial for trial in measured if not admits(trial)]
    verdict = verdict.model_copy(
        update={"drift": drift, "noise": noise_of(trials, objective, drift), "scale": scale}
    )
    known = {
        "excluded": _excluded(verdict, barred, baseline, (objective, gate)),
        "differences": _differences(verdict, trials, gate),
    }
    verdict = verdict.model_copy(update=known)
    return verdict.model_copy(update={"text": words(verdict, objective, trials)})


def _from_fresh(so_far: Confirmed, trials: Sequence[TrialRecord], simplicity: Simplicity) -> Verdict:
    """Winners are those whose bound lies above 1; of those as fast as the fastest the simplest is advised."""
    by_number = {trial.number: trial for trial in trials}
    order = so_far.fastest_first
    winners = [number for number in order if so_far.ratios[number].above_one]
    tied: tuple[int, ...] = ()
    kind, advised = VerdictKind.NO_GAIN, 0
    if winners:
        near = so_far.as_fast_as(winners[0], 1 - CONFIDENCE)
        tied = tuple(number for number in winners if number in near)
        kind = VerdictKind.TIE if len(tied) > 1 else VerdictKind.WINNER
        advised = min(tied, key=lambda number: simplicity(by_number[number].canonical))
    return Verdict(
        kind=kind,
        confirmed=True,
        advised=advised,
        tied=tied if len(tied) > 1 else (),
        baseline_value=so_far.baseline_value,
        comparisons=tuple(_confirmed_row(so_far, by_number[number], by_number[0]) for number in order),
        num_baseline_launches=len(so_far.fresh[0]),
        text="",
    )


def _confirmed_row(so_far: Confirmed, trial: TrialRecord, baseline: TrialRecord) -> Comparison:
    ratio, values = so_far.ratios[trial.number], so_far.fresh[trial.number]
    return Comparison(
        trial_number=trial.number,
        name=difference_text(trial.canonical, baseline.canonical),
        value=so_far.baseline_value * ratio.value,
        speedup=ratio.value,
        low=ratio.low,
        high=ratio.high,
        p=ratio.p,
        num_launches=len(values),
        num_choosing=so_far.num_choosing[trial.number],
    )


def _from_single_launches(baseline: TrialRecord, rivals: Sequence[TrialRecord], objective: str) -> Verdict:
    """The best few: enough to name them, too little to tell them from noise.

    The passes within a launch are no substitute for launches: they leave out what differs from start to start.
    """
    base = baseline.mean(objective) or 0.0
    best = sorted(rivals, key=lambda trial: -(trial.mean(objective) or 0.0))[:MAX_RIVALS]
    rows = [
        Comparison(
            trial_number=trial.number,
            name=difference_text(trial.canonical, baseline.canonical),
            value=value,
            speedup=value / base,
            low=None,
            high=None,
            num_launches=len(trial.measured),
            estimated=all(launch.estimated for launch in trial.measured),
        )
        for trial in best
        if (value := trial.mean(objective))
    ]
    return Verdict(
        kind=VerdictKind.NO_GAIN,
        confirmed=False,
        advised=0,
        baseline_value=base,
        comparisons=tuple(rows),
        num_baseline_launches=len(baseline.measured),
        text="",
    )


def _excluded(
    verdict: Verdict, barred: Sequence[TrialRecord], baseline: TrialRecord, by: tuple[str, Gate]
) -> tuple[Excluded, ...]:
    """Of the `barred` trials those that did more than what is advised, fastest first. The noise is known."""
    objective, gate = by
    advised = next((row.value for row in verdict.comparisons if row.trial_number == verdict.advised), None)
    bar = advised or verdict.baseline_value or 0.0
    sure = bar * (1 + verdict.noise.expected_launch.pct / 100)
    found = [
        Excluded(
            trial_number=trial.number,
            name=difference_text(trial.canonical, baseline.canonical),
            value=value,
            reasons=gate.objections(trial, baseline),
            num_launches=len(trial.measured),
            faster=value > sure,
            estimated=any(launch.estimated for launch in trial.measured),
        )
        for trial in barred
        if (value := trial.mean(objective) or 0.0) > bar
    ]
    return tuple(sorted(found, key=lambda row: -row.value))


def _differences(verdict: Verdict, trials: Sequence[TrialRecord], gate: Gate) -> tuple[str, ...]:
    """How the advised configuration's outputs, and those of its equals, differ from the baseline's."""
    by_number = {trial.number: trial for trial in trials}
    numbers = verdict.tied or ((verdict.advised,) if verdict.advised else ())
    remarks = {number: gate.remark(by_number[number], by_number[0]) for number in numbers}
    return tuple(f"Trial {number}: {remark}" for number, remark in remarks.items() if remark)
