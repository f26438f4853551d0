"""What is read from the host before the first launch: the engine's version and flags, models and GPUs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Protocol

from launchers.base import CommandResult
from launchers.errors import HostLost
from sweeper.engines.base import Engine, HostFacts
from sweeper.errors import ConfigError
from sweeper.fitting import context_mistakes, gpus_needed, too_few_gpus
from sweeper.near_names import meant
from sweeper.provenance import GPU_FIELDS, gpu_build, revision_of
from sweeper.space import domain_values
from sweeper.spec import FlagValue, ModelSpec, SweepSpec

VERSION_TIMEOUT_S = 180.0
HELP_TIMEOUT_S = 180.0  # importing a large engine from a cold disk takes a while
FINGERPRINT_TIMEOUT_S = 120.0
READ_TIMEOUT_S = 30.0
BUILD_TIMEOUT_S = 120.0
_MAX_FILE_BYTES = 1024 * 1024

FINGERPRINT = r"""
set -u
model=$1
case $model in
  "~/"*) model=$HOME/${model#"~/"} ;;
  */*/* | /* | ./* | ../*) ;;
  */*) if [ ! -e "$model" ]; then # a name of the Hugging Face hub: what has been downloaded of it
      hub=${HF_HUB_CACHE:-${HF_HOME:-${XDG_CACHE_HOME:-$HOME/.cache}/huggingface}/hub}
      cache=$hub/models--${model%%/*}--${model#*/}
      { read -r commit < "$cache/refs/main"; } 2>/dev/null || {
        echo "not on this host, neither as a folder nor in $hub: download it first" >&2; exit 3; }
      model=$cache/snapshots/$commit
    fi ;;
esac
if [ -d "$model" ]; then
  cd -- "$model" || exit 3
  { find . -follow -type f -exec ls -lnL {} + | awk '{print $5, $9}' | sort -k2
    cat config.json 2>/dev/null; } | sha256sum
elif [ -r "$model" ]; then
  { wc -c < "$model"; head -c 1048576 -- "$model"; tail -c 1048576 -- "$model"; } | sha256sum
else
  echo "no such file or folder, or not readable" >&2; exit 3
fi
printf '%s\n' "$model"
"""
"""A large model cannot be hashed at every start. File: size, first and last MiB; folder: names and sizes."""


class Commands(Protocol):
    """Runs short commands on a host: a launcher, or something that only looks."""

    @property
    def host(self) -> str:
        """The name of the host."""

    def run(self, argv: tuple[str, ...], timeout_s: float, env: Mapping[str, str] | None = None) -> CommandResult:
        """As `Launcher.run`."""


class AskedOnce:
    """Runs each command once, however often it is asked for: llama.cpp's version and build are one output."""

    def __init__(self, commands: Commands) -> None:
        self._commands = commands
        self._known: dict[tuple[str, ...], CommandResult] = {}

    @property
    def host(self) -> str:
        """The name of the host."""
        return self._commands.host

    def run(self, argv: tuple[str, ...], timeout_s: float, env: Mapping[str, str] | None = None) -> CommandResult:
        """As `Launcher.run`, the first time. All are given the same `env`."""
        if argv not in self._known:
            self._known[argv] = self._commands.run(argv, timeout_s, env)
        return self._known[argv]


def read_host_facts(spec: SweepSpec, engine: Engine, launcher: Commands) -> HostFacts:
    """Prepare the model, identify model and engine, and see that the server has the flags that it will be given.

    What only tells where numbers come from (`build`) may be missing. Raises ConfigError (each cause named) and
    HostLost.
    """
    engines = AskedOnce(launcher)
    version = engine_version(spec, engine, engines)
    known = known_flags_of(spec, engine, launcher)
    if unknown := unknown_flags(spec, known):
        raise ConfigError(unknown)
    path, fingerprint = located_model(spec, launcher)
    files = {name: text_of(name, launcher) for name in engine.host_files(all_values(spec), path)}
    gpu_names = gpu_names_of(launcher)
    if mistakes := [*missing_files(spec, files, launcher), *missing_gpus(spec, gpu_names, launcher)]:
        raise ConfigError(mistakes)
    usable = len(spec.host.gpus) or len(gpu_names)
    unfit = too_few_gpus(spec, gpus_needed(spec, engine), usable, launcher.host)
    known_so_far = HostFacts(engine_version=version, model_path=path, files=files)
    if mistakes := [*filter(None, [unfit]), *context_mistakes(spec, engine, known_so_far)]:
        raise ConfigError(mistakes)
    return HostFacts(
        engine_version=version,
        model_path=path,
        model_fingerprint=fingerprint,
        files=files,
        known_flags=known,
        gpu_names=gpu_names,
        build={
            **engine_build(spec, engine, engines),
            **(gpu_policy(spec, launcher) if gpu_names else {}),
            **({"model_revision": revision} if (revision := revision_of(path)) else {}),
            **draft_build(spec, engine, launcher),
        },
    )


def facts_now(spec: SweepSpec, engine: Engine, launcher: Commands, known: HostFacts) -> HostFacts:
    """`known` with what may be exchanged under a sweep read anew: the engine's version and build, the driver, the
    GPUs' settings. What cannot be read, as on a host that is out of reach for a moment, stays as it was known.
    """
    try:
        engines = AskedOnce(launcher)
        version = engine_version(spec, engine, engines)
        build = {**engine_build(spec, engine, engines), **(gpu_policy(spec, launcher) if known.gpu_names else {})}
    except (ConfigError, HostLost):
        return known
    return replace(known, engine_version=version, build={**known.build, **build})


def changes_between(before: HostFacts, after: HostFacts) -> str:
    """What differs, in words; empty where nothing does."""
    pairs = {"engine_version": (before.engine_version, after.engine_version)}
    pairs |= {name: (before.build.get(name, "unknown"), told) for name, told in after.build.items()}
    return ", ".join(f"{name} was {was} and is {now}" for name, (was, now) in pairs.items() if was != now)


def all_values(spec: SweepSpec) -> Mapping[str, tuple[FlagValue, ...]]:
    """Each flag of a sweep, fixed or searched, with all values that it may take (none for an interval)."""
    values: dict[str, tuple[FlagValue, ...]] = {name: (value,) for name, value in spec.engine.flags.items()}
    for parameter in spec.space.parameters:
        if not parameter.is_env:
            searched = tuple(domain_values(parameter.domain) or ())
            values[parameter.name] = tuple(dict.fromkeys((*values.get(parameter.name, ()), *searched)))
    return values


def engine_version(spec: SweepSpec, engine: Engine, launcher: Commands) -> str:
    """The version of the server's program. Raises ConfigError."""
    argv = engine.version_argv(spec.engine.command)
    result = launcher.run(argv, VERSION_TIMEOUT_S, spec.engine.env)
    if result.exit_code != 0:
        command = " ".join(spec.engine.command)
        raise ConfigError([f"engine.command: {command!r} cannot be run: {_ending(launcher, result)}"])
    try:
        return engine.parse_version(_text(result.stdout + b"\n" + result.stderr))
    except ValueError as error:
        raise ConfigError(
            [f"engine.command: {' '.join(argv)!r} does not look like {engine.name}: {error}"]
        ) from error


def known_flags_of(spec: SweepSpec, engine: Engine, launcher: Commands) -> frozenset[str]:
    """The flags that the server's own help lists; none when there is no help to go by."""
    result = launcher.run(engine.help_argv(spec.engine.command), HELP_TIMEOUT_S, spec.engine.env)
    if result.exit_code != 0:
        return frozenset()
    return engine.known_flags(_text(result.stdout + b"\n" + result.stderr))


def unknown_flags(spec: SweepSpec, known: frozenset[str]) -> list[str]:
    """A line for each flag that the server does not have: it would refuse it, and every launch would fail."""
    asked = [("engine.flags", name) for name in spec.engine.flags]
    asked += [("space", parameter.name) for parameter in spec.space.parameters if not parameter.is_env]
    lines = []
    for group, name in asked if known else ():
        if (flag := name.replace("-", "_")) not in known:
            lines.append(f"{group}.{name}: the server has no flag --{flag.replace('_', '-')}{meant(flag, known)}")
    return lines


def located_model(spec: SweepSpec, launcher: Commands) -> tuple[str, str]:
    """The model's path on the host and its fingerprint; it is prepared if it must be. Raises ConfigError."""
    path = _prepared(spec.model, launcher) if spec.model.prepare else spec.model.path
    result = _fingerprint(path, spec, launcher)
    lines = _text(result.stdout).strip().splitlines()
    if result.exit_code != 0 or len(lines) != 2:
        raise ConfigError([f"model.path: {path!r}: {_ending(launcher, result)}"])
    return lines[1], lines[0].split()[0][:16]


def _prepared(model: ModelSpec, launcher: Commands) -> str:
    result = launcher.run(model.prepare, model.prepare_timeout_s)
    lines = _text(result.stdout).strip().splitlines()
    if result.exit_code != 0 or not lines:
        raise ConfigError([f"model.prepare: {' '.join(model.prepare)!r} failed: {_ending(launcher, result)}"])
    return lines[-1].strip()


def text_of(path: str, launcher: Commands) -> str | None:
    """The text of a small file on the host; None when it cannot be read."""
    result = launcher.run(("head", "-c", str(_MAX_FILE_BYTES), path), READ_TIMEOUT_S)
    return _text(result.stdout) if result.exit_code == 0 else None


def missing_files(spec: SweepSpec, files: Mapping[str, str | None], launcher: Commands) -> list[str]:
    """A line for each file that is not there, under the setting that names its folder."""
    lines = []
    for path in (path for path, text in files.items() if text is None):
        named = [name for name, values in all_values(spec).items() if path.rpartition("/")[0] in map(str, values)]
        searched = {parameter.name for parameter in spec.space.parameters}
        where = (
            (f"space.{named[0]}" if named[0] in searched else f"engine.flags.{named[0]}")
            if named
            else "model.path"
        )
        lines.append(f"{where}: {path} cannot be read on host {launcher.host}: is the model there?")
    return lines


def missing_gpus(spec: SweepSpec, names: tuple[str, ...], launcher: Commands) -> list[str]:
    """Whether a GPU that is to be used does not exist; nothing is said where nvidia-smi is not to be had."""
    wrong = [index for index in spec.host.gpus if names and index >= len(names)]
    return [f"host.gpus: {index}: host {launcher.host} has the GPUs 0 to {len(names) - 1}" for index in wrong]


def gpu_names_of(launcher: Commands) -> tuple[str, ...]:
    """The GPUs' names; empty where nvidia-smi is not to be had."""
    argv = ("nvidia-smi", "--query-gpu=name", "--format=csv,noheader")
    result = launcher.run(argv, READ_TIMEOUT_S)
    return tuple(_text(result.stdout).strip().splitlines()) if result.exit_code == 0 else ()


def engine_build(spec: SweepSpec, engine: Engine, launcher: Commands) -> Mapping[str, str]:
    """What the server is built of, as far as its own program tells."""
    argv = engine.build_argv(spec.engine.command)
    result = launcher.run(argv, BUILD_TIMEOUT_S, spec.engine.env) if argv else None
    if result is None or result.exit_code != 0:
        return {}
    return engine.parse_build(_text(result.stdout + b"\n" + result.stderr))


def gpu_policy(spec: SweepSpec, launcher: Commands) -> Mapping[str, str]:
    """The driver, and how the GPUs in use are set; a driver that does not know a field tells nothing."""
    result = launcher.run(("nvidia-smi", f"--query-gpu={GPU_FIELDS}", "--format=csv,noheader"), READ_TIMEOUT_S)
    return gpu_build(_text(result.stdout), spec.host.gpus) if result.exit_code == 0 else {}


def draft_build(spec: SweepSpec, engine: Engine, launcher: Commands) -> Mapping[str, str]:
    """Fingerprint and revision of what is loaded beside the model. A missing one shows in its launches."""
    found = {}
    for path in engine.model_paths(all_values(spec)):
        result = _fingerprint(path, spec, launcher)
        lines = _text(result.stdout).strip().splitlines()
        if result.exit_code == 0 and len(lines) == 2:
            revision = revision_of(lines[1])
            found[f"draft {path}"] = lines[0].split()[0][:16] + (f", revision {revision}" if revision else "")
    return found


def place_of_model(path: str, spec: SweepSpec, launcher: Commands) -> str:
    """Where a model or draft lies on the host: its path, or the folder of a name of the hub. Raises ValueError."""
    result = _fingerprint(path, spec, launcher)
    lines = _text(result.stdout).strip().splitlines()
    if result.exit_code != 0 or len(lines) != 2:
        raise ValueError(_ending(launcher, result))
    return lines[1]


def _fingerprint(path: str, spec: SweepSpec, launcher: Commands) -> CommandResult:
    argv = ("/bin/sh", "-c", FINGERPRINT, "fingerprint", path)
    return launcher.run(argv, FINGERPRINT_TIMEOUT_S, spec.engine.env)  # HF_HOME may be set there


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def _ending(launcher: Commands, result: CommandResult) -> str:
    """Last line, exit code and host of a command that failed."""
    lines = _text(result.stderr or result.stdout).strip().splitlines() or ["it printed nothing"]
    return f"{lines[-1][:300]} (exit code {result.exit_code}, host {launcher.host})"
