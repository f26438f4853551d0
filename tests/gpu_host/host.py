"""A folder that looks like a GPU host with SGLang on it: `make_host`. What it can do and what not: README.md."""

from __future__ import annotations

import json
import os
import shlex
import signal
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.gpu_host import folders
from tests.gpu_host.site.sglang.standin import faults, gpus, sensors

SITE = Path(__file__).parent / "site"


@dataclass(frozen=True)
class GpuHost:
    """One stand-in GPU host. `env` is what its servers get; put more STANDIN_ variables there by `make_host`."""

    folder: Path
    env: Mapping[str, str]

    @property
    def python(self) -> Path:
        """The host's Python: SGLang can be imported there."""
        return self.folder / "bin" / "python3"

    @property
    def command(self) -> tuple[str, ...]:
        """How a server is started there, before its flags."""
        return (str(self.python), "-m", "sglang.launch_server")

    @property
    def nvidia_smi(self) -> Path:
        """The host's nvidia-smi."""
        return self.folder / "bin" / "nvidia-smi"

    @property
    def state(self) -> Path:
        """Where the host's GPU memory, faults and launches are kept."""
        return self.folder / "state"

    def model(self, name: str) -> str:
        """The path of a model folder (see folders.py)."""
        return str(self.folder / "models" / name)

    def gpu_used(self) -> list[int]:
        """MiB in use on each GPU."""
        return gpus.used(self.state)

    def gpu_pids(self) -> set[int]:
        """Processes that hold memory of any GPU."""
        return {holder.pid for holder in gpus.holders(self.state) if holder.pid}

    def occupy(self, gpu: int, mib: int, pid: int) -> None:
        """Process `pid` holds so much memory of a GPU until it ends (0 MiB gives it back)."""
        gpus.hold(self.state, gpu, mib, pid)

    def leak(self, gpu: int, mib: int, pid: int, seconds: float) -> None:
        """When process `pid` ends, its memory stays in use for so long, with no process to blame."""
        gpus.leak(self.state, gpu, mib, pid, seconds)

    def set_driver(self, kind: str) -> None:
        """From now on nvidia-smi is one of another driver: 580, 470, gb10, mig-container."""
        sensors.choose(self.state, kind)

    def set_sensors(self, gpu: int, **values: str) -> None:
        """From now on the GPU shows these values; `__` in a name stands for a dot (clocks__sm="900")."""
        sensors.plant(self.state, gpu, {name.replace("__", "."): value for name, value in values.items()})

    def hang_nvidia_smi_once(self) -> None:
        """The next call of nvidia-smi gives no answer."""
        (self.state / f"smi-hangs.{time.monotonic_ns()}").touch()

    def set_fault(
        self, name: str, detail: str = "", *, when: Mapping[str, str] | None = None, launches: int | None = None
    ) -> None:
        """From now on launches have this fault: those whose arguments fit `when`, and only the next `launches`.

        `when` maps a flag as written (--speculative-num-steps) to its value, "true" for a bare flag. The first
        fault that fits counts. Raises ValueError when there is no such fault.
        """
        faults.Fault(name, detail)
        line: dict[str, object] = {"name": name, "detail": detail, "when": dict(when or {})}
        if launches is not None:
            line["launches"] = launches
        with (self.state / "faults").open("a") as stream:
            stream.write(json.dumps(line) + "\n")

    def clear_faults(self) -> None:
        """No launch from now on has a fault, and nvidia-smi is well again."""
        for name in ("faults", "smi"):
            (self.state / name).unlink(missing_ok=True)

    def num_launches(self) -> int:
        """Servers that got past their arguments so far."""
        path = self.state / "launches"
        return path.stat().st_size if path.exists() else 0

    def orphans(self) -> list[int]:
        """Processes that escaped from their server and still run."""
        path = self.state / "orphans"
        lines = path.read_text().split() if path.exists() else []
        pairs = [line.split(".") for line in lines]
        return [int(pid) for pid, began in pairs if gpus.start_time(int(pid)) == int(began)]

    def kill_orphans(self) -> None:
        """End them, and wait until they have: for the end of a test."""
        for pid in self.orphans():
            os.kill(pid, signal.SIGKILL)
        while self.orphans():
            time.sleep(0.01)


def make_host(folder: Path, version: str = "0.5.15.post1", **settings: str) -> GpuHost:
    """A new host in `folder`. `settings`: time_scale, wait_scale, jitter, max_s, fault (STANDIN_ variables)."""
    env = {"STANDIN_VERSION": version, "STANDIN_STATE": str(folder / "state")}
    env |= {f"STANDIN_{name.upper()}": value for name, value in settings.items()}
    for name in ("bin", "state", "models"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    folders.write_models(folder / "models")
    exports = "".join(
        f"{name}=${{{name}-{shlex.quote(value)}}}; export {name}\n" for name, value in sorted(env.items())
    )
    exports += f"PYTHONPATH={shlex.quote(str(SITE))}; PYTHONNOUSERSITE=1; export PYTHONPATH PYTHONNOUSERSITE\n"
    exports += f"PATH={shlex.quote(str(folder / 'bin'))}:$PATH; export PATH\n"
    run = f"exec {shlex.quote(sys.executable)}"
    scripts = {"python3": f'{run} "$@"\n', "nvidia-smi": f'{run} -S -s -m sglang.standin.nvidia_smi "$@"\n'}
    for name, last in scripts.items():
        path = folder / "bin" / name
        path.write_text(f"#!/bin/sh\n{exports}{last}")
        path.chmod(0o755)
    return GpuHost(folder, env)
