"""The files that results come in: CSV, and what the load generators of SGLang and vLLM write. Read, not yet
understood.

The formats were read in the generators' sources: SGLang's scripts/playground/bench_speculative.py (one JSON object
per line and configuration), sglang.bench_serving (`--output-file`, one object per line and run) and vLLM's
vllm/benchmarks/serve.py (`--save-result`, one object; `--append-result`, several).
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sweeper.errors import ConfigError
from sweeper.text import plain

MAX_BYTES = 200_000_000
"""A vLLM result with every token's gap of 10,000 requests has some 100 MB."""

MAX_ROWS = 20_000
_MAX_FIRST = 80
_MAX_LINES = 5

CSV, SPECULATIVE, SGLANG_SERVING, VLLM_SERVING = "csv", "bench_speculative", "bench_serving", "vllm_serve"
FORMATS = (CSV, SPECULATIVE, SGLANG_SERVING, VLLM_SERVING)


@dataclass(frozen=True)
class Row:
    """One result as its file tells it. `line`: where it stands, from 1. `cells`: column to value."""

    line: int
    cells: Mapping[str, Any]


@dataclass(frozen=True)
class ResultFile:
    """One file. `told_at_s`: when it was last written, in seconds since 1970. `bad`: lines that hold no result.

    `sha256`: of its content, hex digits.
    """

    name: str
    sha256: str
    told_at_s: float
    kind: str
    rows: tuple[Row, ...]
    bad: tuple[str, ...] = ()

    def where(self, *lines: int) -> str:
        """How a message names rows; of many the first."""
        listed = ", ".join(map(str, lines[:_MAX_LINES]))
        more = f" and {len(lines) - _MAX_LINES} more" if len(lines) > _MAX_LINES else ""
        return f"{self.name}, line{'s' if len(lines) > 1 else ''} {listed}{more}"


def read_results(path: Path, kind: str = "") -> ResultFile:
    """A file of results in the format `kind`, told from its content if empty.

    Raises ConfigError when it cannot be read, or holds no result of a known format.
    """
    name = plain(path.name, 100)
    try:
        if path.exists() and not path.is_file():  # a folder; a device or a pipe, which may never end
            raise ConfigError([f"{plain(str(path))}: is no file; name the files of results themselves"])
        if path.stat().st_size > MAX_BYTES:
            raise ConfigError([f"{name}: has more than {MAX_BYTES // 1_000_000} MB; import a part of it"])
        content = path.read_bytes()
        told_at_s = path.stat().st_mtime
        text = content.decode("utf-8-sig")
    except OSError as error:
        raise ConfigError([f"{plain(str(path))}: cannot be read: {error.strerror}"]) from None
    except UnicodeDecodeError as error:
        raise ConfigError([f"{name}: is not UTF-8 text (byte {error.start})"]) from None
    is_json = text.lstrip().startswith(("{", "["))
    rows, bad = _json_rows(text, name) if is_json else _csv_rows(text, name)
    if not rows or not rows[0].cells:
        raise ConfigError([_no_table(text, name, bad)])
    if len(rows) > MAX_ROWS:
        raise ConfigError([f"{name}: has {len(rows):,} results, more than {MAX_ROWS:,}"])
    kind = kind or (_json_kind(rows[0].cells, name) if is_json else CSV)
    return ResultFile(name, hashlib.sha256(content).hexdigest(), told_at_s, kind, tuple(rows), tuple(bad))


def _no_table(text: str, name: str, bad: Sequence[str]) -> str:
    """Why a text of which no line is a result is refused: told once, with the first of its lines."""
    first = plain(text.strip().partition("\n")[0], _MAX_FIRST)
    shown = f"its first line is {first!r}" if first else "it is empty"
    why = f"; {bad[0].removeprefix(f'{name}, ')}" if bad else ""
    return f"{name}: holds no result: {shown}{why}; it should be one of {', '.join(FORMATS)}"


def _csv_rows(text: str, name: str) -> tuple[list[Row], list[str]]:
    """Rows under their header's names; one with more or fewer fields than the header is told as bad.

    Fields are separated by whichever of comma, semicolon and tab the header has most of.
    """
    first = text.lstrip().partition("\n")[0]
    delimiter = max(",;\t", key=first.count)
    reader = csv.reader(io.StringIO(text), strict=True, delimiter=delimiter)
    rows: list[Row] = []
    bad: list[str] = []
    header: list[str] = []
    try:
        for fields in reader:
            line = reader.line_num
            if not any(field.strip() for field in fields):
                continue
            if not header:
                header = _header(fields, name)
            elif len(fields) != len(header):
                bad.append(f"{name}, line {line}: has {len(fields)} fields, the header {len(header)}")
            else:
                cells = {column: field.strip() for column, field in zip(header, fields, strict=True)}
                rows.append(Row(line, cells))
    except csv.Error as error:
        raise ConfigError([f"{name}, line {reader.line_num}: is no CSV: {error}"]) from None
    return rows, bad


def _header(fields: Sequence[str], name: str) -> list[str]:
    header = [field.strip() for field in fields]
    twice = {field for field in header if header.count(field) > 1 or not field}
    if twice:
        raise ConfigError([f"{name}, line 1: each column needs a name of its own, not {sorted(twice)[0]!r} again"])
    return header


def _json_rows(text: str, name: str) -> tuple[list[Row], list[str]]:
    """One object, a list of objects, or one object per line."""
    try:
        whole = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return _json_lines(text, name)
    objects = whole if isinstance(whole, list) else [whole]
    bad = [f"{name}, item {n}: is no JSON object" for n, o in enumerate(objects, 1) if not isinstance(o, dict)]
    return [Row(n, _flat(o)) for n, o in enumerate(objects, 1) if isinstance(o, dict)], bad


def _json_lines(text: str, name: str) -> tuple[list[Row], list[str]]:
    rows: list[Row] = []
    bad: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            found = json.loads(line, parse_constant=_no_constant)
        except (ValueError, RecursionError) as error:
            bad.append(f"{name}, line {number}: is no JSON: {plain(str(error), 80)}")
            continue
        if isinstance(found, dict):
            rows.append(Row(number, _flat(found)))
        else:
            bad.append(f"{name}, line {number}: is no JSON object")
    return rows, bad


def _no_constant(_: str) -> None:
    """NaN and Infinity are no measured values: absent. (`request_rate` is Infinity where nothing limits it.)"""


def _flat(found: Mapping[str, Any]) -> dict[str, Any]:
    """The entries that are single values, or what a format is known to need beside them."""
    return {name: value for name, value in found.items() if _is_kept(name, value)}


def _is_kept(name: str, value: object) -> bool:
    return isinstance(value, str | int | float | bool) or name in (
        "server_info",
        "spec_decode_per_position_acceptance_rates",
    )


_SIGNS = (
    (SPECULATIVE, {"steps", "topk", "num_draft_tokens", "speed"}),
    (VLLM_SERVING, {"model_id", "tokenizer_id", "output_throughput"}),
    (SGLANG_SERVING, {"output_throughput", "median_ttft_ms", "completed"}),
)
"""Entries by which a format is known; the first that fits."""


def _json_kind(cells: Mapping[str, Any], name: str) -> str:
    if "avg_latency" in cells and "output_throughput" not in cells:
        told = "tells neither the number of tokens nor acceptance; use `vllm bench serve`"
        raise ConfigError([f"{name}: `vllm bench latency` {told}"])
    return next((kind for kind, names in _SIGNS if names <= cells.keys()), CSV)
