"""The files of a run in MLflow: command line, record, requests as a table, logs. Pure; secrets stay out."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from sweeper.records import LaunchRecord, TrialRecord
from sweeper.secrets import secrets_of

ArtifactReader = Callable[[str], bytes]
"""Gives the bytes of a trial's artifact by its name. Raises KeyError when there is none."""

MAX_FILE_BYTES = 4_000_000
MAX_LAUNCHES = 30
"""Of a trial that was launched more often than that, the newest are in its run's files. The baseline of a study of
10,000 trials has a thousand launches; writing all of them again after each one would never end."""

TABLE_NAME = "requests.json"
TABLE_TAG = json.dumps([{"path": TABLE_NAME, "type": "table"}])
_FIRST_COLUMNS = (
    "launch",
    "workload",
    "repeat",
    "prompt_id",
    "prompt_class",
    "num_output_tokens",
    "e2e_latency_ms",
    "ttft_ms",
)
_REQUESTS = re.compile(r"launch-(\d+)-requests(?:-(.+))?\.jsonl")
_OF_LAUNCH = re.compile(r"launch-(\d+)-")


def in_files(trial: TrialRecord) -> TrialRecord:
    """The trial as its run's files show it: of very many launches the newest, with their artifacts."""
    if len(trial.launches) <= MAX_LAUNCHES:
        return trial
    older = {str(launch.launch_number) for launch in trial.launches[:-MAX_LAUNCHES]}
    shown = {n: at for n, at in trial.artifacts.items() if not ((of := _OF_LAUNCH.match(n)) and of[1] in older)}
    return trial.model_copy(update={"launches": trial.launches[-MAX_LAUNCHES:], "artifacts": shown})


def version_of(trial: TrialRecord, artifact: str) -> str:
    """What changes whenever an artifact of a launch may have; empty for one of no launch that is known."""
    of = _OF_LAUNCH.match(artifact)
    found = [launch for launch in trial.launches if of and str(launch.launch_number) == of[1]]
    return f"{found[0].server_id} {found[0].ended_at.isoformat()}" if found else ""


def run_files(trial: TrialRecord, read: ArtifactReader, unchanged: Collection[str] = ()) -> dict[str, bytes]:
    """The files of a trial's run by name. An artifact that `read` does not know is left out.

    `unchanged`: artifacts whose own file is not wanted.

    Requests of all launches and workloads (the first one has no name there) become one table, `requests.json`, in
    the form that MLflow's page shows best (a CSV has no headers there). Everything else is text: made valid UTF-8,
    without the trial's secrets, and of a very long one the end.
    """
    trial = in_files(trial)
    hide = secrets_of([trial]).hide
    texts = {"command.txt": command_lines(trial), "record.json": trial.model_dump_json(indent=2)}
    rows: list[dict[str, Any]] = []
    for name in sorted(trial.artifacts):
        match = _REQUESTS.fullmatch(name)
        if match is None and name in unchanged:
            continue
        try:
            text = read(name)[-MAX_FILE_BYTES:].decode("utf-8", errors="replace")
        except KeyError:
            continue
        if match is not None:
            place = {"launch": int(match[1]), "workload": match[2] or ""}
            rows.extend({**place, **row} for row in _json_lines(text))
        else:
            texts[PurePosixPath(name).name or "unnamed"] = text
    if rows:
        texts[TABLE_NAME] = json.dumps(_table(rows))
    return {name: hide(text).encode() for name, text in texts.items()}


def has_table(trial: TrialRecord) -> bool:
    """Whether `run_files` makes a table of the trial's requests."""
    return any(_REQUESTS.fullmatch(name) for name in trial.artifacts)


def command_lines(trial: TrialRecord) -> str:
    """How each launch was started, ready to be pasted into a shell."""
    return "".join(_command(launch) for launch in trial.launches)


def _command(launch: LaunchRecord) -> str:
    words = [f"{name}={shlex.quote(value)}" for name, value in sorted(launch.canonical.env.items())]
    line = " ".join([*words, shlex.join(launch.argv)]) if launch.argv else "# not started"
    return f"# launch {launch.launch_number} on {launch.host}\n{line}\n"


def _json_lines(text: str) -> Iterator[Mapping[str, Any]]:
    for line in text.splitlines():
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if isinstance(row, dict):
            yield row


def _table(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """Columns that hold anything: the telling ones first, the others in the order in which they come."""
    present = dict.fromkeys(name for row in rows for name, value in row.items() if value not in (None, ""))
    first = [name for name in _FIRST_COLUMNS if name in present]
    columns = [*first, *(name for name in present if name not in first)]
    return {"columns": columns, "data": [[row.get(name) for name in columns] for row in rows]}
