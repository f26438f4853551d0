"""The measured requests of a study as a table: one row each, the same columns for every study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd
from pydantic import ValidationError

from analysis.frames import TIME, frame_of
from sweeper.records import LaunchRecord, RequestResult, TrialRecord, launch_artifact_name
from sweeper.storing.storage import StudyStore

REQUEST_COLUMNS: Mapping[str, str] = {
    "trial": "Int64",
    "launch": "Int64",
    "purpose": "string",
    "workload": "string",
    "prompt_id": "string",
    "prompt_class": "string",
    "repeat": "Int64",
    "sent_at": TIME,
    "started_ms": "Float64",
    "e2e_latency_ms": "Float64",
    "ttft_ms": "Float64",
    "tpot_ms": "Float64",
    "itl_p99_ms": "Float64",
    "output_throughput": "Float64",
    "decode_throughput": "Float64",
    "num_prompt_tokens": "Int64",
    "num_output_tokens": "Int64",
    "num_drafted_tokens": "Int64",
    "num_accepted_tokens": "Int64",
    "num_verify_steps": "Int64",
    "server_decode_ms": "Float64",
    "server_e2e_ms": "Float64",
    "server_gap_pct": "Float64",
    "finish_reason": "string",
    "output_sha256": "string",
}


def requests_frame(store: StudyStore, trials: Sequence[TrialRecord]) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """One row per measured request (REQUEST_COLUMNS), and what could not be read, one line each.

    Reads one artifact per workload of each measured launch; missing ones and damaged lines are left out and named.
    `workload` is NA where a launch has not written down what its first workload is called.
    """
    rows: list[Mapping[str, object]] = []
    problems: list[str] = []
    for launch in (launch for trial in trials for launch in trial.measured):
        files = {launch.provenance.get("workload"): "requests.jsonl"}
        for workload, file in (files | {name: f"requests-{name}.jsonl" for name in launch.others}).items():
            where = f"trial {launch.trial_number}, launch {launch.launch_number}"
            try:
                raw = store.artifact(launch.trial_number, launch_artifact_name(launch.launch_number, file))
            except KeyError as error:
                problems.append(f"{where}: {error.args[0]}")
                continue
            requests, damaged = _requests(raw)
            rows.extend({**_request_row(launch, request), "workload": workload} for request in requests)
            if damaged:
                lines = ", ".join(map(str, damaged[:10]))
                problems.append(f"{where}: {len(damaged)} damaged lines in {file} (line {lines})")
    return frame_of(rows, REQUEST_COLUMNS), tuple(problems)


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
    theirs = request.server_e2e_ms
    gap = {"server_gap_pct": 100 * (request.e2e_latency_ms / theirs - 1) if theirs else None}
    return {**request.model_dump(), **gap, **place}
