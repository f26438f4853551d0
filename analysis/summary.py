"""The report's numbers for scripts: the verdict as it is kept, and every trial's means."""

from __future__ import annotations

import json

from analysis.reading import Reading
from sweeper.metrics import METRICS
from sweeper.records import TrialRecord


def summary(reading: Reading) -> dict[str, object]:
    """Plain data: metrics have the names that MLflow and the records have. What was not measured is absent."""
    first, last = reading.span or (None, None)
    return {
        "study": reading.name,
        "objective": reading.objective,
        "objective_text": reading.objective_text,
        "verdict": _verdict(reading),
        "settled": reading.settled,
        "began_at": first.isoformat() if first else None,
        "ended_at": last.isoformat() if last else None,
        "wall_clock_s": reading.wall_clock_s,
        "trials": [_trial(trial) for trial in reading.recorded],
        "aside": [
            {"trial": each.launch.trial_number, "launch": each.launch.launch_number} for each in reading.aside
        ],
        "damaged": [damage.text for damage in reading.damages],
        "fingerprint": dict(reading.fingerprint),
    }


def _verdict(reading: Reading) -> dict[str, object]:
    """As it is kept; its kind is None before the sweep is over, unless fresh launches have confirmed it."""
    verdict: dict[str, object] = json.loads(reading.verdict.model_dump_json())
    return verdict if reading.verdict.confirmed or reading.is_over else {**verdict, "kind": None}


def _trial(trial: TrialRecord) -> dict[str, object]:
    means = {name: mean for name in METRICS if (mean := trial.mean(name)) is not None}
    return {
        "trial": trial.number,
        "state": trial.state.value,
        "is_baseline": trial.is_baseline,
        "launches": len(trial.launches),
        "measured": len(trial.measured),
        "flags": dict(trial.canonical.flags),
        "env": dict(trial.canonical.env),
        "metrics": means,
        "failure": trial.failure.kind.value if trial.failure else None,
    }
