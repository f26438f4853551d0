"""Everything with a side effect that a sweep works with, and the facts about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from launchers.base import Launcher
from launchers.clock import Clock
from sweeper.engines.base import Engine, HostFacts
from sweeper.interrupts import Interrupts
from sweeper.live import View
from sweeper.measuring.load import Load
from sweeper.serving.launch_trace import ServerRig
from sweeper.serving.placing import Placing
from sweeper.spec import ServerConfig, SweepSpec

_PROBE_TOKENS = 8


def nothing_stands() -> None:
    """There is nothing to make room for."""


@dataclass(frozen=True)
class Rig:
    """What a launch is made with.

    `loads`: one per workload, the first one first. `start_limit_s`: what earlier starts have taught; None: what
    the specification says. `make_room` is called before each launch: what stands on the host then, and may be
    stopped, is stopped. It raises SweepAborted, StopFailed and HostLost.
    """

    spec: SweepSpec
    engine: Engine
    launcher: Launcher
    clock: Clock
    facts: HostFacts
    view: View
    interrupts: Interrupts
    loads: tuple[Load, ...]
    start_limit_s: float | None = None
    make_room: Callable[[], None] = nothing_stands

    @property
    def baseline(self) -> ServerConfig:
        """The configuration without speculation, canonical."""
        base = ServerConfig(flags=self.spec.engine.flags, env=self.spec.engine.env)
        return self.engine.baseline(base, self.facts)

    @property
    def placing(self) -> Placing:
        """What makes the command lines of launches."""
        return Placing(self.spec, self.engine, self.facts)

    @property
    def watch_gpus(self) -> bool:
        """Whether the host's GPUs are looked at: as asked for, else where the engine runs on them."""
        asked = self.spec.host.watch_gpus
        return self.engine.on_gpus if asked is None else asked

    @property
    def server(self) -> ServerRig:
        """What starting and stopping a server needs."""
        limits = self.spec.limits
        if self.start_limit_s is not None:
            limits = limits.model_copy(update={"start_s": self.start_limit_s})
        first = self.loads[0]
        return ServerRig(
            engine=self.engine,
            launcher=self.launcher,
            clock=self.clock,
            limits=limits,
            model_path=self.facts.model_path,
            shielded=self.interrupts.shielded,
            watch_gpus=self.watch_gpus,
            probe=self.engine.request(first.warmup, first.workload, _PROBE_TOKENS),
        )
