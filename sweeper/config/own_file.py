"""`specsweep.yaml` in the working directory: what is always meant there, so that no command has to repeat it.

Only in the working directory itself, never in one above it: relative places (`study.dir`) lie there too, and what
somebody else left in a shared folder above must not decide which program is started.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from omegaconf import OmegaConf

from sweeper.config.files import YamlError, trap_mistakes, yaml_mistake
from sweeper.config.mistakes import one_line, shown
from sweeper.config.overrides import GROUPS, Asked, refusal
from sweeper.config.values import LIBRARY_ERRORS
from sweeper.errors import ConfigError

OWN_FILE = "specsweep.yaml"
CONFIG_DIR = "config_dir"

_KEY = re.compile(r"[A-Za-z_][\w-]*([./][\w-]+)*")
_HOW = "write config_dir: DIR, GROUP: OPTION or path.to.value: VALUE"


@dataclass(frozen=True)
class OwnFile:
    """What it says: `config_dir`, relative to the working directory as it is, and settings in their order."""

    config_dir: Path | None = None
    asked: tuple[Asked, ...] = ()

    def without(self, given: Iterable[Asked]) -> tuple[Asked, ...]:
        """The settings that the command line does not give anew. Others are applied first and so lose to it."""
        named = {one.key for one in given if not one.delete}
        return tuple(one for one in self.asked if one.key not in named)


def own_file(folder: Path) -> OwnFile:
    """What `folder` says for itself; nothing without the file. Raises ConfigError with every mistake in it."""
    path = folder / OWN_FILE
    if not os.path.lexists(path):
        return OwnFile()
    entries = _entries(path)
    mistakes, asked, config_dir = list[str](), list[Asked](), None
    for key, value in entries.items():
        if key == CONFIG_DIR:
            config_dir = _folder(value, folder, mistakes)
        elif str(key).strip("-").replace("-", "_") == CONFIG_DIR:
            mistakes.append(f"{shown(key)} is written {CONFIG_DIR} in this file")
        else:
            asked += _settings(key, value, mistakes)
    if mistakes:
        raise ConfigError([f"{OWN_FILE}: {line}" for line in mistakes])
    return OwnFile(config_dir, tuple(asked))


def named_in(lines: Iterable[str], asked: Sequence[Asked]) -> list[str]:
    """The mistakes, each that is about a setting of the file with its name: nobody typed it."""
    keys = tuple(one.key for one in asked)

    def is_of(place: str) -> bool:
        return place.startswith(keys) or any(key.startswith(f"{place}.") for key in keys)

    return [f"{line} ({OWN_FILE})" if is_of(re.split(r"[:=]", line)[0]) else line for line in lines]


def _entries(path: Path) -> Mapping[object, object]:
    """The file as a mapping. Raises ConfigError for what is none."""
    try:
        entries: object = OmegaConf.to_container(OmegaConf.load(path), resolve=False)
        if traps := trap_mistakes(path):
            raise ConfigError(traps)
    except YamlError as error:
        raise ConfigError([yaml_mistake(error)]) from None
    except UnicodeDecodeError as error:
        raise ConfigError([f"{path}: is not UTF-8 (byte {error.start}: {error.reason})"]) from None
    except LIBRARY_ERRORS as error:
        raise ConfigError([f"{path}: cannot be read; {_HOW}: {one_line(str(error))}"]) from None
    if not isinstance(entries, Mapping):
        raise ConfigError([f"{path}: should be a mapping; {_HOW}"])
    return entries


def _folder(value: object, folder: Path, mistakes: list[str]) -> Path | None:
    if isinstance(value, str) and value:
        with suppress(RuntimeError):  # ~ of a user who is none
            found = folder / Path(value).expanduser()
            if found.is_dir():
                return found
    mistakes.append(f"{CONFIG_DIR}: {shown(value)} is not a directory")
    return None


def _settings(key: object, value: object, mistakes: list[str]) -> list[Asked]:
    """One entry; below the name of a group a mapping stands for single values, as it does in a preset."""
    if not isinstance(key, str) or not _KEY.fullmatch(key):
        mistakes.append(f"{shown(key)} is not the name of a setting; {_HOW}")
        return []
    if key in GROUPS and isinstance(value, Mapping):
        return [one for name, below in value.items() for one in _settings(f"{key}.{name}", below, mistakes)]
    asked = Asked(text=f"{key}={shown(value) if isinstance(value, Mapping) else value}", key=key, value=value)
    if reason := refusal(asked):
        mistakes.append(reason)
        return []
    return [asked]
