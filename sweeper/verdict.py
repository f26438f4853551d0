"""The verdict: does any configuration beat the baseline, and can the best ones be told apart?"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from sweeper.metrics import METRICS
from sweeper.naming import difference_text
from sweeper.plan import fresh_since
from sweeper.records import LaunchRecord, Purpose, Record, TrialRecord, TrialState
from sweeper.spec import ServerConfig
from sweeper.stats import Ratio, pairwise_ratios

MAX_RIVALS = 5
"""Without confirmed finalists the best few are compared: an interval widens with every further rival."""

Simplicity = Callable[[ServerConfig], tuple[float, ...]]


class VerdictKind(enum.StrEnum):
    """`tie`: several are better than the baseline but cannot be told apart; the simplest is advised."""

    WINNER = "winner"
    TIE = "tie"
    NO_GAIN = "no gain over the baseline"


class Comparison(Record):
    """One configuration against the baseline. The interval is absent when the spread is unknown."""

    trial_number: int
    name: str
    value: float
    speedup: float
    low: float | None
    high: float | None
    num_launches: int


class Verdict(Record):
    """`confirmed`: drawn from fresh launches of the finalists and the baseline, made after the search.

    `advised` is the trial to run in production: 0, the baseline, when nothing is shown to be better; None
    when not even the baseline was measured. `comparisons` are sorted, fastest first.
    """

    kind: VerdictKind
    confirmed: bool
    advised: int | None
    tied: tuple[int, ...] = ()
    baseline_value: float | None = None
    comparisons: tuple[Comparison, ...] = ()
    text: str


def decide(trials: Sequence[TrialRecord], objective: str, simplicity: Simplicity) -> Verdict:
    """The verdict on `trials` as far as they are measured. The greater the objective, the better."""
    baseline = next((trial for trial in trials if trial.is_baseline and trial.mean(objective)), None)
    if baseline is None:
        text = "No verdict: the baseline has not been measured."
        return Verdict(kind=VerdictKind.NO_GAIN, confirmed=False, advised=None, text=text)
    rivals = [t for t in trials if not t.is_baseline and t.state is TrialState.COMPLETE and t.mean(objective)]
    fresh = _fresh(baseline, rivals, objective)
    samples = fresh or _single_launches(baseline, rivals, objective)
    numbers = list(samples)
    ratios = pairwise_ratios(list(samples.values()))
    by_number = {trial.number: trial for trial in trials}
    comparisons = _comparisons(samples, ratios, by_number)
    winners = [c.trial_number for c in comparisons if c.low is not None and c.low > 1]
    tied: tuple[int, ...] = ()
    kind, advised = VerdictKind.NO_GAIN, 0
    if winners:  # the fastest first
        row = ratios[numbers.index(winners[0])]
        tied = tuple(n for n in winners if not row[numbers.index(n)].above_one)
        kind = VerdictKind.TIE if len(tied) > 1 else VerdictKind.WINNER
        advised = min(tied, key=lambda number: simplicity(by_number[number].canonical))
    verdict = Verdict(
        kind=kind,
        confirmed=bool(fresh),
        advised=advised,
        tied=tied if len(tied) > 1 else (),
        baseline_value=_mean(samples[0]),
        comparisons=comparisons,
        text="",
    )
    return verdict.model_copy(update={"text": _text(verdict, objective, trials)})


def fresh_launches(baseline: TrialRecord, rivals: Sequence[TrialRecord]) -> dict[int, list[LaunchRecord]]:
    """The measured launches that confirm, by trial number: the baseline and every rival that was a finalist."""
    chosen = [trial for trial in rivals if any(launch.purpose is Purpose.CONFIRM for launch in trial.measured)]
    since = fresh_since(chosen) if chosen else None
    return {
        trial.number: [
            launch
            for launch in trial.measured
            if launch.purpose is Purpose.CONFIRM and (since is None or launch.started_at > since)
        ]
        for trial in (baseline, *chosen)
    }


def _fresh(baseline: TrialRecord, rivals: Sequence[TrialRecord], objective: str) -> dict[int, tuple[float, ...]]:
    """The values of the confirming launches by trial number, the baseline's first; empty if too few were made.

    Only launches since the last finalist was found count, so that all of them saw the host in the same state.
    """
    samples = {
        number: tuple(
            value
            for launch in launches
            if (value := launch.metrics.get(objective, 0.0)) > 0  # a ratio to nothing says nothing
        )
        for number, launches in fresh_launches(baseline, rivals).items()
    }
    enough = {number: values for number, values in samples.items() if len(values) >= 2}
    return enough if 0 in enough and len(enough) > 1 else {}


def _single_launches(
    baseline: TrialRecord, rivals: Sequence[TrialRecord], objective: str
) -> dict[int, tuple[float, ...]]:
    """One number each for the baseline and the best few: enough to name them, too little to tell them from noise.

    The passes within a launch are no substitute for launches: they leave out what differs from start to start.
    """
    best = sorted(rivals, key=lambda trial: trial.mean(objective) or 0.0, reverse=True)[:MAX_RIVALS]
    return {trial.number: (trial.mean(objective) or 0.0,) for trial in (baseline, *best)}


def _comparisons(
    samples: Mapping[int, Sequence[float]], ratios: list[list[Ratio]], by_number: Mapping[int, TrialRecord]
) -> tuple[Comparison, ...]:
    rows = [
        Comparison(
            trial_number=number,
            name=difference_text(by_number[number].canonical, by_number[0].canonical),
            value=_mean(values),
            speedup=ratios[index][0].value,
            low=ratios[index][0].low,
            high=ratios[index][0].high,
            num_launches=len(values),
        )
        for index, (number, values) in enumerate(samples.items())
        if number
    ]
    return tuple(sorted(rows, key=lambda row: row.value, reverse=True))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _text(verdict: Verdict, objective: str, trials: Sequence[TrialRecord]) -> str:
    """The verdict in plain words, with its spread and its limits."""
    metric = METRICS[objective]
    base = f"{metric.format(verdict.baseline_value or 0.0)} {metric.unit}"
    if not verdict.comparisons:
        return f"No gain over the baseline: {_nothing_else(trials)} The baseline does {base}."
    chosen = verdict.tied or (verdict.advised,)
    best = next((row for row in verdict.comparisons if row.trial_number in chosen), verdict.comparisons[0])
    measured = f"{metric.format(best.value)} against {base} without speculation ({_interval(best)})"
    if verdict.kind is VerdictKind.WINNER:
        return f"Winner: trial {best.trial_number}, {best.name}. {measured}."
    if verdict.kind is VerdictKind.TIE:
        tied = ", ".join(str(number) for number in verdict.tied)
        advised = next(row for row in verdict.comparisons if row.trial_number == verdict.advised)
        return (
            f"Tie: trials {tied} are faster than the baseline but cannot be told apart. Advised, as the simplest: "
            f"trial {advised.trial_number}, {advised.name} ({_interval(advised)}). The fastest did {measured}."
        )
    if not verdict.confirmed:
        return (
            f"No gain over the baseline has been shown. The best single launch, trial {best.trial_number}, "
            f"{best.name}, did {measured}: not confirmed. budget.confirm_launches=3 launches the best again."
        )
    words = f"No gain over the baseline. The best other configuration, trial {best.trial_number}, did {measured}"
    words += "." if best.high is not None and best.high < 1 else ": not significant."
    return (
        f"{words} More launches may tell: a larger budget.confirm_launches goes on." if best.speedup > 1 else words
    )


def _nothing_else(trials: Sequence[TrialRecord]) -> str:
    """Why there is nothing to compare with: nothing tried yet, or everything failed, and how."""
    kinds = Counter(trial.failure.kind for trial in trials if not trial.is_baseline and trial.failure is not None)
    if not kinds:
        return "nothing else has been measured yet."
    counts = ", ".join(f"{kind} {count} x" for kind, count in kinds.most_common())
    return f"nothing else could be measured ({counts})."


def _interval(row: Comparison) -> str:
    if row.low is None or row.high is None:
        return f"{row.speedup:.3f} x, spread unknown"
    return f"{row.speedup:.3f} x, 95 % interval {row.low:.3f} to {row.high:.3f}"
