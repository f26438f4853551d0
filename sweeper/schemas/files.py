"""JSON schemas of the configuration's files: for each group of `conf/`, presets, the root, and specsweep.yaml."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from sweeper.engines.flag_types import flag_types
from sweeper.engines.registry import ENGINE_NAMES
from sweeper.schemas.keys import Key, keys
from sweeper.schemas.own_file import own_file
from sweeper.schemas.values import (
    DRAFT,
    ENVIRONMENT,
    PLAIN_FLAG,
    SEARCHED,
    SEARCHED_ENVIRONMENT,
    WHEN,
    Schema,
    fixed_flag,
    or_interpolation,
    searched_flag,
    whole,
)

FOLDER = "schema"
"""Beside the groups: a file of any group names its schema as `../schema/GROUP.json`."""

_DEFAULTS: Schema = {"type": "array", "description": "files that this one goes on from (Hydra's defaults list)"}
_PATTERNS: Mapping[str, tuple[str, str]] = {
    "budget.until": (r"(\d{4}-\d{2}-\d{2}[T ])?\d{1,2}:\d{2}( +[A-Za-z][\w+/-]*)?", "07:00, in quotes"),
    "host.state_dir": (r"(/|~/).*", "a folder on the host: it begins with / or ~/"),
    "notify.webhook": (r"(https?://\S+)?", "https://..."),
    "notify.webhook_env": (r"([A-Za-z_][A-Za-z0-9_]*)?", "the name of an environment variable"),
    "host.node_address": (r"(\S+:\d{1,5})?", "HOST:PORT"),
    "study.storage": (r"(sqlite|postgresql(\+psycopg)?)://.*", "sqlite:///FILE or postgresql://HOST/DATABASE"),
}
"""What the checks in code say of a text, as far as a pattern can."""


def schemas() -> Mapping[str, Schema]:
    """All schemas, by the name of their file without `.json`."""
    groups = ("host", "model", "study", "tracking", "workload")
    made = {group: _file(f"conf/{group}/*.yaml", _group(group)) for group in groups}
    made["engine"] = _engine_file()
    made["space"] = _space_file("conf/space/*.yaml", {})
    for engine in ENGINE_NAMES:
        if types := flag_types(engine):
            flags = {name: searched_flag(kind) for name, kind in types.items()}
            made[f"space-{engine}"] = _space_file(f"conf/space/*.yaml for {engine}", flags)
    made["preset"] = _file("conf/preset/*.yaml and conf/config.yaml", _root())
    made["specsweep"] = own_file(_root(), {path: _of_key(key, []) for path, key in keys().items() if "." in path})
    return dict(sorted(made.items()))


def text_of(schema: Schema) -> str:
    """A schema as its file holds it."""
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"


def write(folder: Path) -> tuple[Path, ...]:
    """Write all schemas to `folder`, which is made; returns the files. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for name, schema in schemas().items():
        file = folder / f"{name}.json"
        file.write_text(text_of(schema), encoding="utf-8")
        files.append(file)
    return tuple(files)


def _file(title: str, properties: Mapping[str, Schema]) -> Schema:
    whole_file = {"$schema": DRAFT, "title": f"specsweep: {title}", "type": "object"}
    return {**whole_file, "additionalProperties": False, "properties": {"defaults": _DEFAULTS, **properties}}


def _group(group: str) -> dict[str, Schema]:
    """The keys of one group; prompts may stand in a workload's file."""
    within = [key for key in keys().values() if key.path.startswith(f"{group}.")]
    properties = _properties(group, within)
    if group == "workload":
        properties["prompts"] = _prompts()
    return properties


def _properties(above: str, within: Iterable[Key]) -> dict[str, Schema]:
    """The keys one step below `above`; those further below are in the schema of theirs."""
    depth, listed = above.count(".") + 1, list(within)
    return {
        key.path.rpartition(".")[2]: _of_key(key, [one for one in listed if one.path.startswith(f"{key.path}.")])
        for key in listed
        if key.path.count(".") == depth
    }


def _of_key(key: Key, below: list[Key]) -> Schema:
    if below:
        properties = _properties(key.path, below)
        mapping = {"type": "object", "additionalProperties": False, "properties": properties}
        return {"description": key.meaning, "anyOf": [mapping, {"type": "null"}]}
    schema = dict(key.schema)
    if key.path in _PATTERNS:
        pattern, right = _PATTERNS[key.path]
        text = {"type": "string", "pattern": whole(pattern), "patternErrorMessage": f"should be {right}"}
        schema = {"anyOf": [text, {"type": "null"}]} if "anyOf" in schema else text
    told = key.meaning + (f" (in {key.unit})" if key.unit else "")
    shown = {} if key.required or isinstance(key.default, dict) else {"default": key.default}
    return or_interpolation({"description": told, **shown, **schema})


def _prompts() -> Schema:
    fields = {
        "id": {"type": "string"},
        "text": {"type": "string", "minLength": 1},
        "prompt_class": {"type": "string"},
    }
    prompt = {"type": "object", "required": ["id", "text"], "additionalProperties": False, "properties": fields}
    words = "the prompts themselves, instead of prompts_file"
    return {"type": "array", "minItems": 1, "items": prompt, "description": words}


def _engine_file() -> Schema:
    """Flags are checked by the table of the engine that the file names."""
    properties = _group("engine")
    properties["name"] = {"enum": list(ENGINE_NAMES), "description": keys()["engine.name"].meaning}
    names = {"propertyNames": {"pattern": "^[a-z][a-z0-9_]*$"}, "additionalProperties": PLAIN_FLAG}
    properties["flags"] = {"type": "object", "description": keys()["engine.flags"].meaning, **names}
    properties["env"] = ENVIRONMENT
    rules = []
    for engine in ENGINE_NAMES:
        flags = {name: fixed_flag(kind) for name, kind in flag_types(engine).items()}
        named: dict[str, Any] = {"properties": {"name": {"const": engine}}, "required": ["name"]}
        rules.append({"if": named, "then": {"properties": {"flags": {"properties": flags}}}})
    return {**_file("conf/engine/*.yaml", properties), "allOf": rules}


def _space_file(title: str, flags: Mapping[str, Schema]) -> Schema:
    made = dict(_file(title, {**flags, "env": SEARCHED_ENVIRONMENT, "when": WHEN}))
    return made | {"propertyNames": {"pattern": "^[a-z][a-z0-9_]*$"}, "additionalProperties": SEARCHED}


def _root() -> dict[str, Schema]:
    """What a preset or the root may say: the keys of every group below its name."""
    groups = dict.fromkeys(key.path.partition(".")[0] for key in keys().values() if "." in key.path)
    properties = {key.path: _of_key(key, []) for key in keys().values() if "." not in key.path}
    load = {"type": "object", "additionalProperties": False, "properties": _group("workload")}
    properties["more_workloads"] = {
        "type": "object",
        "description": keys()["more_workloads"].meaning,
        "additionalProperties": load,
    }
    for group in groups:
        within = {"type": "object", "additionalProperties": False, "properties": _group(group)}
        properties[group] = within
    flags = {"type": "object", "additionalProperties": PLAIN_FLAG}
    engine = {**properties["engine"]["properties"], "flags": flags, "env": ENVIRONMENT}
    properties["engine"] = {**properties["engine"], "properties": engine}
    space = _space_file("space", {})
    properties["space"] = {name: value for name, value in space.items() if name not in ("$schema", "title")}
    return properties
