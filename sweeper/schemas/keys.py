"""Every key of the configuration: its place, type, default, unit and meaning.

Names and types are the schema's (spec.py), defaults and meanings those of the packaged files, where a reader of
these sees them too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from pydantic import BaseModel

from sweeper.host_spec import HostSpec
from sweeper.night_spec import BudgetSpec, LimitsSpec, NotifySpec
from sweeper.schemas.comments import Commented, commented, packaged
from sweeper.spec import EngineSpec, ModelSpec, ProbeSpec, StudySpec, TrackingSpec, VerdictSpec
from sweeper.workload_spec import WorkloadSpec

MODELS: Mapping[str, type[BaseModel]] = {
    "workload": WorkloadSpec,
    "budget": BudgetSpec,
    "verdict": VerdictSpec,
    "limits": LimitsSpec,
    "notify": NotifySpec,
    "probe": ProbeSpec,
    "engine": EngineSpec,
    "host": HostSpec,
    "model": ModelSpec,
    "study": StudySpec,
    "tracking": TrackingSpec,
}
"""The parts of the configuration that have keys of their own; `space` has those of the server."""

_FILES: tuple[tuple[str, str], ...] = (
    ("config.yaml", ""),
    ("engine/sglang.yaml", "engine"),
    ("host/ssh.yaml", "host"),
    ("model/smollm2_f16.yaml", "model"),
    ("model/hf.yaml", "model"),
    ("study/sampler/auto.yaml", "study"),
    ("study/default.yaml", "study"),
    ("tracking/mlflow.yaml", "tracking"),
)
"""Where a key is explained; of the two last files that have it the later one counts."""

_UNITS: Mapping[str, str] = {
    "_s": "s",
    "_pct": "%",
    "_gib": "GiB",
    "_mib": "MiB",
    "_kwh": "kWh",
    "_c": "°C",
    "hours": "h",
    "request_rate": "1/s",
    "max_tokens": "tokens",
}
_OF_FILES: Mapping[str, Mapping[str, Any]] = {
    "workload.prompts_file": {"anyOf": [{"type": "string"}, {"type": "null"}]},
    "workload.num_prompts": {"type": "integer", "minimum": 0},
}
"""What a file of the configuration may say beside the schema's own fields."""

_ROOT: Mapping[str, Mapping[str, Any]] = {
    "objective": {"anyOf": [{"type": "string"}, {"type": "object", "additionalProperties": {"type": "number"}}]},
    "more_workloads": {"type": "object"},
    "on_finish": {"enum": ["stop", "serve_best", "restore"]},
    "on_finish_port": {
        "anyOf": [{"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 65536}, {"type": "null"}]
    },
}
_HIDDEN = frozenset({"workload.prompts"})
"""Explained with another key."""

MISSING = "???"


@dataclass(frozen=True)
class Key:
    """One key. `schema`: its JSON schema, without references; `default`: as a file writes it."""

    path: str
    schema: Mapping[str, Any]
    default: object
    meaning: str

    @property
    def unit(self) -> str:
        """In what a number of it is given; empty where it is a count, or no number."""
        name = self.path.rpartition(".")[2]
        return next((unit for end, unit in _UNITS.items() if name == end or name.endswith(end)), "")

    @property
    def required(self) -> bool:
        """Whether nobody but the user can know it."""
        return self.default == MISSING


@cache
def keys() -> Mapping[str, Key]:
    """All of them, by dotted path, in the order of the files."""
    said = said_of_keys()
    fields = dict(_fields())
    order = [path for path in said if path in fields] + [path for path in fields if path not in said]
    return {path: _key(path, fields[path], said.get(path)) for path in order if path not in _HIDDEN}


@cache
def said_of_keys() -> Mapping[str, Commented]:
    """What the packaged files say of each key; they may name keys that do not exist (a test compares)."""
    found: dict[str, Commented] = {}
    for name, prefix in _FILES:
        found |= {path: one for path, one in commented(packaged(name), prefix).items() if "defaults" not in path}
    return found


def _key(path: str, field: Mapping[str, Any], said: Commented | None) -> Key:
    schema = {name: value for name, value in field.items() if name not in ("title", "default")}
    default = said.value if said else field.get("default")
    return Key(path, schema, default, said.comment if said else "")


def _fields() -> Iterator[tuple[str, Mapping[str, Any]]]:
    yield from _ROOT.items()
    for group, model in MODELS.items():
        yield from _fields_of(group, plain_schema(model))
    yield from _OF_FILES.items()


def _fields_of(above: str, schema: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name, field in schema["properties"].items():
        path = f"{above}.{name}"
        yield path, field
        inner = next((one for one in field.get("anyOf", ()) if "properties" in one), None)
        if inner is not None and path not in _HIDDEN:
            yield from _fields_of(path, inner)


def plain_schema(model: type[BaseModel]) -> Mapping[str, Any]:
    """The JSON schema of a model with its references resolved."""
    whole = model.model_json_schema()
    resolved = _resolved(whole, whole.get("$defs", {}))
    return resolved if isinstance(resolved, dict) else {}


def _resolved(node: object, defs: Mapping[str, object]) -> object:
    if isinstance(node, list):
        return [_resolved(one, defs) for one in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        return _resolved(defs[node["$ref"].rpartition("/")[2]], defs)
    return {name: _resolved(value, defs) for name, value in node.items() if name != "$defs"}


def in_words(schema: Mapping[str, Any]) -> str:
    """A type as a reader takes it: `whole number, 1 to 8`, `text or null`."""
    if "anyOf" in schema:
        words = list(dict.fromkeys(in_words(one) for one in schema["anyOf"]))
        return " or ".join(words)
    if "enum" in schema or "const" in schema:
        values = schema.get("enum", [schema.get("const")])
        return "one of " + ", ".join(f"`{value}`" for value in values)
    kind = str(schema.get("type", ""))
    if kind == "array":
        items = schema.get("items", {})
        return "list" if "properties" in items or not items else f"list of {in_words(items)}"
    names = {"string": "text", "boolean": "true or false", "integer": "whole number", "object": "mapping"}
    return names.get(kind, kind) + _limits(schema)


def _limits(schema: Mapping[str, Any]) -> str:
    low, high = schema.get("minimum"), schema.get("maximum")
    over, under = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    words = []
    if over is not None:
        words.append(f"above {over:,}")
    if low is not None:
        words.append(f"{low:,} to {high:,}" if high is not None else f"at least {low:,}")
    elif high is not None:
        words.append(f"at most {high:,}")
    if under is not None:
        words.append(f"below {under:,}")
    return "".join(f", {word}" for word in words)


def written(value: object) -> str:
    """A default as a YAML file has it, on one line."""
    return value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False)
