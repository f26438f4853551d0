"""What the checks look at: each thing is asked of the host once, when the first check needs it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from launchers import looking
from launchers.base import CommandResult
from launchers.gpus import GpuLook
from launchers.host import HostLauncher
from launchers.looking import Told
from launchers.ssh import SshShell
from launchers.ssh_way import Way, walk
from launchers.standing import Standing
from sweeper import facts as host_facts
from sweeper.doctor.cards import QUESTIONS
from sweeper.engines.base import Engine, HostFacts
from sweeper.fitting import gpus_needed
from sweeper.kept_search import candidates_of
from sweeper.nights.health import HEALTH_TIMEOUT_S, Health, health_argv, parse_health
from sweeper.searching.candidates import Candidates
from sweeper.spec import ServerConfig, SweepSpec

_NO_TRACES: Mapping[str, str] = {"PYTHONDONTWRITEBYTECODE": "1"}
"""The server's own program is asked for its version and flags: its Python would keep what it compiles."""


@dataclass(frozen=True)
class Looking:
    """Runs commands on a host that leave nothing there."""

    launcher: HostLauncher

    @property
    def host(self) -> str:
        """The name of the host."""
        return self.launcher.host

    def run(self, argv: tuple[str, ...], timeout_s: float, env: Mapping[str, str] | None = None) -> CommandResult:
        """As `Launcher.run`."""
        return self.launcher.run(argv, timeout_s, {**(env or {}), **_NO_TRACES})


def no_notes(spec: SweepSpec, engine: Engine, facts: HostFacts) -> Sequence[str]:
    """Nothing is to be said."""
    return ()


@dataclass(frozen=True)
class Context:
    """A run that has not begun: its settings, its engine, and one of its hosts.

    `shown_secrets`: what of the command line shows a secret. `notes_on`: what `run` says once it knows the host.
    What asks the host raises HostLost; what refuses the settings, ConfigError.
    """

    spec: SweepSpec
    engine: Engine
    launcher: HostLauncher
    notes: Sequence[str] = ()
    notes_on: Callable[[SweepSpec, Engine, HostFacts], Sequence[str]] = no_notes

    @property
    def host(self) -> str:
        """The name of the host."""
        return self.launcher.host

    def close(self) -> None:
        """Close whatever connection there is."""
        if isinstance(self.launcher.shell, SshShell):
            self.launcher.shell.close()

    @property
    def commands(self) -> Looking:
        """How commands are run there."""
        return Looking(self.launcher)

    @property
    def uses_gpus(self) -> bool:
        """Whether a launch looks at the host's GPUs, as in `Rig.watch_gpus`."""
        asked = self.spec.host.watch_gpus
        return self.engine.on_gpus if asked is None else asked

    @property
    def base(self) -> ServerConfig:
        """What every launch is given."""
        return ServerConfig(flags=self.spec.engine.flags, env=self.spec.engine.env)

    @cached_property
    def way(self) -> Way | None:
        """The way to the host; None for this machine."""
        shell = self.launcher.shell
        return walk(shell.target, self.host) if isinstance(shell, SshShell) else None

    @cached_property
    def pulse(self) -> looking.Pulse:
        """Round trip and clocks."""
        return looking.pulse(self.launcher)

    @cached_property
    def look(self) -> Told:
        """The host itself."""
        return looking.look_at_host(self.launcher)

    @cached_property
    def standing(self) -> Standing:
        """What sweeps have left serving, or have stopped."""
        return Standing(self.launcher)

    @cached_property
    def gpus(self) -> GpuLook | None:
        """The watched GPUs and who holds them; None where there is no nvidia-smi."""
        return looking.look_at_gpus(self.launcher)

    @property
    def sees_gpus(self) -> bool:
        """Whether this run looks at GPUs, and there is an nvidia-smi that shows them."""
        return self.uses_gpus and self.gpus is not None

    @cached_property
    def cards(self) -> Told:
        """What nvidia-smi answers to the QUESTIONS; nothing where there is none."""
        return looking.look_at_cards(self.launcher, QUESTIONS) or Told()

    @cached_property
    def health(self) -> Health:
        """Errors of the GPUs' hardware, free disk."""
        argv = health_argv(self.spec.host.state_dir, on_gpus=self.uses_gpus)
        return parse_health(self.commands.run(argv, HEALTH_TIMEOUT_S).stdout.decode("utf-8", "replace"))

    @cached_property
    def version(self) -> str:
        """The engine's version."""
        return host_facts.engine_version(self.spec, self.engine, self.commands)

    @cached_property
    def known_flags(self) -> frozenset[str]:
        """The server's own flags; empty when its help cannot be had."""
        return host_facts.known_flags_of(self.spec, self.engine, self.commands)

    @cached_property
    def build(self) -> Mapping[str, str]:
        """What the server is built of."""
        return host_facts.engine_build(self.spec, self.engine, self.commands)

    @cached_property
    def model(self) -> tuple[str, str]:
        """The model's path on the host and its fingerprint; two empty texts for one that `run` prepares first."""
        return ("", "") if self.spec.model.prepare else host_facts.located_model(self.spec, self.commands)

    @cached_property
    def drafts(self) -> Mapping[str, str | ValueError]:
        """What else is loaded: as it is named, to where it lies or why it cannot be found."""
        found: dict[str, str | ValueError] = {}
        for path in self.engine.model_paths(host_facts.all_values(self.spec)):
            try:
                found[path] = host_facts.place_of_model(path, self.spec, self.commands)
            except ValueError as mistake:
                found[path] = mistake
        return found

    @cached_property
    def files(self) -> Mapping[str, str | None]:
        """The small files that the engine's rules read."""
        wanted = self.engine.host_files(host_facts.all_values(self.spec), self.model[0])
        return {name: host_facts.text_of(name, self.commands) for name in wanted}

    @cached_property
    def gpu_names(self) -> tuple[str, ...]:
        """The names of all GPUs, as the engine's rules are given them."""
        return host_facts.gpu_names_of(self.commands)

    @cached_property
    def facts(self) -> HostFacts:
        """What `run` would read before its first launch, of an engine and a model that can be found."""
        return HostFacts(
            engine_version=self.version,
            model_path=self.model[0],
            model_fingerprint=self.model[1],
            files=self.files,
            known_flags=self.known_flags,
            gpu_names=self.gpu_names,
            build={
                **self.build,
                **(host_facts.gpu_policy(self.spec, self.commands) if self.gpu_names else {}),
                **host_facts.draft_build(self.spec, self.engine, self.commands),
            },
        )

    @cached_property
    def candidates(self) -> Candidates:
        """The space under the engine's rules on this host."""
        return candidates_of(self.spec.space, self.base, self.engine, self.facts)

    @cached_property
    def weights(self) -> Mapping[str, Told]:
        """What lies in each model and draft that was found, by its place on the host."""
        places = [self.model[0], *(place for place in self.drafts.values() if isinstance(place, str))]
        paths = tuple(dict.fromkeys(place for place in places if place.startswith("/")))
        return dict(zip(paths, looking.look_at_models(self.launcher, paths), strict=True)) if paths else {}

    @cached_property
    def num_gpus(self) -> int:
        """How many GPUs a server takes on each host; 0: unknown or none."""
        return gpus_needed(self.spec, self.engine)
