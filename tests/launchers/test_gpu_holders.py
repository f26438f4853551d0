"""The GPU gate and the end of GPU holders, on real processes and a stand-in nvidia-smi."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from launchers.errors import HostDirty
from launchers.gpus import Gpu, GpuReading
from launchers.host import HostLauncher, HostSettings
from tests.fakes import FakeClock
from tests.launchers.conftest import Bench, is_running, stat, stranger, until
from tests.launchers.shells import AlteredShell, quick_in, toothless
from tests.launchers.smi import GpuShell, Smi

pytestmark = pytest.mark.host


@pytest.fixture
def smi(bench: Bench) -> Smi:
    return Smi(bench.folder / "it's a host")


@pytest.fixture
def gpu_bench(bench: Bench, smi: Smi) -> Bench:
    """The bench on a host that has an nvidia-smi."""
    settings = HostSettings("here", str(bench.state_dir), bench.port, bench.port, gpu_wait_s=1.0)
    launcher = HostLauncher(GpuShell(bench.launcher.shell, smi), settings, FakeClock())
    return Bench(launcher, bench.folder, bench.port, bench.token)


@quick_in("busybox", "ssh")
def test_a_host_is_asked_and_answers(gpu_bench: Bench, smi: Smi) -> None:
    smi.says(4, 5)
    assert gpu_bench.launcher.settle() == GpuReading(
        (Gpu(0, "NVIDIA H200", "GPU-0", 4, 143771), Gpu(1, "NVIDIA H200", "GPU-1", 5, 143771))
    )
    assert smi.asked() == [
        "--query-gpu=index,name,uuid,memory.used,memory.total --format=csv,noheader,nounits",
        "--query-compute-apps=gpu_uuid,pid,process_name,used_memory --format=csv,noheader,nounits",
    ]
    assert list(gpu_bench.state_dir.iterdir()) == [], "its answers are deleted"


def test_a_host_without_the_program_says_so(bench: Bench) -> None:
    if shutil.which("nvidia-smi", path="/usr/bin:/usr/local/bin:/usr/local/nvidia/bin"):
        pytest.skip("this machine has an nvidia-smi")
    assert bench.launcher.settle() is None


@quick_in("busybox")
def test_a_server_and_a_stranger_on_a_gpu_are_told_apart(gpu_bench: Bench, smi: Smi) -> None:
    handle = gpu_bench.start_stubborn("tree", "scheduler", "plain")
    with stranger(("sleep", "1000")) as other:
        ours = [gpu_bench.pid("scheduler"), gpu_bench.pid("plain")]
        lines = "".join(f"GPU-0, {pid}, python3, 30000\n" for pid in (*ours, other.pid, 4194304))
        smi.says(70000, processes=lines)
        with pytest.raises(HostDirty) as dirty:
            gpu_bench.launcher.settle()
    (line,) = dirty.value.holders
    for pid in ours:  # one is known by its marker, the other, without an environment, by its output
        assert f"pid {pid}: " in line
    assert line.count(f"of specsweep's server {handle.server_id}") == 2
    assert f"pid {other.pid}: sleep 1000" in line
    assert "pid 4194304: python3, 30000 MiB (not visible here" in line
    gpu_bench.launcher.stop(handle, grace_s=0)


def test_control_characters_of_a_host_are_not_shown(gpu_bench: Bench, smi: Smi) -> None:
    smi.says_text("\x1b[31mNVIDIA-SMI has failed\x07\n", code=9)
    with pytest.raises(HostDirty) as dirty:
        gpu_bench.launcher.settle()
    assert dirty.value.holders == ("exit code 9: [31mNVIDIA-SMI has failed",)


def hanging(smi: Smi) -> list[int]:
    return [int(pid) for pid in (smi.folder / "hanging").read_text().split()]


@quick_in("busybox")
def test_an_nvidia_smi_that_hangs_is_killed_with_its_children(gpu_bench: Bench, smi: Smi) -> None:
    (smi.folder / "hang").touch()
    with pytest.raises(HostDirty, match="gave no answer and was killed"):
        gpu_bench.launcher.settle()
    assert len(smi.asked()) == 1, "the second question is not asked"
    until(lambda: not any(map(is_running, hanging(smi))), "all of it is gone")


def test_an_nvidia_smi_that_survives_sigkill_is_not_waited_for(gpu_bench: Bench, smi: Smi) -> None:
    (smi.folder / "hang").touch()
    launcher = HostLauncher(AlteredShell(gpu_bench.launcher.shell, toothless), gpu_bench.launcher.settings)
    try:
        with pytest.raises(HostDirty, match="does not even end on SIGKILL"):
            launcher.settle()
    finally:
        for pid in hanging(smi):
            os.kill(pid, signal.SIGKILL)
        until(lambda: not any(map(is_running, hanging(smi))), "the test ended it")


@quick_in("busybox")
def test_an_orphan_that_kept_nothing_but_gpu_memory_is_ended(gpu_bench: Bench, smi: Smi) -> None:
    handle = gpu_bench.start_stubborn("mute", "mute", "scheduler")
    escapee = gpu_bench.pid("scheduler")
    smi.says(70000, processes=f"GPU-0, {escapee}, sglang::scheduler, 69000\n")
    assert gpu_bench.launcher.stop(handle, grace_s=0.2).num_processes == 3
    assert not is_running(escapee)


def origin_of(pid: int) -> str:
    return f"{stat(pid)[1]}\n{Path(f'/proc/{pid}/cgroup').read_text()}"


@contextmanager
def orphan(bench: Bench, mode: str, *, env: dict[str, str] | None = None) -> Iterator[int]:
    """A process of our user and our cgroups that somebody else left behind."""
    script = f'"$@" > {bench.folder}/other 2>&1 & echo $!'
    argv = ("sh", "-c", script, "sh", *bench.stubborn_argv(mode))
    with stranger(argv, env=env, stdout=-1) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        parent.wait()
        until(lambda: (mode, pid) in bench.pids(), "the orphan is ready")
        try:
            yield pid
        finally:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize(
    ("mode", "on_gpu"), [("plain", True), ("scheduler", False)], ids=["another's job", "not on a GPU"]
)
def test_somebody_elses_orphan_is_left_alone(gpu_bench: Bench, smi: Smi, mode: str, on_gpu: bool) -> None:
    handle = gpu_bench.start_stubborn("deaf")
    origin = (gpu_bench.state_dir / "servers" / handle.server_id / "origin").read_text()
    with orphan(gpu_bench, mode) as other:
        until(lambda: origin_of(other) == origin, "it is an orphan as a leader is")
        smi.says(70000, processes=f"GPU-0, {other}, python3, 69000\n" if on_gpu else "")
        assert gpu_bench.launcher.stop(handle, grace_s=0).num_processes == 2
        assert is_running(other)


def test_a_stop_succeeds_although_nvidia_smi_fails(gpu_bench: Bench, smi: Smi) -> None:
    smi.says_text("Failed to initialize NVML\n", code=255)
    handle = gpu_bench.start_stubborn("plain")
    with orphan(gpu_bench, "scheduler"):
        assert gpu_bench.launcher.stop(handle, grace_s=5).num_processes == 2
    assert len(smi.asked()) == 1


def test_a_stop_without_a_suspect_does_not_ask_nvidia_smi(gpu_bench: Bench, smi: Smi) -> None:
    handle = gpu_bench.start_stubborn("tree", "scheduler", "plain")
    gpu_bench.launcher.stop(handle, grace_s=0)
    assert smi.asked() == []
