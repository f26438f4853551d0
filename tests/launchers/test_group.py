"""A server on several hosts is one server: all of it runs, or none."""

from __future__ import annotations

import os
import secrets
import signal
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from launchers.base import Launcher, LaunchSpec, ServerHandle, StopReport
from launchers.errors import HostBusy, HostDirty, HostLost, LauncherError, StartFailed, StopFailed
from launchers.group import TAIL_BYTES, GroupLauncher, spliced
from launchers.host import HostLauncher, HostSettings
from launchers.shell import LocalShell
from tests.launchers.conftest import Bench, is_running, until, unused_port, with_token
from tests.launchers.scripted import Scripted

HEADS = ServerHandle("n0", "a", 10, 20, "b", 30000, "/log", "n0")
HANDLE = replace(HEADS, others=(replace(HEADS, host="b"),))
SPEC = LaunchSpec(("serve",), 30000, "n0", others=(LaunchSpec(("serve",), 30000, "n0"),))
STOPPED = ("stopped", "143 2 150 yes TERM")
STARTED = ("started", "10 20 b\n/log")
Answer = tuple[str, str] | LauncherError


def group(a: list[Answer], b: list[Answer]) -> tuple[Launcher, Scripted, Scripted]:
    """A group of two hosts that give these answers."""
    one, two = Scripted(*a, name="a"), Scripted(*b, name="b")
    hosts = [HostLauncher(shell, HostSettings(shell.name, "/state", gpu_wait_s=0)) for shell in (one, two)]
    return GroupLauncher(hosts), one, two


def test_a_group_starts_every_node_with_its_own_command() -> None:
    pair, one, two = group([STARTED], [STARTED])
    assert pair.start(SPEC) == HANDLE
    assert (one.verbs, two.verbs, pair.host) == (["start"], ["start"], "a+b")


def test_a_node_that_cannot_start_has_the_others_stopped() -> None:
    pair, one, _ = group([STARTED, STOPPED], [("dirty", "pid 7: x")])
    with pytest.raises(HostDirty, match="port 30000 on b is taken by pid 7: x"):
        pair.start(SPEC)
    assert one.verbs == ["start", "stop"]


def test_a_half_start_that_cannot_be_ended_ends_the_sweep() -> None:
    pair, _, _ = group([STARTED, ("survivors", "pid 10: serve")], [("dirty", "pid 7: x")])
    with pytest.raises(StopFailed) as failed:
        pair.start(SPEC)
    assert failed.value.survivors == ("a: pid 10: serve",)


def test_a_half_start_whose_end_is_unknown_says_so() -> None:
    pair, _, _ = group([STARTED, HostLost("a is gone")], [("dirty", "pid 7: x")])
    with pytest.raises(HostDirty) as dirty:
        pair.start(SPEC)
    assert dirty.value.__notes__ == ["whether a node of the server still runs is unknown: a is gone"]


@pytest.mark.parametrize("others", [(), (SPEC, SPEC)])
def test_a_server_for_another_number_of_hosts_is_refused(others: tuple[LaunchSpec, ...]) -> None:
    pair, one, _ = group([], [])
    with pytest.raises(StartFailed, match=r"hosts, not for a\+b"):
        pair.start(replace(SPEC, others=others))
    assert one.verbs == []
    with pytest.raises(ValueError, match="are other hosts"):
        pair.is_alive(HEADS)


def test_a_group_is_of_different_hosts() -> None:
    host = HostLauncher(LocalShell(), HostSettings("a"))
    for hosts in ([], [host], [host, host]):
        with pytest.raises(ValueError, match="different names"):
            GroupLauncher(hosts)


def test_a_server_is_alive_while_all_nodes_are() -> None:
    up, down = ("status", "running - 5"), ("status", "exited 1 5")
    pair, _, _ = group([up, up], [up, down, ("logs", "why")])
    assert (pair.is_alive(HANDLE), pair.is_alive(HANDLE)) == (True, False)


def test_the_exit_code_is_that_of_the_node_that_ended_first() -> None:
    up = ("status", "running - 5")
    pair, _, _ = group(
        [up, ("status", "exited 137 5")], [("status", "exited 3 5"), ("logs", "x"), ("status", "exited 3 5")]
    )
    assert not pair.is_alive(HANDLE)
    assert pair.exit_code(HANDLE) == 3
    assert group([up], [up])[0].exit_code(HANDLE) is None


def test_a_look_at_a_lost_host_is_neither_yes_nor_no() -> None:
    with pytest.raises(HostLost, match="b is gone"):
        group([("status", "running - 5")], [HostLost("b is gone")])[0].is_alive(HANDLE)


def test_stop_reports_are_added_up() -> None:
    pair, _, _ = group([STOPPED], [("stopped", "137 3 250 no TERM KILL")])
    assert pair.stop(HANDLE, 1) == StopReport(143, ("TERM", "KILL"), 5, 2.5, port_free=False)


def test_every_host_is_stopped_whatever_the_others_do() -> None:
    pair, one, two = group([HostLost("a is gone")], [("survivors", "pid 7: serve")])
    with pytest.raises(StopFailed, match="server n0 on b survived") as failed:
        pair.stop(HANDLE, 1)
    assert failed.value.survivors == ("b: pid 7: serve",)
    assert failed.value.__notes__ == ["besides, on a: a is gone"]
    assert (one.verbs, two.verbs) == (["stop"], ["stop"])


def test_gpus_of_all_hosts_are_told_together() -> None:
    gpu, pruned = ("gpus", "code gpu 0\ngpu 0, H200, GPU-{}, 4, 9\ncode app 0"), ("nosmi", "")
    pair, _, _ = group([(gpu[0], gpu[1].format("a"))], [(gpu[0], gpu[1].format("b"))])
    reading = pair.settle()
    assert reading is not None
    assert [each.uuid for each in reading.gpus] == ["GPU-a", "GPU-b"]
    assert group([pruned], [pruned])[0].settle() is None


def test_dirty_gpus_are_told_with_their_hosts() -> None:
    full = ("gpus", "code gpu 0\ngpu 0, H200, GPU-a, 5000, 9000\ncode app 0")
    pair, _, _ = group([full], [full])
    with pytest.raises(HostDirty, match=r"on a is still held.*on b is still held") as dirty:
        pair.settle()
    assert [holder[:9] for holder in dirty.value.holders] == ["a: GPU 0 ", "b: GPU 0 "]


chunks = st.lists(st.tuples(st.integers(0, 30), st.binary(max_size=10)), max_size=3)


@given(log=st.binary(max_size=30), inserts=chunks, start=st.integers(0, 60), count=st.integers(0, 60))
def test_any_part_of_a_log_with_inserts_is_that_part_of_the_whole(
    log: bytes, inserts: list[tuple[int, bytes]], start: int, count: int
) -> None:
    inserts = sorted((min(offset, len(log)), text) for offset, text in inserts)
    whole, shift = log, 0
    for offset, text in inserts:
        whole = whole[: offset + shift] + text + whole[offset + shift :]
        shift += len(text)
    assert (
        spliced(lambda first, number: log[first : first + number], inserts, start, count)
        == whole[start : start + count]
    )


class Pair:
    """Two hosts, which are this machine with two state folders, and the group of both."""

    def __init__(self, folder: Path) -> None:
        self.token = f"token-{secrets.token_hex(8)}"
        self.benches = []
        for name in ("one", "two"):
            port = unused_port()
            (folder / name).mkdir()
            settings = HostSettings(name, str(folder / name / "state"), port, port)
            launcher = HostLauncher(LocalShell(name), settings)
            self.benches.append(Bench(launcher, folder / name, port, self.token))
        self.launcher = GroupLauncher([bench.launcher for bench in self.benches])

    def spec(self, first: str, second: str) -> LaunchSpec:
        one, two = self.benches
        return replace(one.stubborn(first), others=(two.stubborn(second),))

    def start(self, first: str, second: str) -> ServerHandle:
        handle = self.launcher.start(self.spec(first, second))
        for bench, mode in zip(self.benches, (first, second), strict=True):
            until(lambda bench=bench, mode=mode: mode in dict(bench.pids()), f"{mode} is ready")  # type: ignore[misc]
        return handle


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    """Afterwards nothing of the test may run any more."""
    pair = Pair(tmp_path)
    yield pair
    remains = with_token(pair.token)
    for pid in remains:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    assert remains == [], "the test left processes behind"


@pytest.mark.host
def test_a_server_on_two_hosts_runs_and_ends_as_one(pair: Pair) -> None:
    handle = pair.start("serving", "deaf")
    assert pair.launcher.is_alive(handle)
    assert pair.launcher.owns_port(handle)
    assert pair.launcher.url(handle) == f"http://127.0.0.1:{pair.benches[0].port}"
    report = pair.launcher.stop(ServerHandle.from_dict(handle.to_dict()), grace_s=0.2)
    assert (report.num_processes, report.signals, report.port_free) == (4, ("TERM", "KILL"), True)
    assert not pair.launcher.is_alive(handle)


@pytest.mark.host
def test_a_failed_node_leaves_nothing_on_any_host(pair: Pair) -> None:
    spec = pair.spec("deaf", "deaf")
    with pytest.raises(StartFailed, match="was not started on two: no-such-program"):
        pair.launcher.start(replace(spec, others=(replace(spec.others[0], argv=("no-such-program",)),)))
    assert with_token(pair.token) == []


@pytest.mark.host
def test_the_end_of_a_dead_nodes_log_is_read_within_the_first_ones(pair: Pair) -> None:
    one, two = pair.benches
    lines = "echo ready; while [ ! -e go ]; do sleep 0.02; done; echo more"
    long = f"head -c {TAIL_BYTES} /dev/zero; echo NCCL failed; exit 9"
    spec = replace(one.spec("sh", "-c", f"cd {one.folder}; {lines}"), others=(two.spec("sh", "-c", long),))
    handle = pair.launcher.start(spec)
    until(lambda: pair.launcher.logs(handle) == b"ready\n", "the first node has begun its log")
    until(lambda: not pair.launcher.is_alive(handle), "the death is noticed")
    assert pair.launcher.exit_code(handle) == 9
    one.go()
    until(lambda: not one.launcher.is_alive(handle), "the first node ended too")
    rest = pair.launcher.logs(handle, len(b"ready\n"))
    assert rest.startswith(b"\n--- node 1 on two ended; its log from byte 12 on ---\n\0\0")
    assert rest.endswith(b"\0NCCL failed\n\n--- end of the log of two ---\nmore\n")
    assert pair.launcher.logs(handle, 0, 10) == b"ready\n\n---"
    pair.launcher.stop(handle, grace_s=0)


@pytest.mark.host
def test_leftovers_are_stopped_on_every_host(pair: Pair) -> None:
    handle = pair.start("plain", "escaping")
    ids = (handle.server_id, handle.others[0].server_id)
    assert pair.launcher.stop_leftovers(grace_s=0.2) == ids
    assert not any(is_running(node.pid) for node in (handle, *handle.others))


@pytest.mark.host
def test_a_group_holds_all_its_hosts_or_none(pair: Pair) -> None:
    one, two = (bench.launcher for bench in pair.benches)
    reverse = GroupLauncher([two, one])
    with pair.launcher.hold():
        for other in (one, two, reverse):
            with pytest.raises(HostBusy), other.hold():
                pytest.fail("held twice")
    with two.hold():
        with pytest.raises(HostBusy, match="two is held"), pair.launcher.hold():
            pytest.fail("held twice")
        with one.hold():
            pass
