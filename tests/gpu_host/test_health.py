"""What is read of a host's hardware before a launch: the real script, on the stand-in's nvidia-smi and dmesg."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from launchers.host import HostLauncher, HostSettings
from launchers.shell import LocalShell
from sweeper.errors import SweepAborted
from sweeper.nights.breaker import Breaker
from sweeper.nights.health import read_health
from sweeper.rig import Rig
from tests.core.test_breaker import LIMITS, OFF_THE_BUS
from tests.core.test_loop import make_rig
from tests.fakes import RecordingView
from tests.gpu_host.host import GpuHost

pytestmark = pytest.mark.host


def rig_on(host: GpuHost, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Rig:
    monkeypatch.setenv("PATH", f"{host.folder / 'bin'}:{os.environ['PATH']}")
    rig = make_rig(folder, RecordingView())
    watched = rig.spec.host.model_copy(update={"watch_gpus": True, "state_dir": str(folder / "not" / "yet")})
    spec = rig.spec.model_copy(update={"host": watched})
    launcher = HostLauncher(LocalShell("here"), HostSettings("here", watched.state_dir))
    return replace(rig, spec=spec, launcher=launcher)


def log_of_kernel(host: GpuHost, *lines: str) -> None:
    """From now on the host's dmesg prints these."""
    program = host.folder / "bin" / "dmesg"
    (host.folder / "kernel.log").write_text("".join(f"{line}\n" for line in lines))
    program.write_text(f"#!/bin/sh\ncat '{host.folder}/kernel.log'\n")
    program.chmod(0o755)


def test_errors_of_the_hardware_are_seen_and_stop_the_sweep(
    host: GpuHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = rig_on(host, tmp_path, monkeypatch)
    log_of_kernel(host, "[ 1.0] nvidia: loading", "[ 2.0] usb 1-1: new device")
    first = read_health(rig)
    assert set(first.ecc.values()) == {0}
    assert len(first.ecc) == 8
    assert first.xids == ()
    assert first.host_free_gib is not None
    assert first.host_free_gib == pytest.approx(first.own_free_gib, abs=5)
    host.set_sensors(3, **{"ecc__errors__uncorrected__volatile__total": "2"})
    log_of_kernel(host, "[ 1.0] nvidia: loading", OFF_THE_BUS)
    with pytest.raises(SweepAborted, match=r"GPU 3: 2 new uncorrected[\s\S]*fallen off the bus"):
        Breaker(LIMITS.model_copy(update={"free_gib": 0}), first).check_host(read_health(rig), "here")


def test_a_driver_that_counts_no_errors_is_no_fault(
    host: GpuHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = rig_on(host, tmp_path, monkeypatch)
    log_of_kernel(host)
    for gpu in range(8):
        host.set_sensors(gpu, **{"ecc__errors__uncorrected__volatile__total": "[N/A]"})
    assert read_health(rig).ecc == {}
