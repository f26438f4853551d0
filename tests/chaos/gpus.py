"""Faults of a GPU host, on the stand-in for SGLang and nvidia-smi: what only real GPUs can show is said."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sweeper.errors import FailureKind
from tests.chaos.stage import SEARCH, Stage
from tests.chaos.sweeps import STUDY, Sweep
from tests.chaos.table import fault
from tests.gpu_host.host import GpuHost, make_host

BY = "stand-in SGLang and nvidia-smi"
UNVERIFIED = f"{BY}; unverified on real GPUs"


@dataclass
class GpuSweep(Sweep):
    """A sweep of the engine sglang on a stand-in GPU host on this machine."""

    gpu: GpuHost | None = None

    @property
    def common(self) -> list[str]:
        """The preset for any SGLang host, on this machine, its answers short."""
        assert self.gpu is not None
        return [
            "preset=sglang_any", "host=local", f"study.name={STUDY}", "study.sampler=random",
            "host.watch_gpus=true", f"engine.command=[{','.join(self.gpu.command)}]",
            f"model.path={self.gpu.model('small-llama')}",
            f"space.speculative_draft_model_path={self.gpu.model('small-eagle3')}",
            "workload.max_tokens=16", "workload.num_prompts=2", "workload.repeats=1", "workload.max_repeats=1",
            "workload.warmup_max_requests=0", "workload.request_timeout_s=8", "budget.shortlist=0",
            "budget.least_gain_pct=0", "limits.start_s=60", "limits.stop_grace_s=2", "limits.free_gib=0",
            f"study.dir={self.folder}", *self.words,
        ]  # fmt: skip

    def left_behind(self) -> list[str]:
        """Processes that hold memory of the GPUs, and those that fled."""
        assert self.gpu is not None
        return [f"pid {pid} of a server" for pid in sorted({*self.gpu.gpu_pids(), *self.gpu.orphans()})]


def gpu_sweep(stage: Stage, *words: str) -> GpuHost:
    """The row's sweep: on a GPU host."""
    host = make_host(stage.folder / "gpu", time_scale="0.01", wait_scale="0.02")
    env = {"PATH": f"{host.folder / 'bin'}:{os.environ['PATH']}"}
    stage.use(
        GpuSweep(stage.folder, stage.house.zygote, words=(*SEARCH, "host.gpu_wait_s=4", *words), env=env, gpu=host)
    )
    return host


def second_launch(stage: Stage, name: str, detail: str = "", code: int = 0, says: str = "") -> list[FailureKind]:
    """The baseline undisturbed, then launches of which the first has the fault; how launches failed."""
    sweep = stage.sweep
    assert isinstance(sweep, GpuSweep)
    assert sweep.gpu is not None
    stage.ended(sweep.start("budget.trials=1"), 0)
    sweep.gpu.set_fault(name, detail, when={"--speculative-algorithm": "EAGLE3"}, launches=1)
    stage.ended(sweep.start("budget.trials=3"), code, says)
    failed = [n.failure.kind for t in sweep.trials() for n in t.launches if n.failure]
    stage.seen.append(", ".join(failed) or "measured")
    return failed


@fault(
    "GPU memory is free only after a while",
    "host",
    f"{BY}: 6 s after the server's end",
    "waited for, or host_dirty and tried again; goes on",
)
def memory_late(stage: Stage) -> None:
    gpu_sweep(stage)
    second_launch(stage, "gpu_memory_stuck", "6")


@fault("GPU memory that never frees", "host",
       f"{BY}: in use for good after the server's end, with no process to blame",
       "host_dirty until identical_failures, then 5, and how much on which GPU; later it goes on")  # fmt: skip
def memory_stuck(stage: Stage) -> None:
    host = gpu_sweep(stage, "limits.identical_failures=2")
    command = stage.sweep.start("budget.trials=3")
    stage.in_phase(command, "measuring", trial=0)
    host.leak(0, 30_000, min(host.gpu_pids()), 3600)
    stage.ended(command, 5, r"specsweep: [^\n]*")
    failed = [n.failure.kind for t in stage.sweep.trials() for n in t.launches if n.failure]
    stage.check(FailureKind.HOST_DIRTY in failed, f"{failed}: host_dirty")
    free(stage, host)


def free(stage: Stage, host: GpuHost) -> None:
    """The memory is free again: the stand-in's state is made anew."""
    for path in host.state.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
    stage.check(max(host.gpu_used()) < 1024, "the stand-in's GPUs are idle again")


@fault(
    "the port is stolen",
    "host",
    f"{BY}: another program listens on the port before the server does",
    "no number of it counts; tried again on another port",
)
def port_stolen(stage: Stage) -> None:
    gpu_sweep(stage)
    second_launch(stage, "port_stolen", "5")


@fault("somebody else uses a GPU", "host", f"{BY}: a process of somebody else holds 20 GiB from the start on",
       "5, and who; nothing of theirs is touched; once it has gone the sweep goes on")  # fmt: skip
def foreign(stage: Stage) -> None:
    host = gpu_sweep(stage, "limits.identical_failures=2")
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as other:
        host.occupy(0, 20000, other.pid)
        stage.ended(stage.sweep.start("budget.trials=3"), 5, r"specsweep: [^\n]*")
        stage.check(other.poll() is None, "theirs still runs")
        host.occupy(0, 0, other.pid)
        other.kill()


@fault("nvidia-smi hangs once", "host", f"{BY}: in the first launch", "asked again; goes on")
def smi_hangs(stage: Stage) -> None:
    host = gpu_sweep(stage, "host.gpu_sample_s=0.2")
    command = stage.sweep.start("budget.trials=3")
    stage.in_phase(command, "measuring", trial=0)
    host.hang_nvidia_smi_once()
    stage.ended(command, 0)
    stage.is_ended = True


@fault("nvidia-smi talks nonsense", "host", f"{BY}: for 6 s", "host_dirty, not a guess; goes on")
def smi_garbage(stage: Stage) -> None:
    gpu_sweep(stage)
    second_launch(stage, "nvidia_smi_garbage", "6")


@fault(
    "a process flees with its GPU memory",
    "host",
    f"{BY}: a child in a session of its own",
    "found and stopped; measured",
)
def flees(stage: Stage) -> None:
    gpu_sweep(stage)
    second_launch(stage, "orphan_memory", "setsid")


@fault(
    "a GPU is too hot", "host", f"{UNVERIFIED}: 97 C, limit 90", "5, and which GPU; cooled down the sweep goes on"
)
def hot(stage: Stage) -> None:
    host = gpu_sweep(stage, "limits.gpu_temperature_c=90", "host.gpu_sample_s=0.2")
    stage.ended(stage.sweep.start("budget.trials=1"), 0)
    host.set_sensors(0, temperature__gpu="97")
    stage.ended(stage.sweep.start("budget.trials=3"), 5, r"specsweep: [^\n]*")
    host.set_sensors(0, temperature__gpu="50")


def _fails_between(stage: Stage, act: Callable[[GpuHost], None]) -> None:
    host = gpu_sweep(stage)
    command = stage.sweep.start("budget.trials=3")
    stage.in_phase(command, "measuring", trial=0)
    act(host)
    stage.ended(command, 5, r"specsweep: [^\n]*")


@fault(
    "uncorrected ECC errors",
    "host",
    f"{UNVERIFIED}: the counter rises in the first launch",
    "5 before the next launch, and which GPU",
)
def ecc(stage: Stage) -> None:
    _fails_between(stage, lambda host: host.set_sensors(0, ecc__errors__uncorrected__volatile__total="7"))


@fault(
    "an Xid in the kernel's log",
    "host",
    f"{UNVERIFIED}: a `dmesg` of our own that prints Xid 79",
    "5 before the next launch, and the line",
)
def xid(stage: Stage) -> None:
    def act(host: GpuHost) -> None:
        dmesg(host.folder / "bin", "NVRM: Xid (PCI:0000:01:00): 79, pid=0, GPU has fallen off the bus.")

    _fails_between(stage, act)


def dmesg(folder: Path, line: str) -> None:
    """A program of that name which prints one line."""
    script = folder / "dmesg"
    script.write_text(f"#!/bin/sh\necho '[ 1.0] {line}'\n")
    script.chmod(0o755)
    time.sleep(0.1)
