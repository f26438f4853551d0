"""The JSON schema of `specsweep.yaml`: options of groups, sections, and settings by their dotted paths."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sweeper.schemas.values import DRAFT, ENVIRONMENT, PLAIN_FLAG, SEARCHED, WHEN, Schema

_FOLDER: Schema = {
    "type": "string",
    "minLength": 1,
    "description": "the folder of your own groups, as --config-dir names it, seen from here",
}
GROUPS = ("engine", "host", "model", "space", "workload", "study", "study/sampler", "tracking", "preset")
"""Those of config/overrides.py, which stands above this; a test compares."""

_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_DOTTED: Mapping[str, Schema] = {
    r"engine\.flags\.[a-z][a-z0-9_]*": PLAIN_FLAG,
    rf"engine\.env\.{_NAME}": ENVIRONMENT["additionalProperties"],
    r"space\.(?!(env|when)(\.|$))[a-z][a-z0-9_]*": SEARCHED,
    rf"space\.env\.{_NAME}": SEARCHED,
    r"space\.when\.[a-z][a-z0-9_]*": WHEN["additionalProperties"],
    r"more_workloads\.[\w-]+(\.\w+)?": {},
}
"""Paths whose last name is the server's, or a person's own."""


def own_file(sections: Mapping[str, Schema], settings: Mapping[str, Schema]) -> Schema:
    """`sections`: what a preset may say; `settings`: single values by dotted path."""
    properties: dict[str, Any] = {"config_dir": _FOLDER, **sections, **settings}
    for group in GROUPS:
        option = {
            "type": "string",
            "minLength": 1,
            "description": f"the option of the group {group}: a file's name",
        }
        section = properties.get(group)
        properties[group] = {"anyOf": [option, section]} if section else option
    return {
        "$schema": DRAFT,
        "title": "specsweep: specsweep.yaml, in the folder in which commands are started",
        "type": "object",
        "additionalProperties": False,
        "properties": properties,
        "patternProperties": {f"^{path}$": schema for path, schema in _DOTTED.items()},
    }
