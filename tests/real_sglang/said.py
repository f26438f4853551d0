"""What two captures of a server are compared by: names and their order, never values that a clock makes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

MILESTONES = (
    "Init parallel begin",
    "Init parallel ends",
    "Load weight begin",
    "Load weight end",
    "KV Cache is allocated",
    "Memory pool end",
    "max_total_num_tokens=",
    "Engine startup timings",
    "The server is fired up and ready to roll!",
    "Prefill batch",
    "Decode batch",
    "Cache flushed successfully",
    "SIGTERM received",
    "Shutting down",
)
METRIC = re.compile(r"^(sglang:\w+)(?:\{([^}]*)\})? ", re.MULTILINE)
LABEL = re.compile(r'(\w+)="')


def milestones(folder: Path) -> list[str]:
    """The milestones of a log in the order of their first appearance; weights are loaded once per model."""
    log = (folder / "server.log").read_text()
    found = sorted((log.index(each), each) for each in MILESTONES if each in log)
    return [*(each for _, each in found), f"{log.count('Load weight end')} models"]


def keys(folder: Path, name: str) -> set[str]:
    """Every key of a JSON answer with its path; the elements of a list share one."""
    return set(_paths(json.loads((folder / name).read_text()), ""))


def chunks(folder: Path) -> list[Any]:
    """The parts of a streamed answer, without the mark of its end."""
    lines = (folder / "generate_stream.sse.txt").read_text().splitlines()
    return [json.loads(line[6:]) for line in lines if line.startswith("data: {")]


def answer(folder: Path, name: str = "generate.json") -> Any:
    """A JSON answer."""
    return json.loads((folder / name).read_text())


def metrics(folder: Path) -> set[str]:
    """Names of metrics, with those of their labels."""
    found = METRIC.findall((folder / "metrics.prom.txt").read_text())
    return {" ".join([name, *LABEL.findall(labels)]) for name, labels in found}


def titles(folder: Path) -> list[str]:
    """What the processes of the server call themselves, sorted; arguments are cut."""
    processes = json.loads((folder / "facts.json").read_text())["processes"]
    return sorted(
        re.sub(r"(sglang\.launch_server|resource_tracker) .*", r"\1", each["title"]) for each in processes
    )


def _paths(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _paths(inner, f"{path}.{key}")
    elif isinstance(value, list):
        for inner in value:
            yield from _paths(inner, f"{path}[]")
    else:
        yield path
