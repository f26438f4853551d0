"""What is read from the host once, before the first launch: the engine's version and flags, and the model."""

from __future__ import annotations

import difflib

from launchers.base import CommandResult, Launcher
from sweeper.engines.base import Engine, HostFacts
from sweeper.errors import ConfigError
from sweeper.spec import ModelSpec, SweepSpec

VERSION_TIMEOUT_S = 60.0
HELP_TIMEOUT_S = 60.0
FINGERPRINT_TIMEOUT_S = 120.0

FINGERPRINT = r"""
set -u
if [ -d "$1" ]; then
  cd -- "$1" || exit 3
  { find . -type f -exec ls -ln {} + | awk '{print $5, $9}' | sort -k2; cat config.json 2>/dev/null; } | sha256sum
elif [ -r "$1" ]; then
  { wc -c < "$1"; head -c 1048576 -- "$1"; tail -c 1048576 -- "$1"; } | sha256sum
else
  echo "no such file or folder, or not readable" >&2; exit 3
fi
"""
"""A large model cannot be hashed at every start. File: size, first and last MiB; folder: names and sizes."""


def read_host_facts(spec: SweepSpec, engine: Engine, launcher: Launcher) -> HostFacts:
    """Prepare the model, identify model and engine, and see that the server has the flags that it will be given.

    Raises ConfigError (each cause named), HostLost.
    """
    version = _engine_version(spec, engine, launcher)
    if unknown := _unknown_flags(spec, engine, launcher):
        raise ConfigError(unknown)
    path = _model_path(spec.model, launcher)
    result = launcher.run(("/bin/sh", "-c", FINGERPRINT, "fingerprint", path), FINGERPRINT_TIMEOUT_S)
    if result.exit_code != 0:
        raise ConfigError([f"model.path: {path!r}: {_ending(launcher, result)}"])
    return HostFacts(
        engine_version=version, model_path=path, model_fingerprint=_text(result.stdout).split()[0][:16]
    )


def _engine_version(spec: SweepSpec, engine: Engine, launcher: Launcher) -> str:
    argv = engine.version_argv(spec.engine.command)
    result = launcher.run(argv, VERSION_TIMEOUT_S)
    if result.exit_code != 0:
        command = " ".join(spec.engine.command)
        raise ConfigError([f"engine.command: {command!r} cannot be run: {_ending(launcher, result)}"])
    try:
        return engine.parse_version(_text(result.stdout + b"\n" + result.stderr))
    except ValueError as error:
        raise ConfigError(
            [f"engine.command: {' '.join(argv)!r} does not look like {engine.name}: {error}"]
        ) from error


def _unknown_flags(spec: SweepSpec, engine: Engine, launcher: Launcher) -> list[str]:
    """A line for each flag that the server's own help does not list; none when there is no help to go by.

    A server refuses a flag that it does not know: every launch of the sweep would fail.
    """
    result = launcher.run(engine.help_argv(spec.engine.command), HELP_TIMEOUT_S)
    known = engine.known_flags(_text(result.stdout + b"\n" + result.stderr)) if result.exit_code == 0 else None
    if not known:
        return []
    asked = [("engine.flags", name) for name in spec.engine.flags]
    asked += [("space", parameter.name) for parameter in spec.space.parameters if not parameter.is_env]
    lines = []
    for group, name in asked:
        if (flag := name.replace("-", "_")) not in known:
            near = difflib.get_close_matches(flag, sorted(known), n=1)
            hint = f" (did you mean {near[0]}?)" if near else ""
            lines.append(f"{group}.{name}: the server has no flag --{flag.replace('_', '-')}{hint}")
    return lines


def _model_path(model: ModelSpec, launcher: Launcher) -> str:
    if not model.prepare:
        return model.path
    result = launcher.run(model.prepare, model.prepare_timeout_s)
    lines = _text(result.stdout).strip().splitlines()
    if result.exit_code != 0 or not lines:
        raise ConfigError([f"model.prepare: {' '.join(model.prepare)!r} failed: {_ending(launcher, result)}"])
    return lines[-1].strip()


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def _ending(launcher: Launcher, result: CommandResult) -> str:
    """Last line, exit code and host of a command that failed."""
    lines = _text(result.stderr or result.stdout).strip().splitlines() or ["it printed nothing"]
    return f"{lines[-1][:300]} (exit code {result.exit_code}, host {launcher.host})"
