"""All files of the formats that were asked for, and writing them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sweeper.engines.base import Engine, HostFacts
from sweeper.engines.serving import Loads
from sweeper.errors import ConfigError
from sweeper.exporting.comments import comments
from sweeper.exporting.compose import services
from sweeper.exporting.handover import Handover, serving_without_secrets
from sweeper.exporting.hydra_preset import preset
from sweeper.exporting.kubernetes import manifests
from sweeper.exporting.script import scripts
from sweeper.exporting.systemd import units

Writer = Callable[[Handover], dict[str, str]]

WRITERS: Mapping[str, Writer] = {
    "script": scripts,
    "systemd": units,
    "compose": services,
    "kubernetes": manifests,
    "hydra": preset,
}
ENGINE = "engine"
FORMATS = (*WRITERS, ENGINE)


@dataclass(frozen=True)
class Bundle:
    """File name (relative, with /) to text, and a line with the reason for each one that was left out."""

    files: Mapping[str, str]
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True)
class OwnSide:
    """What the engine's own formats need besides the handover."""

    engine: Engine
    facts: HostFacts
    measured: Sequence[Loads]
    noise_pct: float


def bundle(handover: Handover, formats: Sequence[str], own: OwnSide) -> Bundle:
    """The files of `formats`. Raises ConfigError where none can be written; one of several is left out."""
    files: dict[str, str] = {}
    left_out: list[str] = []
    for name in formats:
        try:
            found = _own(handover, own) if name == ENGINE else Bundle(WRITERS[name](handover))
        except ConfigError as error:
            if len(formats) == 1:
                raise
            left_out += [line.removeprefix("--format: ") for line in error.mistakes]
            continue
        files |= found.files
        left_out += found.left_out
    if not files:
        raise ConfigError([f"--format: {line}" for line in left_out])
    return Bundle(files, tuple(left_out))


def _own(handover: Handover, own: OwnSide) -> Bundle:
    """The engine's own formats; values that are secret are named, not written."""
    serving = serving_without_secrets(handover)
    found = own.engine.own_formats(serving, own.measured, own.noise_pct, own.facts)
    missing = [f"Not in this file, since it is secret: {secret.holds}" for secret in handover.secrets]
    about = [*handover.about, ""]
    files = {
        each.name: (comments([*about, *each.usage, *missing]) if each.has_comments else "") + each.text
        for each in found.files
    }
    return Bundle(files, found.left_out)


def write(found: Bundle, folder: Path) -> list[Path]:
    """Write the files below `folder`, and return their paths. Scripts may be executed. Raises OSError."""
    paths = []
    for name, text in found.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
        path.chmod(0o755 if name.endswith(".sh") else 0o644)
        paths.append(path)
    return paths
