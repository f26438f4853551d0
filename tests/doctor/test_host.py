"""What a host is found to be, from what it told; and that looking leaves no trace on a real one."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from launchers import looking
from launchers.host import HostLauncher, HostSettings
from launchers.looking import Pulse
from launchers.shell import LocalShell
from launchers.ssh_way import Way
from sweeper.doctor.finding import Level
from tests.doctor.asking import context, text, told, worst
from tests.launchers.shells import shell_program

pytestmark = pytest.mark.compose

LIMITS = ("Max open files            {}                20000                files     ",)
MEMORY = ("MemTotal:       24684092 kB", "MemAvailable:   22486632 kB")


@pytest.mark.parametrize(
    ("name", "good", "bad", "level"),
    [
        ("tools", {}, {"missing": "timeout"}, Level.WARNING),
        ("tools", {}, {"missing": "setsid"}, Level.ERROR),
        ("state_dir", {"state": "absent"}, {"state": "readonly"}, Level.ERROR),
        ("state_dir", {}, {"state": "nofolder"}, Level.ERROR),
        ("state_dir", {}, {"state": "link"}, Level.ERROR),
        ("state_dir", {"inodes": "5"}, {"inodes": "0"}, Level.ERROR),
        ("lock", {"lock": "free pid 7 on desk"}, {"lock": "held pid 7 on desk"}, Level.ERROR),
        ("limits", {"limit": LIMITS[0].format(65536)}, {"limit": LIMITS[0].format(1024)}, Level.WARNING),
        ("memory", {"memory": MEMORY}, {"memory": (MEMORY[0], "MemAvailable:   86632 kB")}, Level.WARNING),
        ("memory", {"memory": MEMORY}, {"memory": "MemTotal: lots"}, Level.WARNING),
        (
            "processors",
            {"cpus": "0-7", "cpuset": "0-7", "load": "0.10 0 0"},
            {"cpus": "0-7", "cpuset": "0-1,3", "load": "0.1"},
            Level.WARNING,
        ),
        (
            "processors",
            {"cpus": "0-7", "cpuset": "0-7", "load": "0.10 0"},
            {"cpus": "0-7", "cpuset": "0-7", "load": "9.00 0"},
            Level.WARNING,
        ),
    ],
)
def test_each_state_of_a_host_has_its_level(
    name: str, good: dict[str, str], bad: dict[str, str], level: Level
) -> None:
    assert worst(name, context(look=told(**good), way=None)) is Level.OK, text(name, context(look=told(**good)))
    assert worst(name, context(look=told(**bad), way=None)) is level


def test_over_ssh_the_lock_needs_flock() -> None:
    look = told(missing="flock")
    assert worst("tools", context(look=look, way=None)) is Level.WARNING
    assert worst("tools", context(look=look, way=Way())) is Level.ERROR


def test_shared_memory_counts_for_servers_over_several_gpus() -> None:
    look = told(shm="65536 65000", limit=LIMITS[0].format(9999))
    assert worst("limits", context(look=look)) is Level.OK
    assert "--shm-size" in text("limits", context("engine.flags.tp_size=2", look=look))


def test_a_cgroup_that_leaves_less_memory_is_told() -> None:
    look = told(memory=MEMORY, ceiling=("9223372036854771712", "8589934592", "max"))
    assert "a cgroup limits this login to 8.0 GiB" in text("memory", context(look=look))


def test_other_servers_are_told_once_without_their_children_and_secrets() -> None:
    look = told(
        server=(
            "10 1 - pid 10 of alice: python -m sglang.launch_server --api-key hunter2hunter2 --port 30000",
            "11 10 - pid 11 of alice: sglang::scheduler",
            "12 1 c19e3f8675 pid 12 of bob: llama-server",
            "nonsense \x1b[31m",
        )
    )
    found = text("servers", context(look=look))
    assert found.count("another inference server") == 1
    assert "pid 10 of alice: " in found
    assert "hunter2" not in found
    assert worst("servers", context("host.replace_server=30000", look=look)) is Level.OK
    assert worst("servers", context(look=told())) is Level.OK


@pytest.mark.parametrize(("free", "level"), [(None, Level.WARNING), (0.2, Level.ERROR), (50.0, Level.OK)])
def test_free_disk_is_held_to_the_limit_that_stops_a_sweep(free: float | None, level: Level) -> None:
    disk = {} if free is None else {"disk": f"900000000 {int(free * 1024**2)}"}
    assert worst("disk", context(look=told(**disk))) is level


@pytest.mark.parametrize(
    ("skew_s", "level"),
    [(0.1, Level.OK), (-3600.0, Level.WARNING), (None, Level.WARNING), (2.4, Level.OK), (3.0, Level.WARNING)],
)
def test_clocks_are_compared_within_the_time_of_the_round_trip(skew_s: float | None, level: Level) -> None:
    assert worst("clocks", context(way=Way(), pulse=Pulse(1.0, skew_s))) is level


@pytest.mark.parametrize(("trip_s", "level"), [(0.05, Level.OK), (1.2, Level.WARNING)])
def test_a_slow_way_is_told(trip_s: float, level: Level) -> None:
    assert worst("latency", context(way=Way(), pulse=Pulse(trip_s, 0.0))) is level


@pytest.fixture(params=["dash", "busybox"])
def launcher(request: pytest.FixtureRequest, tmp_path: Path) -> HostLauncher:
    shell = LocalShell("gpu1", shell_program(request.param, tmp_path))
    return HostLauncher(shell, HostSettings("gpu1", str(tmp_path / "state"), port_low=40100, port_high=40120))


@pytest.mark.host
def test_a_real_host_is_looked_at_and_nothing_is_made_there(launcher: HostLauncher, tmp_path: Path) -> None:
    look = looking.look_at_host(launcher)
    assert look.first("state") == "absent"
    assert look.first("place") == str(tmp_path)
    assert len(look.numbers("disk")) in (0, 2)  # the small busybox has no df
    assert "MemTotal" in " ".join(look.all("memory"))
    assert looking.look_at_gpus(launcher) is None
    assert looking.look_at_cards(launcher, {"topology": "topo -m"}) is None
    assert launcher.leftovers() == ()
    skew_s = looking.pulse(launcher).skew_s
    assert abs(0.0 if skew_s is None else skew_s) < 30  # nor a date
    assert not (tmp_path / "state").exists()


@pytest.mark.host
def test_a_held_lock_and_its_holder_are_seen_without_taking_it(launcher: HostLauncher) -> None:
    with launcher.hold():
        state, _, holder = looking.look_at_host(launcher).first("lock").partition(" ")
        assert state == "held"
        assert f"pid {os.getpid()} on " in holder
    assert looking.look_at_host(launcher).first("lock").startswith("free ")
    with launcher.hold():
        pass


@pytest.fixture
def listening() -> Iterator[int]:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        yield server.getsockname()[1]


@pytest.mark.host
def test_a_taken_port_is_told_with_who_has_it(listening: int, tmp_path: Path) -> None:
    ctx = context(f"host.port_low={listening}", f"host.port_high={listening}")
    settings = HostSettings("gpu1", str(tmp_path), port_low=listening, port_high=listening)
    ctx.launcher.settings = settings
    assert f"pid {os.getpid()}" in text("port", ctx)
    assert worst("port", ctx) is Level.ERROR


@pytest.mark.host
def test_the_functions_are_sound_shell() -> None:
    script = Path(looking.__file__).with_name("looking.sh")
    checked = subprocess.run(
        ["shellcheck", "-s", "sh", "-S", "warning", str(script)], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stdout
