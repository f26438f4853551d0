"""The study as tables: one row per trial, per launch, per request. Columns are the same for every study.

Values that were not measured are NA. Columns carry the names (and so the units) of METRICS.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd
from pydantic import ValidationError

from sweeper.metrics import METRICS
from sweeper.naming import difference_text
from sweeper.records import (
    LaunchRecord,
    RequestResult,
    TrialRecord,
    TrialState,
    duration_s,
    launch_artifact_name,
)
from sweeper.spec import ServerConfig
from sweeper.stats import spread_pct
from sweeper.storage import StudyStore

_METRIC_TYPES = {name: "Float64" for name in METRICS if name != "speedup"}
_TIME = "datetime64[us, UTC]"

TRIAL_COLUMNS: Mapping[str, str] = {
    "number": "Int64",
    "name": "string",
    "is_baseline": "boolean",
    "state": "string",
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
`spread_pct`: of the passes within a launch (mean over launches); `launch_spread_pct`: between the launches."""

LAUNCH_COLUMNS: Mapping[str, str] = {
    "trial": "Int64",
    "launch": "Int64",
    "purpose": "string",
    "ok": "boolean",
    "started_at": _TIME,
    "ended_at": _TIME,
    "duration_s": "Float64",
    "value": "Float64",
    "spread_pct": "Float64",
    **_METRIC_TYPES,
    "failure": "string",
    "failure_message": "string",
    "host": "string",
}

REQUEST_COLUMNS: Mapping[str, str] = {
    "trial": "Int64",
    "launch": "Int64",
    "purpose": "string",
    "prompt_id": "string",
    "prompt_class": "string",
    "repeat": "Int64",
    "sent_at": _TIME,
    "e2e_latency_ms": "Float64",
    "ttft_ms": "Float64",
    "num_prompt_tokens": "Int64",
    "num_output_tokens": "Int64",
    "num_drafted_tokens": "Int64",
    "num_accepted_tokens": "Int64",
    "num_verify_steps": "Int64",
    "server_decode_ms": "Float64",
    "finish_reason": "string",
    "output_sha256": "string",
}

_ORDER = (TrialState.COMPLETE, TrialState.INFEASIBLE, TrialState.FAILED, TrialState.RUNNING)


def trials_frame(trials: Sequence[TrialRecord], objective: str) -> pd.DataFrame:
    """One row per trial: TRIAL_COLUMNS, then one column `flag.X` or `env.X` per setting of any trial."""
    base = baseline_config(trials)
    reference = next((trial.mean(objective) for trial in trials if trial.is_baseline), None)
    frame = _frame([_trial_row(trial, objective, base, reference) for trial in trials], TRIAL_COLUMNS)
    return frame.assign(**_settings(trials))


def launches_frame(trials: Sequence[TrialRecord], objective: str) -> pd.DataFrame:
    """One row per launch, in the order of their start: LAUNCH_COLUMNS. Failed launches have their phase times."""
    launches = sorted((launch for t in trials for launch in t.launches), key=lambda launch: launch.started_at)
    return _frame([_launch_row(launch, objective) for launch in launches], LAUNCH_COLUMNS)


def requests_frame(store: StudyStore, trials: Sequence[TrialRecord]) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """One row per measured request (REQUEST_COLUMNS), and what could not be read, one line each.

    Reads one artifact per measured launch; missing ones and damaged lines are left out and named.
    """
    rows: list[Mapping[str, object]] = []
    problems: list[str] = []
    for launch in (launch for trial in trials for launch in trial.measured):
        where = f"trial {launch.trial_number}, launch {launch.launch_number}"
        try:
            raw = store.artifact(launch.trial_number, launch_artifact_name(launch.launch_number, "requests.jsonl"))
        except KeyError as error:
            problems.append(f"{where}: {error.args[0]}")
            continue
        requests, damaged = _requests(raw)
        rows.extend(_request_row(launch, request) for request in requests)
        if damaged:
            lines = ", ".join(map(str, damaged[:10]))
            problems.append(f"{where}: {len(damaged)} damaged lines in requests.jsonl (line {lines})")
    return _frame(rows, REQUEST_COLUMNS), tuple(problems)


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


def _frame(rows: Sequence[Mapping[str, object]], columns: Mapping[str, str]) -> pd.DataFrame:
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
        "failure": launch.failure.kind.value if launch.failure else None,
        "failure_message": launch.failure.message if launch.failure else None,
        "host": launch.host,
    }


def _requests(raw: bytes) -> tuple[list[RequestResult], list[int]]:
    """The readable lines, and the numbers (from 1) of the others."""
    found: list[RequestResult] = []
    damaged: list[int] = []
    for index, line in enumerate(raw.splitlines(), start=1):
        try:
            found.append(RequestResult.model_validate_json(line))
        except ValidationError:
            damaged.append(index)
    return found, damaged


def _request_row(launch: LaunchRecord, request: RequestResult) -> dict[str, object]:
    place = {"trial": launch.trial_number, "launch": launch.launch_number, "purpose": launch.purpose.value}
    return {**request.model_dump(), **place}
