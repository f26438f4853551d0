"""Looks at the GPUs of a working server: real processes, real shells, and a stand-in for nvidia-smi."""

from __future__ import annotations

from pathlib import Path

import pytest

from launchers.base import Shell
from launchers.host import HostLauncher, HostSettings
from launchers.replies import quote
from tests.gpu_host.host import GpuHost, make_host
from tests.launchers.conftest import Bench, stranger
from tests.launchers.shells import AlteredShell, quick_in

pytestmark = pytest.mark.host


@pytest.fixture
def host(tmp_path: Path) -> GpuHost:
    return make_host(tmp_path / "gpus")


@pytest.fixture
def gpus(bench: Bench, host: GpuHost) -> Bench:
    """The bench on a host with eight GPUs, whose nvidia-smi is given one second instead of ten."""
    return on_gpus(bench, bench.launcher.shell, host)


def on_gpus(bench: Bench, inner: Shell, host: GpuHost, **settings: int | tuple[int, ...]) -> Bench:
    path = quote(str(host.folder / "bin"))
    shell = AlteredShell(
        inner, lambda script: f"PATH={path}:$PATH\n{script.replace(' sample 1000 ', ' sample 100 ')}"
    )
    made = HostSettings("here", str(bench.state_dir), bench.port, bench.port, **settings)  # type: ignore[arg-type]
    return Bench(HostLauncher(shell, made), bench.folder, bench.port, bench.token)


@quick_in("busybox", "ssh")
def test_the_gpus_of_a_working_server_are_seen(gpus: Bench, host: GpuHost) -> None:
    handle = gpus.start_stubborn("tree", "scheduler", "plain")
    ours = [gpus.pid("scheduler"), gpus.pid("plain")]
    with stranger(("sleep", "1000")) as other:
        for pid in ours:
            host.occupy(0, 20000, pid)
        host.occupy(1, 30000, other.pid)
        host.occupy(1, 900, gpus.pid("plain"))
        host.set_sensors(1, clocks_event_reasons__active="0x0000000000000048", clocks__sm="900")
        sample = gpus.launcher.gpu_sample(handle)
    gpus.launcher.stop(handle, grace_s=0)
    assert sample is not None
    assert (len(sample.gpus), sample.problems, sample.is_stuck) == (8, (), False)
    busy, slow, *_, idle = sample.gpus
    assert (busy.memory_used_mib, busy.listed_mib, busy.utilization_pct) == (40004, 40000, 97)
    assert (busy.sm_clock_mhz, busy.max_sm_clock_mhz, busy.memory_clock_mhz) == (2430, 3090, 12481)
    assert (busy.temperature_c, busy.power_w, busy.power_limit_w, busy.reasons) == (61, 412.33, 600, ())
    assert (slow.sm_clock_mhz, slow.reasons) == (900, ("hw_slowdown", "hw_thermal_slowdown"))
    assert (idle.works, idle.reasons) == (False, ("gpu_idle",))
    held = {(it.index, it.pid): it.is_ours for it in sample.holders}
    assert held == {(0, ours[0]): True, (0, ours[1]): True, (1, other.pid): False}
    assert f"pid {other.pid}: sleep 1000" in [it.description for it in sample.holders]


@quick_in("busybox")
def test_a_process_that_only_a_stop_would_find_is_the_servers_own(gpus: Bench, host: GpuHost) -> None:
    handle = gpus.start_stubborn("mute", "mute", "scheduler")
    escapee = gpus.pid("scheduler")  # of another session, orphaned, without environment or output
    host.occupy(0, 20000, escapee)
    sample = gpus.launcher.gpu_sample(handle)
    gpus.launcher.stop(handle, grace_s=0.2)
    assert sample is not None
    assert [(it.pid, it.is_ours) for it in sample.holders] == [(escapee, True)]


def test_a_process_that_began_after_the_question_is_not_meant(gpus: Bench, host: GpuHost) -> None:
    shell = AlteredShell(gpus.launcher.shell, lambda script: script.replace("ASKED=$BEGAN", "ASKED=0"))
    launcher = HostLauncher(shell, gpus.launcher.settings)
    handle = gpus.start_stubborn("plain")
    with stranger(("sleep", "1000")) as other:
        host.occupy(0, 30000, other.pid)
        sample = launcher.gpu_sample(handle)
    gpus.launcher.stop(handle, grace_s=0)
    assert sample is not None
    assert [(it.pid, it.is_ours) for it in sample.holders] == [(other.pid, None)]


def test_a_look_notes_nothing_on_the_host(gpus: Bench, host: GpuHost) -> None:
    handle = gpus.start_stubborn("plain")
    folder = gpus.state_dir / "servers" / handle.server_id
    (folder / "seen").unlink()
    with stranger(("sleep", "1000")) as other:
        host.occupy(0, 30000, other.pid)
        gpus.launcher.gpu_sample(handle)
    assert not (folder / "seen").exists(), "other verbs rely on what stands there, at the same time"
    assert [path.name for path in gpus.state_dir.iterdir()] == ["servers"], "answers are deleted"
    gpus.launcher.stop(handle, grace_s=0)


@pytest.mark.parametrize(
    ("driver", "memory", "limit", "utilization"),
    [("470", 30004, 600, 97), ("gb10", None, None, 97), ("mig-container", None, 600, None)],
)
def test_other_drivers_are_asked_for_what_they_know(
    gpus: Bench, host: GpuHost, driver: str, memory: int | None, limit: int | None, utilization: int | None
) -> None:
    host.set_driver(driver)
    handle = gpus.start_stubborn("plain")
    host.occupy(0, 30000, handle.pid)
    host.set_sensors(0, clocks_event_reasons__active="0x0000000000000004")
    sample = gpus.launcher.gpu_sample(handle)
    gpus.launcher.stop(handle, grace_s=0)
    assert sample is not None
    gpu = sample.gpus[0]
    assert (gpu.memory_used_mib, gpu.power_limit_w, gpu.utilization_pct) == (memory, limit, utilization)
    assert (gpu.reasons, sample.problems) == (("sw_power_cap",), ())
    assert [it.is_ours for it in sample.holders] == [True]


def test_a_hang_costs_one_sample(gpus: Bench, host: GpuHost) -> None:
    handle = gpus.start_stubborn("plain")
    host.hang_nvidia_smi_once()
    first, second = gpus.launcher.gpu_sample(handle), gpus.launcher.gpu_sample(handle)
    gpus.launcher.stop(handle, grace_s=0)
    assert first is not None
    assert second is not None
    assert (first.gpus, first.problems) == ((), ("nvidia-smi gave no answer about GPUs in time",))
    assert (len(second.gpus), second.problems) == (8, ())


def test_only_the_hosts_own_gpus_are_looked_at(bench: Bench, host: GpuHost) -> None:
    gpus = on_gpus(bench, bench.launcher.shell, host, gpus=(2, 5))
    handle = gpus.start_stubborn("plain")
    host.occupy(1, 30000, handle.pid)
    sample = gpus.launcher.gpu_sample(handle)
    gpus.launcher.stop(handle, grace_s=0)
    assert sample is not None
    assert ([gpu.index for gpu in sample.gpus], sample.holders) == ([2, 5], ())


def test_a_host_without_the_program_gives_no_sample(bench: Bench) -> None:
    with bench.running() as handle:
        assert bench.launcher.gpu_sample(handle) is None
