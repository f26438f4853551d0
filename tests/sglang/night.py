"""Launches of the real engine over a real sshd on the stand-in GPU host: what a sweep does, without its study."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from launchers.base import Launcher
from launchers.clock import SystemClock
from sweeper.commands.hosts import make_launcher
from sweeper.config import load
from sweeper.engines.registry import engine_for
from sweeper.facts import read_host_facts
from sweeper.interrupts import Interrupts
from sweeper.measuring.rendering import rendered_loads
from sweeper.records import LaunchRecord, Proposal, Purpose
from sweeper.rig import Rig
from sweeper.spec import FlagValue, ServerConfig
from sweeper.trial import run_launch
from tests.fakes import RecordingView
from tests.gpu_host.host import GpuHost
from tests.launchers.conftest import unused_port
from tests.ssh.sshd import Sshd

EAGLE3: Mapping[str, FlagValue] = {
    "speculative_algorithm": "EAGLE3",
    "speculative_draft_attention_backend": "triton",
    "speculative_num_steps": 3,
    "speculative_eagle_topk": 1,
    "speculative_num_draft_tokens": 4,
}


def overrides(host: GpuHost, sshd: Sshd, folder: Path) -> list[str]:
    """The packaged preset for Kimi, turned to the stand-in, its answers kept short."""
    port = unused_port()  # several nights on one machine keep out of each other's way
    drafts = f"choice('{host.model('kimi-k2.5-eagle3')}','{host.model('other-eagle3')}')"
    return [
        "preset=kimi_k25_eagle3_8gpu",
        "host.ssh.destination=gpu1",
        f"host.ssh.config_file={sshd.config('gpu1')}",
        f"host.ssh.known_hosts={sshd.known_hosts}",
        f"host.state_dir={folder / 'host-state'}",
        f"engine.command=[{','.join(host.command)}]",
        f"model.path={host.model('kimi-k2.5')}",
        f"study.dir={folder}",
        f"space.speculative_draft_model_path={drafts}",
        "workload.max_tokens=40",
        "workload.repeats=1",
        "workload.warmup_max_requests=1",
        "limits.start_s=60",
        f"host.port_low={port}",
        f"host.port_high={port}",
    ]


def sshd_path(host: GpuHost) -> str:
    """The PATH of a user who logs in there: the stand-in's nvidia-smi comes first."""
    return f"{host.folder / 'bin'}:/usr/local/bin:/usr/bin:/bin"


@dataclass
class Night:
    """A held host and what a launch on it needs."""

    host: GpuHost
    rig: Rig
    launches: list[LaunchRecord] = field(default_factory=list)

    @property
    def launcher(self) -> Launcher:
        """The launcher of the rig."""
        return self.rig.launcher

    def launch(self, limit_s: float | None = None, **flags: FlagValue) -> LaunchRecord:
        """One launch with these flags beside the preset's own; `limit_s`: how long its start may take."""
        spec, facts = self.rig.spec, self.rig.facts
        asked = ServerConfig(flags={**spec.engine.flags, **flags}, env=spec.engine.env)
        canonical = self.rig.engine.canonical(asked, facts)
        number = len(self.launches)
        proposal = Proposal(
            trial_number=number, launch_number=0, purpose=Purpose.SEARCH, requested=asked, canonical=canonical
        )
        saved: dict[int, LaunchRecord] = {}

        def save(record: LaunchRecord, _files: Mapping[str, bytes]) -> LaunchRecord:
            saved[number] = record
            return record

        rig = self.rig if limit_s is None else replace(self.rig, start_limit_s=limit_s)
        self.launches.append(run_launch(proposal, rig, save))
        assert saved[number] == self.launches[-1]
        return self.launches[-1]

    def set_max_tokens(self, count: int) -> None:
        """How long the answers of later launches are."""
        first, *more = self.rig.loads
        shorter = replace(first, workload=first.workload.model_copy(update={"max_tokens": count}))
        self.rig = replace(self.rig, loads=(shorter, *more))

    def eagle3(self, limit_s: float | None = None, **flags: FlagValue) -> LaunchRecord:
        """The same with EAGLE-3, three steps in a chain."""
        draft = self.host.model("kimi-k2.5-eagle3")
        return self.launch(limit_s, **{**EAGLE3, "speculative_draft_model_path": draft, **flags})

    def left_behind(self) -> list[str]:
        """What is still on the host of what was launched: GPU memory, processes, taken ports."""
        found = [f"GPU {gpu}: {mib} MiB" for gpu, mib in enumerate(self.host.gpu_used()) if mib > 100]
        found += [f"pid {pid} escaped" for pid in self.host.orphans()]
        found += [f"server {server}" for server in self.launcher.stop_leftovers(1.0)]
        return found


@contextlib.contextmanager
def night(host: GpuHost, sshd: Sshd, folder: Path, *more: str) -> Iterator[Night]:
    """The host, held; what ran there is stopped in the end."""
    spec = load([*overrides(host, sshd, folder), *more]).spec
    engine, launcher = engine_for(spec.engine.name), make_launcher(spec.host)
    with launcher.hold():
        facts = read_host_facts(spec, engine, launcher)
        loads = rendered_loads(spec, engine, launcher, facts)
        view = RecordingView()
        rig = Rig(spec, engine, launcher, SystemClock(), facts, view, Interrupts(view.notice), loads)
        try:
            yield Night(host, rig)
        finally:
            launcher.stop_leftovers(1.0)
