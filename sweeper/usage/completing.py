"""What may stand at the cursor of a command line. Light, as it runs at each press of Tab.

The names of settings come from the packaged YAML files and the user's own; those of studies from the
database files of `study.dir`. What cannot be read is left out: a completion never complains.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import yaml

import conf
from sweeper.storing.study_files import newest_names
from sweeper.usage.command_line import new_parser, options_of
from sweeper.usage.table import SHELLS, USAGES

GROUPS = ("engine", "host", "model", "space", "workload", "study", "study/sampler", "tracking", "preset")
_OWN_FILE = "specsweep.yaml"
_ROOTS = ("config.yaml",)


@dataclass(frozen=True)
class Place:
    """Where settings and studies are looked for: the user's own folder, if any, and what was already typed."""

    typed: Mapping[str, str]
    folders: tuple[Path, ...]


def candidates(words: Sequence[str]) -> list[str]:
    """The words that may stand in the place of the last one, which may be empty; sorted as they are best read."""
    current = words[-1] if words else ""
    if len(words) < 2:
        return _beginning([*USAGES, "--help", "--version"], current)
    command, before = words[0], words[-2]
    if command not in USAGES:
        return []
    place = _place(words[1:-1])
    choices = _choices_of(command, before)
    if choices is not None:
        return _beginning([*choices, *(_studies(place) if before == "--with" else ())], current)
    if current.startswith("-"):
        return _beginning(options_of(new_parser(), command), current)
    if command == "completion":
        return _beginning(SHELLS, current)
    key, equals, _ = current.partition("=")
    if equals:
        return _beginning((f"{key}={value}" for value in _values(key.lstrip("+"), place)), current)
    return _beginning([*_words_of(command, place), *_keys(place, current.lstrip("+~"))], current.lstrip("+~"))


def _choices_of(command: str, option: str) -> Iterable[str] | None:
    """What may stand behind an option that takes a value; None when it is none."""
    parser = new_parser()
    subs = next(action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    for action in subs.choices[command]._actions:
        if option.startswith("-") and option in action.option_strings and action.nargs != 0:
            return None if action.nargs == "?" else tuple(action.choices or ())
    return None


def _words_of(command: str, place: Place) -> list[str]:
    """What a command takes beside settings."""
    if command == "resume":
        return _studies(place)
    return ["best", "baseline", "trial="] if command == "export" else []


def _values(key: str, place: Place) -> list[str]:
    """The values of a setting that can be listed."""
    if key in GROUPS:
        return _options(key, place)
    if key == "study.name":
        return _studies(place)
    if key == "study.sampler":
        return _options("study/sampler", place)
    return ["true", "false"] if isinstance(_settings(place).get(key), bool) else []


def _options(group: str, place: Place) -> list[str]:
    found = (path for folder in place.folders for path in (folder / group).glob("*.yaml"))
    return sorted({path.stem for path in found})


def _keys(place: Place, current: str) -> list[str]:
    """Groups and settings as far as the next dot: `budget.` first, its settings behind it."""
    settings = list(_settings(place))
    start, dot, _ = current.rpartition(".")
    depth = start.count(".") + 1 if dot else 0
    found = dict.fromkeys(f"{group}=" for group in GROUPS) if not dot else {}
    for key in settings:
        parts = key.split(".")
        if len(parts) > depth and (not dot or key.startswith(f"{start}.")):
            upto = ".".join(parts[: depth + 1])
            found[f"{upto}." if len(parts) > depth + 1 else f"{upto}="] = None
    return list(found)


def _settings(place: Place) -> dict[str, object]:
    """Dotted path to the value that a file gives it."""
    found: dict[str, object] = {}
    for folder in reversed(place.folders):
        for name in _ROOTS:
            found |= dict(_flat(_read(folder / name), ""))
        for group in GROUPS:
            for path in sorted((folder / group).glob("*.yaml")) if group != "preset" else ():
                found |= dict(_flat(_read(path), group.partition("/")[0]))
    return {key: value for key, value in found.items() if key.split(".")[-1] not in ("defaults", "hydra")}


def _flat(node: object, path: str) -> Iterator[tuple[str, object]]:
    if not isinstance(node, Mapping) or not node:
        if path:
            yield path, node
        return
    for name, value in node.items():
        if name != "defaults":
            yield from _flat(value, f"{path}.{name}" if path else str(name))


def _read(path: Path) -> object:
    with suppress(OSError, ValueError, yaml.YAMLError):
        return yaml.load(path.read_text(encoding="utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return None


def _place(words: Sequence[str]) -> Place:
    """What was typed before the cursor, over what `specsweep.yaml` says."""
    own = dict(_flat(_read(Path(_OWN_FILE)), ""))
    typed = {name: str(value) for name, value in own.items() if isinstance(value, str)}
    typed |= dict(word.partition("=")[::2] for word in words if "=" in word)
    folder = typed.get("config_dir", "")
    for option, value in zip(words, [*words[1:], ""], strict=False):
        folder = value if option == "--config-dir" else folder
        folder = option.partition("=")[2] if option.startswith("--config-dir=") else folder
    packaged = Path(str(conf.__file__)).parent
    return Place(typed, (Path(folder).expanduser(), packaged) if folder else (packaged,))


def _studies(place: Place) -> list[str]:
    """The names of the studies in files; a database elsewhere is not asked at every press of Tab."""
    folder = str(Path(place.typed.get("study.dir", "sweeps")).expanduser())
    return newest_names(place.typed.get("study.storage", f"sqlite:///{folder}/optuna.db"), folder)


def _beginning(words: Iterable[str], current: str) -> list[str]:
    return [word for word in dict.fromkeys(words) if word.startswith(current)]
