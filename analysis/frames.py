"""The study as tables: one row per trial, per launch (request_frames.py: per request).

The columns are the same for every study; they carry the names (and so the units) of METRICS. Values that were not
measured are NA.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from sweeper.metrics import METRICS
from sweeper.naming import difference_text
from sweeper.records import (
    LaunchRecord,
    TrialRecord,
    TrialState,
    duration_s,
)
from sweeper.spec import ServerConfig
from sweeper.statistics.stats import spread_pct

_METRIC_TYPES = {name: "Float64" for name in METRICS if name != "speedup"}
TIME = "datetime64[us, UTC]"

TRIAL_COLUMNS: Mapping[str, str] = {
    "number": "Int64",
    "name": "string",
    "is_baseline": "boolean",
    "state": "string",
    "is_estimated": "boolean",
    "is_lossy": "boolean",
    "value": "Float64",
    "speedup": "Float64",
    "spread_pct": "Float64",
    "launch_spread_pct": "Float64",
    "num_launches": "Int64",
    **_METRIC_TYPES,
    "failure": "string",
    "failure_message": "string",
}
"""Name to dtype. `value`: the objective's mean over the measured launches; `speedup`: over the baseline's value.
`is_estimated`: a launch of it ended early. `is_lossy`: it may write other text than the baseline.
`spread_pct`: of the passes within a launch (mean over launches); `launch_spread_pct`: between the launches."""

LAUNCH_COLUMNS: Mapping[str, str] = {
    "trial": "Int64",
    "launch": "Int64",
    "purpose": "string",
    "ok": "boolean",
    "started_at": TIME,
    "ended_at": TIME,
    "duration_s": "Float64",
    "value": "Float64",
    "spread_pct": "Float64",
    **_METRIC_TYPES,
    "estimated": "string",
    "doubts": "string",
    "lossy": "string",
    "failure": "string",
    "failure_message": "string",
    "host": "string",
}
"""`estimated`: why `value` is an estimate. `doubts`, `lossy`: one per line. NA where there is nothing to say."""

_ORDER = (TrialState.COMPLETE, TrialState.INFEASIBLE, TrialState.FAILED, TrialState.RUNNING)


def trials_frame(trials: Sequence[TrialRecord], objective: str) -> pd.DataFrame:
    """One row per trial: TRIAL_COLUMNS, then one column `flag.X` or `env.X` per setting of any trial."""
    base = baseline_config(trials)
    reference = next((trial.mean(objective) for trial in trials if trial.is_baseline), None)
    frame = frame_of([_trial_row(trial, objective, base, reference) for trial in trials], TRIAL_COLUMNS)
    return frame.assign(**_settings(trials))


def launches_frame(trials: Sequence[TrialRecord], objective: str) -> pd.DataFrame:
    """One row per launch, in the order of their start: LAUNCH_COLUMNS. Failed launches have their phase times.

    Behind them, for each further workload, its metrics, `estimated` and `doubts` as `WORKLOAD.NAME`.
    """
    launches = sorted((launch for t in trials for launch in t.launches), key=lambda launch: launch.started_at)
    frame = frame_of([_launch_row(launch, objective) for launch in launches], LAUNCH_COLUMNS)
    return frame.assign(**_further(launches))


def ranking(trials: Sequence[TrialRecord], objective: str) -> pd.DataFrame:
    """`trials_frame` with a first column `rank`: measured trials best first, then those without a score.

    The baseline is ranked like any other (`is_baseline` marks it). Without a score, `rank` is NA; of those,
    infeasible trials come first, then failed ones, then running ones.
    """
    scores = [trial.mean(objective) if trial.state is TrialState.COMPLETE else None for trial in trials]

    def place(index: int) -> tuple[bool, float, int, int]:
        score, trial = scores[index], trials[index]
        return score is None, -(score or 0.0), _ORDER.index(trial.state), trial.number

    order = sorted(range(len(trials)), key=place)
    frame = trials_frame(trials, objective).iloc[order].reset_index(drop=True)
    ranks = [rank if scores[index] is not None else None for rank, index in enumerate(order, start=1)]
    frame.insert(0, "rank", pd.Series(ranks, dtype="Int64"))
    return frame


def baseline_config(trials: Sequence[TrialRecord]) -> ServerConfig:
    """The baseline's canonical configuration, against which names are made; an empty one before there is any."""
    return next((trial.canonical for trial in trials if trial.is_baseline), ServerConfig())


def trial_name(trial: TrialRecord, base: ServerConfig) -> str | None:
    """What distinguishes a trial from `base`; None while its configuration has not been settled."""
    return difference_text(trial.canonical, base) if trial.key else None


def is_estimated(trial: TrialRecord) -> bool:
    """Whether a measured launch of the trial ended early, so that its value is an estimate."""
    return any(launch.estimated for launch in trial.measured)


def frame_of(rows: Sequence[Mapping[str, object]], columns: Mapping[str, str]) -> pd.DataFrame:
    """The rows under the columns (name to dtype); what a row lacks is NA."""
    return pd.DataFrame({name: pd.Series([r.get(name) for r in rows], dtype=t) for name, t in columns.items()})


def _settings(trials: Sequence[TrialRecord]) -> dict[str, pd.Series]:
    """A column per flag and environment variable, in the order in which trials introduce them."""
    rows = [
        {
            **{f"flag.{name}": value for name, value in trial.canonical.flags.items()},
            **{f"env.{name}": value for name, value in trial.canonical.env.items()},
        }
        for trial in trials
    ]
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: pd.Series([row.get(name, pd.NA) for row in rows], dtype=object) for name in names}


def _trial_row(
    trial: TrialRecord, objective: str, base: ServerConfig, reference: float | None
) -> dict[str, object]:
    value = trial.mean(objective)
    spreads = [s for launch in trial.measured if (s := spread_pct(launch.repeat_throughputs)) is not None]
    values = [launch.metrics[objective] for launch in trial.measured if objective in launch.metrics]
    failure = trial.failure
    return {
        "number": trial.number,
        "name": trial_name(trial, base),
        "is_baseline": trial.is_baseline,
        "state": trial.state.value,
        "is_estimated": is_estimated(trial),
        "is_lossy": any(launch.lossy for launch in trial.launches),
        "value": value,
        "speedup": value / reference if value is not None and reference else None,
        "spread_pct": sum(spreads) / len(spreads) if spreads else None,
        "launch_spread_pct": spread_pct(values),
        "num_launches": len(trial.measured),
        **{name: trial.mean(name) for name in _METRIC_TYPES},
        "failure": failure.kind.value if failure else None,
        "failure_message": failure.message if failure else None,
    }


def _launch_row(launch: LaunchRecord, objective: str) -> dict[str, object]:
    phases: dict[str, float] = {}
    for phase in launch.phases:
        phases[f"{phase.name}_s"] = phases.get(f"{phase.name}_s", 0.0) + phase.duration_s
    return {
        **launch.metrics,
        **phases,
        "trial": launch.trial_number,
        "launch": launch.launch_number,
        "purpose": launch.purpose.value,
        "ok": launch.ok,
        "started_at": launch.started_at,
        "ended_at": launch.ended_at,
        "duration_s": duration_s(launch.started_at, launch.ended_at),
        "value": launch.metrics.get(objective) if launch.ok else None,
        "spread_pct": spread_pct(launch.repeat_throughputs),
        "estimated": launch.estimated or None,
        "doubts": "\n".join(launch.doubts) or None,
        "lossy": "\n".join(launch.lossy) or None,
        "failure": launch.failure.kind.value if launch.failure else None,
        "failure_message": launch.failure.message if launch.failure else None,
        "host": launch.host,
    }


def _further(launches: Sequence[LaunchRecord]) -> dict[str, pd.Series]:
    """The columns of the further workloads, in the order in which launches introduce these."""
    columns: dict[str, pd.Series] = {}
    for name in dict.fromkeys(name for launch in launches for name in launch.others):
        results = [launch.others.get(name) for launch in launches]
        for metric in METRICS:
            values = [result.metrics.get(metric) if result else None for result in results]
            if any(value is not None for value in values):
                columns[f"{name}.{metric}"] = pd.Series(values, dtype="Float64")
        texts = {
            "estimated": [result.estimated or None if result else None for result in results],
            "doubts": ["\n".join(result.doubts) or None if result else None for result in results],
        }
        columns |= {f"{name}.{word}": pd.Series(found, dtype="string") for word, found in texts.items()}
    return columns
