"""Single values of a composed configuration: set, removed, resolved to plain data, `~` expanded."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hydra.errors import HydraException
from omegaconf import DictConfig, ListConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from sweeper.config.mistakes import cannot_resolve, one_line, shown, unicode_mistake, valid_names
from sweeper.config.overrides import Asked

LIBRARY_ERRORS = (HydraException, OmegaConfBaseException, OSError, ValueError, TypeError, RecursionError)
"""What Hydra and OmegaConf raise at files and values that make no sense (tried: tests/config)."""

_REPLACED = ("objective",)
"""What a mapping on the command line takes the place of, instead of being added to what is there."""

_ECHO = re.compile(r"\$\{([A-Za-z_][\w.]*)\}")
_HOME_PATHS = (("study", "dir"), ("study", "artifacts"))
_HOST_PATHS = (("host", "state_dir"), ("model", "path"))
"""Where a leading ~ means the home directory: no shell expands it behind an equals sign.

The paths of a host that is not this machine are expanded there.
"""


def apply(config: DictConfig, asked: Asked) -> list[str]:
    """Set or remove one value in `config`; what stands in the way."""
    parent, _, name = asked.key.rpartition(".")
    try:
        if not asked.delete:
            merge = asked.key not in _REPLACED
            OmegaConf.update(config, asked.key, asked.value, merge=merge, force_add=True)
            return []
        node = OmegaConf.select(config, parent) if parent else config
        if not isinstance(node, DictConfig) or name not in node:
            names = [str(key) for key in node] if isinstance(node, DictConfig) else []
            return [f"{asked.text}: there is no {asked.key} to remove; {valid_names(name, names)}"]
        del node[name]
        conditions = OmegaConf.select(config, "space.when")
        if parent in ("space", "space.env") and isinstance(conditions, DictConfig):
            conditions.pop(name, None)
    except LIBRARY_ERRORS as error:
        return [f"{asked.text}: cannot be applied: {one_line(str(error).partition('full_key:')[0])}"]
    return []


def resolved(node: DictConfig | ListConfig, path: str, told: dict[str, str]) -> dict[str, object]:
    """The entries as plain data, resolved, without Hydra's own; a list's entries under their index.

    What cannot be resolved is left out, with a line in `told` under its path.
    """
    result: dict[str, object] = {}
    entries: Any = node
    for key in node if isinstance(node, DictConfig) else range(len(node)):
        name = key if isinstance(key, str) else repr(key)
        place = f"{path}.{name}" if path else name
        try:
            if OmegaConf.is_missing(node, key):
                told[place] = f"{place}: is missing; give it: {place}=VALUE"
            elif isinstance(entries[key], str) and (reason := unicode_mistake(entries[key])):
                told[place] = f"{place}: {shown(entries[key])} {reason}"
            elif place != "hydra":
                result[name] = _plain(entries[key], place, told)
        except LIBRARY_ERRORS as error:
            told[place] = cannot_resolve(place, str(error))
    return result


def _plain(value: object, path: str, told: dict[str, str]) -> object:
    if isinstance(value, DictConfig):
        return resolved(value, path, told)
    return list(resolved(value, path, told).values()) if isinstance(value, ListConfig) else value


def echoes(config: DictConfig) -> dict[str, str]:
    """Places whose whole value is that of another place, `${other.place}`, with the path of that one."""
    found = dict[str, str]()
    _echoes(OmegaConf.to_container(config, resolve=False), "", found)
    return found


def _echoes(node: object, path: str, found: dict[str, str]) -> None:
    for key, value in node.items() if isinstance(node, dict) else ():
        place = f"{path}.{key}" if path else str(key)
        if isinstance(value, str) and (other := _ECHO.fullmatch(value)):
            found[place] = other[1]
        _echoes(value, place, found)


def without_echoes(mistakes: Sequence[str], repeated: Mapping[str, str]) -> list[str]:
    """The mistakes, without those about a value that is another place's (`echoes`) where that one's are told."""
    places = [line.partition(":")[0] for line in mistakes]

    def is_told(place: str) -> bool:
        target = repeated.get(place)
        others = (other for other in places if other != place)
        return target is not None and any(f"{target}.".startswith(f"{other}.") for other in others)

    return [line for line, place in zip(mistakes, places, strict=True) if not is_told(place)]


def expand_home(config: DictConfig) -> None:
    """Replace the ~ of paths on this machine, in place."""
    raw: Any = OmegaConf.to_container(config, resolve=False)
    host = raw.get("host")
    is_local = not isinstance(host, dict) or host.get("kind") != "ssh"
    for group, name in (*_HOME_PATHS, *(_HOST_PATHS if is_local else ())):
        value = raw[group].get(name) if isinstance(raw.get(group), dict) else None
        if isinstance(value, str) and value.startswith("~/"):
            config[group][name] = str(Path(value).expanduser())
