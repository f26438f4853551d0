"""Patterns in what is kept of the drafts: nothing, less and less, more of one kind of prompts than of another."""

from __future__ import annotations

import math
import statistics

from analysis.diagnose.context import Context, pct_text, percent
from analysis.diagnose.finding import Evidence, Finding, Severity
from sweeper.deciding.launches import hours_between
from sweeper.errors import FailureKind
from sweeper.records import LaunchRecord, TrialRecord
from sweeper.statistics.least_squares import Noise, around, fit
from sweeper.statistics.stats import exp

NEVER_KEPT = 1.05
"""accept_length below it: `EAGLE` instead of `EAGLE3` gives 1.00 silently, a draft of random weights 1.004."""

MIN_DECAY_PCT = 3.0
"""Acceptance of greedy text does not vary with the hour; over a night less than this is other batching."""

MIN_CLASS_PCT = 10.0
"""Kinds of prompts always differ a little; from here on one configuration may be right for one kind only."""

MIN_TRIALS = 3
"""Below it a mean over trials has no spread worth the name."""

MAX_SHOWN = 12


def never_kept(context: Context) -> Finding | None:
    """Drafting servers of which next to nothing was kept: the wrong algorithm, or a draft of another model."""
    bypassed = [trial for trial in context.trials if _is_bypassed(context, trial)]
    if not bypassed:
        return None
    evidence = tuple(Evidence(f"trial {t.number}", _kept_words(t), (t.number,)) for t in bypassed[:MAX_SHOWN])
    return Finding(
        "never_kept",
        Severity.WARNING,
        f"Drafts are never kept in {len(bypassed)} trial{'s' if len(bypassed) > 1 else ''}",
        "An accept_len of 1 means that each step writes its one token and throws every draft away. No server "
        "says so.",
        evidence,
        "Look at the algorithm (an EAGLE-3 draft needs EAGLE3, not EAGLE) and at whether the draft was made for "
        "this model.",
    )


def _is_bypassed(context: Context, trial: TrialRecord) -> bool:
    if any(launch.failure and launch.failure.kind is FailureKind.SILENT_BYPASS for launch in trial.launches):
        return True
    length = trial.mean("accept_length")
    return context.drafts(trial) and length is not None and length < NEVER_KEPT


def _kept_words(trial: TrialRecord) -> str:
    length = trial.mean("accept_length")
    if length is not None:
        return f"accept_len {length:.3f}"
    return next((n.failure.message for n in trial.launches if n.failure), "silent_bypass")


def acceptance_decay(context: Context) -> Finding | None:
    """Whether accept_length falls with time, each configuration against itself."""
    groups = [found for trial in context.trials if context.drafts(trial) and len(found := _told_length(trial)) > 1]
    launches = [launch for group in groups for launch in group]
    if len(launches) < len(groups) + MIN_TRIALS:
        return None
    first = min(launch.started_at for launch in launches)
    hours = [hours_between(first, launch.started_at) for launch in launches]
    design = [(hour, *(float(n in group) for group in groups)) for n, hour in zip(launches, hours, strict=True)]
    lengths = [math.log(launch.metrics["accept_length"]) for launch in launches]
    line = fit(design, lengths, [1.0] * len(launches), Noise(0.0, 1.0))
    if line is None:
        return None
    change = percent(line.of([1.0, *(0.0 for _ in groups)]).scaled(max(hours)))
    if change.high > -MIN_DECAY_PCT:
        return None
    numbers = tuple(sorted({launch.trial_number for launch in launches}))
    return Finding(
        "acceptance_decay",
        Severity.WARNING,
        f"Acceptance decays through the night: {pct_text(change)} over {max(hours):.1f} h",
        "The same configurations keep fewer of their drafts the later they are launched. Neither the texts nor "
        "the "
        "drafter change, so the server or its host does.",
        (Evidence("accept_len, late against early", pct_text(change), numbers),),
        "Compare the texts of the first and the last launch; restart the host's driver; compare only launches "
        "of one "
        "hour.",
    )


def _told_length(trial: TrialRecord) -> list[LaunchRecord]:
    """The launches that told their accept_length."""
    return [launch for launch in trial.measured if launch.metrics.get("accept_length")]


def prompt_classes(context: Context) -> Finding | None:
    """Whether speculation brings one kind of prompts much more than another, over all drafting trials."""
    baseline = next((trial for trial in context.trials if trial.is_baseline), None)
    base = _classes(baseline) if baseline else {}
    gains = {p.number: _gains(_classes(p.trial), base) for p in context.drafting}
    kinds = sorted({kind for gain in gains.values() for kind in gain})
    pairs = [(a, b) for a in kinds for b in kinds if a < b]
    best: tuple[float, str, str, tuple[float, float, float]] | None = None
    for a, b in pairs:
        gaps = [gain[a] - gain[b] for gain in gains.values() if a in gain and b in gain]
        if len(gaps) < MIN_TRIALS:
            continue
        variance = max(statistics.variance(gaps), 1e-12) / len(gaps)
        found = around(statistics.fmean(gaps), variance, len(gaps) - 1, len(pairs))
        first, second, low, high = (
            (a, b, found.low, found.high) if found.value > 0 else (b, a, -found.high, -found.low)
        )
        if low > math.log1p(MIN_CLASS_PCT / 100) and (best is None or low > best[0]):
            best = (low, first, second, (abs(found.value), low, high))
    if best is None:
        return None
    _, first, second, (value, low, high) = best
    told = f"{100 * (exp(value) - 1):.0f} % ({100 * (exp(low) - 1):.0f} to {100 * (exp(high) - 1):.0f})"
    return Finding(
        "prompt_classes",
        Severity.NOTE,
        f"Speculation brings {first} {told} more than {second}",
        "The gain over the baseline was taken for each kind of prompt by itself, in every drafting trial. One "
        "number for all "
        "of them hides that.",
        (Evidence(f"gain of {first} over that of {second}", told, tuple(sorted(gains))[:MAX_SHOWN]),),
        "Weigh the kinds as you serve them, or sweep each for itself (more_workloads, objective).",
    )


def _classes(trial: TrialRecord) -> dict[str, float]:
    """Kind of prompt to the mean logarithm of its throughput over the launches."""
    logs: dict[str, list[float]] = {}
    for launch in trial.measured:
        for kind, value in launch.class_throughputs.items():
            if value > 0:
                logs.setdefault(kind, []).append(math.log(value))
    return {kind: statistics.fmean(values) for kind, values in logs.items()}


def _gains(ours: dict[str, float], theirs: dict[str, float]) -> dict[str, float]:
    return {kind: value - theirs[kind] for kind, value in ours.items() if kind in theirs}
