"""From `workload` and `more_workloads` to the schema's workloads, with every mistake in them.

`prompts_file` and `num_prompts` become the prompts themselves. An entry of `more_workloads` is the first workload
with some settings changed; its name is the key that it stands under.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import ValidationError

from sweeper.config.mistakes import schema_mistakes, shown, valid_names
from sweeper.config.prompt_files import ReadPrompts, check_listed
from sweeper.prompts.files import choose
from sweeper.prompts.random_text import looks_random
from sweeper.prompts.rows import RANDOM_REASON
from sweeper.workload_spec import MAX_PROMPTS, WorkloadSpec

_SOURCES = ("prompts", "prompts_file", "num_prompts")
_SETTINGS = tuple(dict.fromkeys((*_SOURCES, *WorkloadSpec.model_fields)))
_Settings = dict[str, object]


@dataclass
class BuiltWorkloads:
    """What the two come to. `told` are places whose mistake is told already, or follows from one that is."""

    first: object
    more: list[_Settings] = field(default_factory=list)
    names: tuple[str, ...] = ()
    mistakes: list[str] = field(default_factory=list)
    told: set[str] = field(default_factory=set)


def build_workloads(data: Mapping[str, object], read: ReadPrompts, known: Sequence[str]) -> BuiltWorkloads:
    """The workloads of the whole configuration `data`; `known` are places whose mistake is known already."""
    built = BuiltWorkloads(first=data.get("workload"), told=set(known))
    asked, raw = data.get("workload"), data.get("more_workloads")
    entries: Mapping[str, object] = raw if isinstance(raw, Mapping) else {}
    if raw is not None and not isinstance(raw, Mapping):
        example = "NAME: {settings that differ from workload}"
        built.mistakes.append(f"more_workloads: {shown(raw)} should be a mapping: {example}")
    if not isinstance(asked, Mapping):
        return built
    built.first, lines = _understood("workload", asked, read, built.told)
    built.mistakes += lines
    built.names = (str(asked.get("name")), *entries)
    if entries:
        inherited = {_reason(line) for line in (*lines, *_schema_lines(("workload",), built.first, ()))}
        for name, entry in entries.items():
            if not isinstance(entry, Mapping):
                example = "should be a mapping: the settings that differ from workload"
                built.mistakes.append(f"more_workloads.{name}: {shown(entry)} {example}")
            else:
                built.mistakes += _added(name, _Entry(entry, asked, inherited), read, built)
    return built


@dataclass(frozen=True)
class _Entry:
    """An entry of `more_workloads`, the first workload, and what is wrong with that one."""

    own: Mapping[str, object]
    first: Mapping[str, object]
    inherited: set[tuple[str, str]]


def _added(name: str, entry: _Entry, read: ReadPrompts, built: BuiltWorkloads) -> list[str]:
    """Complete one entry and add it, if nothing is wrong; what is wrong with it, and with the first one not."""
    path = f"more_workloads.{name}"
    if name == entry.first.get("name"):
        return [f"{path}: the first workload has this name, too; choose another"]
    if "name" in entry.own:
        return [f"{path}.name: the name of this workload is {name}: rename the entry itself"]
    base = dict(entry.first)
    if {"prompts", "prompts_file"} & entry.own.keys():
        base = {key: value for key, value in base.items() if key not in _SOURCES}
    settings, lines = _understood(path, {**base, **entry.own, "name": name}, read, built.told)
    lines += _schema_lines(("more_workloads", name), settings, built.told)
    if not lines:
        built.more.append(settings)
    reasons = {line: _reason(line, path) for line in lines}
    return [line for line, told in reasons.items() if told not in entry.inherited or told[0] in entry.own]


def _reason(line: str, path: str = "workload") -> tuple[str, str]:
    """Which setting of the workload at `path` a line is about, and what it says."""
    place, _, text = line.removeprefix(f"{path}.").partition(":")
    return place.partition(".")[0], text


def _understood(
    path: str, asked: Mapping[str, object], read: ReadPrompts, told: set[str]
) -> tuple[_Settings, list[str]]:
    """The settings of one workload with the prompts in them, and what is wrong with those and with names."""
    unknown = [name for name in asked if name not in _SETTINGS]
    lines = [f"{path}.{name}: unknown name; {valid_names(name, _SETTINGS)}" for name in unknown]
    settings = {name: value for name, value in asked.items() if name not in unknown}
    if isinstance(listed := settings.get("prompts"), list):
        settings["prompts"], wrong = check_listed(f"{path}.prompts", listed)
        lines += wrong
    try:
        settings["prompts"] = _prompts(path, settings, read)
    except _Mistakes as error:
        lines += [line for line in error.lines if line.partition(":")[0] not in told]
        if error.lines and not isinstance(settings.get("prompts"), list):
            settings.pop("prompts", None)
            told.add(f"{path}.prompts")
    for name in ("prompts_file", "num_prompts"):
        settings.pop(name, None)
    return settings, lines


class _Mistakes(Exception):
    def __init__(self, *lines: str) -> None:
        self.lines = lines


def _prompts(path: str, asked: Mapping[str, object], read: ReadPrompts) -> list[object]:
    """The prompts of one workload as plain data. Raises _Mistakes."""
    listed, file = asked.get("prompts"), asked.get("prompts_file")
    if file is None or file == "":
        if listed is None:
            what = f"names no prompts; a packaged set or a file, or list them in {path}.prompts"
            raise _Mistakes(f"{path}.prompts_file: {what}")
        if not isinstance(listed, list):
            raise _Mistakes()  # the schema says what it should be
        return _chosen(f"{path}.prompts", listed, asked, path)
    if not isinstance(file, str):
        raise _Mistakes(f"{path}.prompts_file: {shown(file)} should be the name of a set or the path of a file")
    if listed is not None:
        instead = f"leave one away: ~{path}.prompts or {path}.prompts_file=null"
        raise _Mistakes(f"{path}.prompts_file: {shown(file)} stands beside {path}.prompts; {instead}")
    try:
        found = [prompt.model_dump(exclude={"token_ids"}) for prompt in read(file)]
    except ValueError as error:
        raise _Mistakes(f"{path}.prompts_file: {error}") from None
    return _chosen(f"{path}.prompts_file", found, asked, path)


def _chosen(place: str, prompts: Sequence[object], asked: Mapping[str, object], path: str) -> list[object]:
    """As many of the prompts as are asked for. Raises _Mistakes, also for random ones."""
    count, seed = asked.get("num_prompts"), asked.get("seed")
    if count is not None and (isinstance(count, bool) or not isinstance(count, int) or count < 0):
        raise _Mistakes(f"{path}.num_prompts: {shown(count)} should be a whole number; 0 takes all")
    if count and count > len(prompts):
        raise _Mistakes(f"{path}.num_prompts: {count} of {len(prompts)} prompts cannot be taken; 0 takes all")
    left = list(prompts)
    if count:
        keys = [(_text(prompt, "id"), _text(prompt, "prompt_class")) for prompt in prompts]
        left = [prompts[index] for index in choose(keys, count, seed if isinstance(seed, int) else 0)]
    if len(left) > MAX_PROMPTS:
        instead = f"take some of them: {path}.num_prompts=100"
        raise _Mistakes(f"{place}: {len(left):,} prompts are more than {MAX_PROMPTS:,}; {instead}")
    random = [_text(prompt, "id") for prompt in left if looks_random(_text(prompt, "text"))]
    if random:
        more = f" and {len(random) - 1} more" if len(random) > 1 else ""
        raise _Mistakes(f"{place}: {shown(random[0])}{more} look like random tokens: {RANDOM_REASON}")
    return left


def _text(prompt: object, name: str) -> str:
    value = prompt.get(name) if isinstance(prompt, Mapping) else None
    return value if isinstance(value, str) else ""


def _schema_lines(place: tuple[str, ...], settings: object, told: Sequence[str] | set[str]) -> list[str]:
    try:
        WorkloadSpec.model_validate_json(json.dumps(settings, default=str))
    except ValidationError as error:
        return schema_mistakes(error, told, place)
    return []
