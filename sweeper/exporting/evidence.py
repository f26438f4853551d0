"""What a handed-over configuration rests on, in sentences: the verdict, the numbers, where they come from."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import version

from sweeper.deciding.verdict import Comparison, Verdict, VerdictKind
from sweeper.metrics import METRICS
from sweeper.records import LaunchRecord, TrialRecord

_FACTS = (
    "engine_version",
    "commit",
    "model_fingerprint",
    "gpus",
    "driver",
    "cuda",
    "nccl",
    "gpu_policy",
    "prompts",
)


def evidence(study: str, trial: TrialRecord, launch: LaunchRecord, verdict: Verdict, metric: str) -> Iterator[str]:
    """Lines; the first names study and trial."""
    row = next((found for found in verdict.comparisons if found.trial_number == trial.number), None)
    name = "the baseline, without speculative decoding" if trial.is_baseline else row.name if row else ""
    yield f"Study {study}, trial {trial.number}" + (f": {name}" if name else "")
    yield _advice(trial, verdict)
    yield _numbers(trial, verdict, row, metric)
    if launch.lossy and not trial.is_baseline:
        yield f"May write other text than the baseline: {'; '.join(launch.lossy)}"
    if launch.doubts:
        yield f"Reasons to look twice: {'; '.join(launch.doubts)}"
    workload = launch.provenance.get("workload", "")
    yield f"Measured {launch.started_at:%Y-%m-%d %H:%M} UTC on {launch.host}" + f", workload {workload}" * bool(
        workload
    )
    for fact in _FACTS:
        if value := launch.provenance.get(fact):
            yield f"{fact}: {value}"
    yield f"Written by specsweep {version('specsweep')}. The numbers hold for what is named here."


def _advice(trial: TrialRecord, verdict: Verdict) -> str:
    """Whether the verdict says to run it, and how sure that is."""
    advised = verdict.advised == trial.number
    if not advised:
        instead = "the baseline" if verdict.advised == 0 else f"trial {verdict.advised}"
        said = f"the verdict advises {instead}" if verdict.advised is not None else "there is no verdict yet"
        return f"NOT what is advised, but asked for: {said}."
    if not verdict.confirmed:
        why = "there are not two fresh launches of a finalist and of the baseline"
        return f"UNCONFIRMED: {why}, so nothing is shown to beat the baseline, which is therefore advised."
    if verdict.kind is VerdictKind.NO_GAIN:
        return "Advised: the baseline. No gain over it was shown for any configuration."
    if verdict.kind is VerdictKind.TIE:
        return f"Advised: the simplest of {len(verdict.tied)} that are better than the baseline and equally fast."
    return "Advised: the winner, better than the baseline in launches of its own."


def _numbers(trial: TrialRecord, verdict: Verdict, row: Comparison | None, metric: str) -> str:
    """Its value, against the baseline's, with the interval and how many launches stand behind each."""
    value = row.value if row else verdict.baseline_value if trial.is_baseline else trial.mean(metric)
    if value is None:
        return f"{metric}: not measured"
    text = f"{metric}: {_shown(metric, value)}"
    if trial.is_baseline:
        return f"{text} ({_launches(verdict.num_baseline_launches or len(trial.measured))})"
    base = verdict.baseline_value
    if base:
        text += f" against {_shown(metric, base)} of the baseline: {value / base:.3f} times"
    if row and row.low is not None and row.high is not None:
        text += f", 90 % interval {row.low:.3f} to {row.high:.3f}"
    count = row.num_launches if row else len(trial.measured)
    confirmed = verdict.confirmed and row is not None
    suffix = "" if confirmed else "; not confirmed: the best of many single measurements flatters itself"
    return f"{text} ({_launches(count)}{suffix})"


def _shown(metric: str, value: float) -> str:
    known = METRICS[metric]
    return f"{known.format(value)} {known.unit}".rstrip()


def _launches(count: int) -> str:
    return f"{count} launch" if count == 1 else f"{count} launches"
