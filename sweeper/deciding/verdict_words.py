"""The verdict in plain words, with its interval and its limits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from sweeper.deciding.comparable import is_imported
from sweeper.deciding.verdict_record import Comparison, Excluded, Verdict, VerdictKind
from sweeper.metrics import METRICS
from sweeper.night_spec import MAX_FINALISTS
from sweeper.records import TrialRecord

MAX_EXCLUDED = 3
"""So many excluded configurations are named."""


MORE_LAUNCHES = " A larger budget.confirm_launches goes on: a second look, for which nothing corrects."
MORE_RESULTS = " Importing more repeats of both narrows that down."

FRESH_LAUNCHES = "Only fresh launches confirm: budget.confirm_launches (5, say) of each of the best, at the end."
REPEATS = (
    f"Imported results confirm something only where every configuration, at most {MAX_FINALISTS} beside the "
    "baseline, was measured twice or more: import repeats. Or sweep them yourself, with study.warm_start naming "
    "this study."
)


def words(verdict: Verdict, objective: str, trials: Sequence[TrialRecord]) -> str:
    """The whole verdict as sentences, the most important first. The baseline has been measured."""
    imported = any(is_imported(launch) for trial in trials for launch in trial.launches)
    rows = {row.trial_number: row for row in verdict.comparisons}
    if verdict.kind is VerdictKind.WINNER:
        sentences = [_winner(verdict, rows[verdict.advised or 0], objective)]
    elif verdict.kind is VerdictKind.TIE:
        sentences = [_tie(verdict, rows, objective)]
    elif not verdict.comparisons:
        base = METRICS[objective].format(verdict.baseline_value or 0.0)
        unit = METRICS[objective].unit
        why = _nothing_else(verdict, trials)
        sentences = [f"No gain over the baseline: {why} The baseline does {f'{base} {unit}'.strip()}."]
    else:
        sentences = [_no_gain(verdict, verdict.comparisons[0], objective, imported=imported)]
    if verdict.confirmed and verdict.drift.significant:
        sentences.append(verdict.drift.text)
    sentences += [verdict.scale] if verdict.scale else []
    sentences += [_sentence(text) for text in verdict.differences]
    sentences += [_excluded(row, objective) for row in verdict.excluded[:MAX_EXCLUDED]]
    return " ".join(sentences)


def _winner(verdict: Verdict, row: Comparison, objective: str) -> str:
    return (
        f"Winner: trial {row.trial_number}, {row.name}. {_measured(verdict, row, objective)}: {_gain(row)}. "
        f"{_launches(verdict, row)}"
    )


def _tie(verdict: Verdict, rows: dict[int, Comparison], objective: str) -> str:
    tied = ", ".join(str(number) for number in verdict.tied)
    advised, fastest = rows[verdict.advised or 0], rows[verdict.tied[0]]
    text = (
        f"Tie: trials {tied} are faster than the baseline but cannot be told apart. Advised, as the simplest: "
        f"trial {advised.trial_number}, {advised.name}. {_measured(verdict, advised, objective)}: "
        f"{_gain(advised)}. "
    )
    if fastest is not advised:
        text += f"The fastest, trial {fastest.trial_number}, did {_measured(verdict, fastest, objective)}. "
    return text + _launches(verdict, advised)


def _no_gain(verdict: Verdict, row: Comparison, objective: str, *, imported: bool) -> str:
    measured = _measured(verdict, row, objective)
    if row.estimated:
        return (
            "No gain over the baseline: every other configuration was given up early as too slow. The best of "
            f"them, trial {row.trial_number}, {row.name}, would have done about {measured} ({row.speedup:.2f} x)."
        )
    if not verdict.confirmed:
        return (
            f"No gain over the baseline has been shown. The best other configuration, trial {row.trial_number}, "
            f"{row.name}, did {_measured(verdict, row, objective, _in_launches(row.num_launches))} "
            f"({row.speedup:.3f} x, {_spread(verdict)}): not confirmed. {REPEATS if imported else FRESH_LAUNCHES}"
        )
    found = (
        f"The best other configuration, trial {row.trial_number}, {row.name}, did {measured} ({_interval(row)})"
    )
    if row.high is not None and row.high < 1:
        return f"No gain over the baseline. {found}: slower. {_launches(verdict, row)}"
    most = f", at most {100 * (row.high - 1):.1f} % faster" if row.high is not None else ""
    more = "" if row.speedup <= 1 else MORE_RESULTS if imported else MORE_LAUNCHES
    return f"No gain over the baseline was shown. {found}: not significant{most}. {_launches(verdict, row)}{more}"


def _measured(verdict: Verdict, row: Comparison, objective: str, how: str = "") -> str:
    """`88.8 against 50.0 tok/s of the baseline`; with `how` it was measured behind the first number."""
    metric = METRICS[objective]
    base = f"{metric.format(verdict.baseline_value or 0.0)} {metric.unit}".strip()
    return f"{metric.format(row.value)}{f' {how}' if how else ''} against {base} of the baseline"


def _in_launches(count: int) -> str:
    return "in its single launch" if count == 1 else f"in the mean of {count} launches"


def _spread(verdict: Verdict) -> str:
    """What is known of the noise where no interval is: from whatever was launched more than once."""
    seen = verdict.noise.launches
    return "spread unknown" if seen is None else f"starts of one configuration differ by {seen.pct:.1f} %"


def _gain(row: Comparison) -> str:
    """`1.030 x, at least 1.2 % faster (95 % confidence; 90 % interval 1.012 to 1.048)`."""
    if row.low is None or row.high is None:
        return f"{row.speedup:.3f} x"
    least = f"at least {100 * (row.low - 1):.1f} % faster"
    return f"{row.speedup:.3f} x, {least} (95 % confidence; 90 % interval {row.low:.3f} to {row.high:.3f})"


def _interval(row: Comparison) -> str:
    if row.low is None or row.high is None:
        return f"{row.speedup:.3f} x, spread unknown"
    return f"{row.speedup:.3f} x, 90 % interval {row.low:.3f} to {row.high:.3f}"


def _launches(verdict: Verdict, row: Comparison) -> str:
    """What it is drawn from, as a sentence."""
    theirs, base = row.num_launches, verdict.num_baseline_launches
    fresh = (
        f"{theirs} fresh launches each" if theirs == base else f"{theirs} fresh launches, {base} of the baseline"
    )
    chosen = {0: "", 1: "; the one by which it was chosen counts a little"}.get(
        row.num_choosing, f"; the {row.num_choosing} by which it was chosen count a little"
    )
    return f"From {fresh}{chosen}."


def _excluded(row: Excluded, objective: str) -> str:
    metric = METRICS[objective]
    value = f"{'≈ ' if row.estimated else ''}{metric.format(row.value)} {metric.unit}".strip()
    how = f"{'estimated ' if row.estimated else ''}{_in_launches(row.num_launches)}"
    reasons = "; ".join(text.rstrip(".") for text in row.reasons)
    rank = "faster" if row.faster else "as fast"
    return (
        f"Trial {row.trial_number}, {row.name}, is {rank} ({value} {how}), but it may write other text than the "
        f"baseline: {reasons}. verdict.allow_lossy=true lets it win."
    )


def _sentence(text: str) -> str:
    return text if text.endswith(".") else f"{text}."


def _nothing_else(verdict: Verdict, trials: Sequence[TrialRecord]) -> str:
    """Why there is nothing to compare with: nothing tried yet, or everything failed, and how."""
    if verdict.excluded:
        return "nothing else that writes the same text has been measured."
    kinds = Counter(trial.failure.kind for trial in trials if not trial.is_baseline and trial.failure is not None)
    if not kinds:
        return "nothing else has been measured yet."
    counts = ", ".join(f"{kind} {count} x" for kind, count in kinds.most_common())
    return f"nothing else could be measured ({counts})."
