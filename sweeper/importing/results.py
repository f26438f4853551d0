"""Rows understood: which configuration each was measured with, what was measured, what is known of its origin."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sweeper.engines.base import Speculation
from sweeper.frozen import MAX_SECONDS
from sweeper.importing import columns
from sweeper.importing.columns import BY_NAME
from sweeper.importing.formats import FLAG
from sweeper.metrics import check_metrics
from sweeper.spec import FlagValue, ServerConfig
from sweeper.text import plain

_LOAD = ("concurrency", "request_rate", "workload", "model")
"""Roles by which rows measure different things: they must agree, or a part must be chosen."""

RATES = ("output_throughput", "decode_throughput", "request_throughput")

_FACTS = ("engine_version", "model", "gpus", "host")


@dataclass(frozen=True)
class Asked:
    """How rows are to be read. `roles`: role to column. `kept`: columns that are flags. `fixed`: flags of all
    rows.

    `speculates`: whether a configuration drafts; `speculation`: by which flags, where that is known. `baseline`:
    column and value that mark a server without speculation, if a column of that meaning does not.
    """

    speculates: Callable[[ServerConfig], bool]
    speculation: Speculation | None
    roles: Mapping[str, str] = field(default_factory=dict)
    kept: tuple[str, ...] = ()
    fixed: Mapping[str, FlagValue] = field(default_factory=dict)
    baseline: tuple[str, str] | None = None


@dataclass(frozen=True)
class Result:
    """One row. `load`: what it was measured under. `positions`: shares of drafts accepted at each position.

    `doubts`: what is not exact about the row. `ended_at`: as told, without a zone (taken as UTC); else None.
    """

    config: ServerConfig
    drafts: bool
    metrics: Mapping[str, float]
    load: Mapping[str, str]
    facts: Mapping[str, str]
    prompt: str = ""
    prompt_class: str = ""
    repeat: str = ""
    positions: tuple[float, ...] = ()
    doubts: tuple[str, ...] = ()
    ended_at: datetime.datetime | None = None
    duration_s: float = 0.0


def understood(cells: Mapping[str, Any], asked: Asked) -> Result:
    """What a row says. Raises ValueError, in words for a person, for one that cannot be used."""
    given = {role: cells[column] for role, column in asked.roles.items() if _is_given(cells.get(column))}
    flags, env = _settings(cells, given, asked)
    drafts = _drafts(cells, given, flags, asked)
    metrics, doubts = _metrics(given)
    if not metrics.keys() & set(RATES):
        raise ValueError("has no throughput")
    if none := [name for name in RATES if metrics.get(name) == 0]:
        raise ValueError(f"{none[0]} is 0: nothing was measured")
    if drafts and not asked.speculates(ServerConfig(flags=flags)):
        named = asked.speculation.algorithm if asked.speculation else "FLAG"
        raise ValueError(f"drafted, and does not say with which algorithm: --set {named}=NAME")
    if not drafts:
        flags = _without_drafting(flags, asked.speculation)
        metrics = {name: value for name, value in metrics.items() if not name.startswith("accept_")}
    return Result(
        config=ServerConfig(flags=flags, env=env),
        drafts=drafts,
        metrics=check_metrics(metrics),
        load={role: _text(given[role]) for role in _LOAD if role in given},
        facts={role: _text(given[role]) for role in _FACTS if role in given},
        prompt=_text(given.get("prompt", "")),
        prompt_class=_text(given.get("prompt_class", "")),
        repeat=_text(given.get("repeat", "")),
        positions=_positions(given.get("positions")),
        doubts=tuple(doubts),
        ended_at=_moment(given.get("date")),
        duration_s=_duration_s(given.get("duration_s")),
    )


def _is_given(cell: object) -> bool:
    return cell is not None and cell != ""


def _text(cell: object) -> str:
    """A cell as a word; 8.0 is 8."""
    value = columns.flag(cell)
    return "" if value is None else plain(str(value), 200)


def _settings(
    cells: Mapping[str, Any], given: Mapping[str, Any], asked: Asked
) -> tuple[dict[str, FlagValue], dict[str, str]]:
    """Flags and environment: what the file tells by itself, then the columns, then what was fixed.

    A bare flag that is false is one that is left away.
    """
    found: dict[str, FlagValue | None] = {
        name.removeprefix(FLAG): columns.flag(value) for name, value in cells.items() if name.startswith(FLAG)
    }
    for role, name in _drafting_flags(asked.speculation).items():
        if role in given:
            found[name] = columns.flag(given[role])
    found |= _graphs(given, asked.speculation)
    found |= {name: columns.flag(cells.get(name)) for name in asked.kept if _is_given(cells.get(name))}
    found |= {_own_name(name, asked.speculation): value for name, value in asked.fixed.items()}
    settings = {name: value for name, value in found.items() if value is not None and value is not False}
    env = {name.removeprefix("env."): _plain(value) for name, value in settings.items() if _is_env(name)}
    return {name: value for name, value in settings.items() if not _is_env(name)}, env


def _graphs(given: Mapping[str, Any], speculation: Speculation | None) -> dict[str, FlagValue | None]:
    """CUDA graphs under the engine's own flag, which switches them off."""
    flag = speculation.no_graphs if speculation else ""
    if flag and "disable_cuda_graph" in given:
        return {flag: columns.yes(given["disable_cuda_graph"])}
    if flag and "cuda_graphs" in given:
        used = columns.yes(given["cuda_graphs"])
        return {flag: None if used is None else not used}
    return {}


def _own_name(name: str, speculation: Speculation | None) -> str:
    """The engine's own name of a flag that may be given by its role, or by another name for that."""
    return _drafting_flags(speculation).get(columns.role_named(name) or "", name)


def _plain(value: FlagValue) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _is_env(name: str) -> bool:
    """Environment variables are written in capitals; flags never are."""
    return name.startswith("env.") or (name.isupper() and "_" in name)


def _drafting_flags(speculation: Speculation | None) -> dict[str, str]:
    """Role to the engine's name of the flag."""
    if speculation is None:
        return {}
    named = {
        "algorithm": speculation.algorithm,
        "drafter": speculation.drafter[1],
        "num_steps": speculation.num_steps,
        "topk": speculation.topk,
        "draft_tokens": speculation.draft_tokens,
    }
    return {role: name for role, name in named.items() if name}


def _drafts(
    cells: Mapping[str, Any], given: Mapping[str, Any], flags: Mapping[str, FlagValue], asked: Asked
) -> bool:
    """Whether the row's server speculated: not if marked as the baseline, without an algorithm or steps."""
    if asked.baseline is not None and str(cells.get(asked.baseline[0], "")) == asked.baseline[1]:
        return False
    if "baseline" in given and columns.yes(given["baseline"]):
        return False
    if asked.speculation is None:
        return asked.speculates(ServerConfig(flags=flags))
    if not asked.speculates(ServerConfig(flags=flags)) and not _shows_drafts(given, flags, asked.speculation):
        return False
    return flags.get(asked.speculation.num_steps) != 0


def _shows_drafts(given: Mapping[str, Any], flags: Mapping[str, FlagValue], speculation: Speculation) -> bool:
    """Whether a row that names no algorithm has something that only drafting gives."""
    if str(given.get("algorithm", "")).lower() in ("none", "false", "baseline", "off"):
        return False
    return bool(flags.get(speculation.num_steps)) or str(given.get("accept_length", "1")) not in ("1", "1.0", "0")


def _without_drafting(flags: dict[str, FlagValue], speculation: Speculation | None) -> dict[str, FlagValue]:
    names = set() if speculation is None else {*speculation.names, *_drafting_flags(speculation).values()}
    return {name: value for name, value in flags.items() if name not in names}


def _metrics(given: Mapping[str, Any]) -> tuple[dict[str, float], list[str]]:
    """The row's numbers in the units of METRICS, and what is not exact about them.

    An accept_length of 0 is none.
    """
    metrics: dict[str, float] = {}
    doubts: list[str] = []
    for role, cell in given.items():
        known = BY_NAME[role]
        if not known.metric or (found := _number(role, cell)) is None:
            continue
        if found.value is not None:
            metrics[known.metric] = found.value * known.factor
        elif role == "accept_length" and found.low is not None and found.high is not None:
            metrics["accept_length_low"], metrics["accept_length_high"] = found.low, found.high
        else:
            raise ValueError(f"{role}: {plain(str(cell), 40)!r} is a range, and one number is needed")
        if found.about:
            doubts.append(f"imported: {role} was told as about {found.value:g}")
    if metrics.get("accept_length") == 0:
        del metrics["accept_length"]
    return metrics, doubts


def _number(role: str, cell: object) -> columns.Number | None:
    try:
        return columns.number(cell)
    except ValueError as error:
        raise ValueError(f"{role}: {error}") from None


def _positions(cell: object) -> tuple[float, ...]:
    """Shares of verify steps in which the draft at each position was accepted: a list, or text split by `;`."""
    parts = cell if isinstance(cell, list) else str(cell).split(";") if _is_given(cell) else []
    numbers = [found.value for part in parts if (found := _number("positions", part)) is not None]
    shares = tuple(value for value in numbers if value is not None and 0 <= value <= 1)
    return shares if len(shares) == len(parts) else ()


def _duration_s(cell: object) -> float:
    found = _number("duration_s", cell) if _is_given(cell) else None
    value = found.value if found else None
    return value if value is not None and 0 <= value <= MAX_SECONDS else 0.0


def _moment(cell: object) -> datetime.datetime | None:
    """vLLM writes 20260314-221500, in local time without its zone; ISO 8601 is read too."""
    if not isinstance(cell, str):
        return None
    text = re.sub(r"^(\d{8})-(\d{6})$", r"\1T\2", cell.strip())
    try:
        found = datetime.datetime.fromisoformat(text)
    except ValueError:
        return None
    if not 2000 <= found.year <= 2200:
        return None
    return found if found.tzinfo else found.replace(tzinfo=datetime.UTC)
