"""The watch on real hosts: real shells, a real sshd, real processes, and a stand-in nvidia-smi with faults."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from launchers.base import LaunchSpec, ServerHandle, Shell
from launchers.group import GroupLauncher
from launchers.host import HostLauncher, HostSettings
from launchers.replies import quote
from launchers.shell import LocalShell
from launchers.ssh import Pace, SshShell
from sweeper.host_spec import HostSpec
from sweeper.measuring.gpu_watch import GpuWatch
from tests.gpu_host.host import GpuHost, make_host
from tests.launchers.conftest import stranger, until, unused_port
from tests.launchers.shells import AlteredShell
from tests.ssh.sshd import Sshd

pytestmark = pytest.mark.host
FAST = Pace(ping_s=0.2, tick_s=0.2, num_silent_ticks=8, beat_s=0.2, nap_s=0.2, num_silent_naps=15)


def altered(inner: Shell, host: GpuHost) -> Shell:
    """The shell on that host; nvidia-smi is given one second instead of ten."""
    path = quote(str(host.folder / "bin"))
    return AlteredShell(
        inner, lambda script: f"PATH={path}:$PATH\n{script.replace(' sample 1000 ', ' sample 100 ')}"
    )


@dataclass
class Work:
    """A server that works on GPUs 0 and 1 of a stand-in host."""

    launcher: HostLauncher
    host: GpuHost
    handle: ServerHandle

    def watch(self, every_s: float = 0.05) -> GpuWatch:
        spec = HostSpec(name="here", state_dir="~/x", port_low=1, port_high=1, gpu_sample_s=every_s)
        return GpuWatch(self.launcher, spec, self.handle, patience_s=20)


@contextlib.contextmanager
def working(launcher: HostLauncher, host: GpuHost) -> Iterator[Work]:
    spec = LaunchSpec(("sleep", "1000"), launcher.settings.port_low, f"s-{secrets.token_hex(4)}")
    handle = launcher.start(spec)
    try:
        for gpu in (0, 1):
            host.occupy(gpu, 60000, handle.pid)
        yield Work(launcher, host, handle)
    finally:
        launcher.stop(handle, grace_s=0)


def seen(watch: GpuWatch, count: int) -> bool:
    return watch.window().num_samples >= count


@pytest.fixture(scope="module")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    with Sshd(tmp_path_factory.mktemp("sshd")) as sshd:
        yield sshd


@pytest.fixture(params=["local", "ssh"])
def work(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Work]:
    """On this machine, and behind a real sshd."""
    host = make_host(tmp_path / "gpus")
    with contextlib.ExitStack() as ends:
        shell: Shell = LocalShell("here")
        if request.param == "ssh":
            remote = SshShell(request.getfixturevalue("sshd").target(), "here", FAST)
            ends.callback(remote.close)
            shell = remote
        port = unused_port()
        launcher = HostLauncher(altered(shell, host), HostSettings("here", str(tmp_path / "state"), port, port))
        yield ends.enter_context(working(launcher, host))


def test_a_quiet_window_has_figures_and_no_doubt(work: Work) -> None:
    with work.watch() as watch:
        until(lambda: seen(watch, 3), "it was sampled")
        assert work.launcher.is_alive(work.handle), "others may ask meanwhile"
    window = watch.window()
    assert window.gpus == tuple(range(8))
    assert (window.sm_clock_mhz[:3], window.throttled, window.others) == ((2430, 2430, 180), {}, ())
    assert (watch.doubts(), watch.notes()) == ((), ())
    assert watch.metrics()["gpu_sm_clock_mhz"] == 2430


def test_what_goes_wrong_meanwhile_is_told(work: Work) -> None:
    with stranger(("sleep", "1000")) as other, work.watch() as watch:
        until(lambda: seen(watch, 1), "it was sampled")
        work.host.hang_nvidia_smi_once()
        work.host.set_sensors(1, clocks_event_reasons__active="0x0000000000000020")
        work.host.occupy(0, 30000, other.pid)
        until(lambda: watch.window().others != () and watch.doubts() != () and watch.notes() != (), "all is seen")
    (line,) = watch.window().others
    assert line == f"GPU 0: pid {other.pid}: sleep 1000, 30000 MiB"
    (doubt,) = watch.doubts()
    assert doubt.startswith("sw_thermal_slowdown: GPU 1 in ")
    assert watch.notes() == ("1 sample of the GPUs failed: nvidia-smi gave no answer about GPUs in time",)


def test_a_broken_link_fails_nothing_and_is_survived(tmp_path: Path) -> None:
    host = make_host(tmp_path / "gpus")
    with Sshd(tmp_path / "sshd") as sshd, contextlib.ExitStack() as ends:
        remote = SshShell(sshd.target(), "here", FAST)
        ends.callback(remote.close)
        port = unused_port()
        launcher = HostLauncher(altered(remote, host), HostSettings("here", str(tmp_path / "state"), port, port))
        work = ends.enter_context(working(launcher, host))
        with work.watch() as watch:
            until(lambda: seen(watch, 2), "it was sampled")
            sshd.stop()
            sshd.start()
            before = watch.window().num_samples
            until(lambda: seen(watch, before + 2), "it is sampled again")
            assert launcher.is_alive(work.handle)
        assert watch.doubts() == ()


def test_both_hosts_of_a_server_are_watched(tmp_path: Path) -> None:
    hosts = [make_host(tmp_path / name) for name in ("a", "b")]
    launchers = []
    for name, host in zip("ab", hosts, strict=True):
        port = unused_port()
        settings = HostSettings(name, str(tmp_path / f"state-{name}"), port, port, gpus=(0, 1))
        launchers.append(HostLauncher(altered(LocalShell(name), host), settings))
    group = GroupLauncher(launchers)
    first, second = (LaunchSpec(("sleep", "1000"), each.settings.port_low, f"s-{each.host}") for each in launchers)
    handle = group.start(LaunchSpec(first.argv, first.port, first.nonce, others=(second,)))
    try:
        for host, pid in zip(hosts, (handle.pid, handle.others[0].pid), strict=True):
            host.occupy(0, 60000, pid)
        hosts[1].set_sensors(0, clocks_event_reasons__active="0x0000000000000080")
        spec = HostSpec(name="a", state_dir="~/x", port_low=1, port_high=1, gpu_sample_s=0.05)
        with GpuWatch(group, spec, handle, patience_s=20) as watch:
            until(lambda: seen(watch, 2), "both were sampled")
    finally:
        group.stop(handle, grace_s=0)
    assert watch.window().gpus == (0, 1, 0, 1)
    assert watch.window().others == ()
    assert watch.doubts()[0].startswith("hw_power_brake_slowdown: GPU 0 of node 1 in 100% of ")
