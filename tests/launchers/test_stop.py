"""Servers that do not want to end; after each test the `bench` checks that nothing is left."""

from __future__ import annotations

import dataclasses
import os
import signal
from pathlib import Path

import pytest

from launchers.host import HostLauncher
from launchers.replies import MARKER
from tests.launchers.conftest import Bench, is_running, stat, stranger, until
from tests.launchers.shells import AlteredShell, hasty, quick_in, slow_to_look

pytestmark = pytest.mark.host


@quick_in("busybox")
def test_a_server_that_ignores_sigterm_is_killed(bench: Bench) -> None:
    handle = bench.start_stubborn("deaf")
    report = bench.launcher.stop(handle, grace_s=0.2)
    assert (report.signals, report.exit_code) == (("TERM", "KILL"), 137)


def test_a_slow_look_does_not_use_up_the_grace(bench: Bench) -> None:
    handle = bench.start_stubborn("deaf")
    launcher = HostLauncher(AlteredShell(bench.launcher.shell, slow_to_look), bench.launcher.settings)
    assert launcher.stop(handle, grace_s=0.1).signals == ("TERM", "KILL")


def test_without_grace_there_is_no_sigterm(bench: Bench) -> None:
    handle = bench.start_stubborn("plain")
    assert bench.launcher.stop(handle, grace_s=0).signals == ("KILL",)


def test_a_suspended_server_is_killed(bench: Bench) -> None:
    handle = bench.start_stubborn("plain")
    os.kill(bench.pid("plain"), signal.SIGSTOP)
    assert bench.launcher.stop(handle, grace_s=0.2).signals == ("TERM", "KILL")


def test_a_suspended_leader_is_killed_without_its_exit_code(bench: Bench) -> None:
    handle = bench.start_stubborn("plain")
    os.kill(handle.pid, signal.SIGSTOP)
    report = bench.launcher.stop(handle, grace_s=5)
    assert (report.num_processes, report.exit_code) == (2, None)


def test_children_and_grandchildren_end_with_their_server(bench: Bench) -> None:
    handle = bench.start_stubborn("family", "family", "plain", "nested", "deaf")
    until(lambda: len(bench.pids()) == 5, "all five are ready")
    assert bench.launcher.stop(handle, grace_s=0.2).num_processes == 6


@quick_in("busybox")
def test_a_grandchild_that_left_the_session_is_found_by_its_marker(bench: Bench) -> None:
    handle = bench.start_stubborn("escaping", "escaping", "deaf")
    assert bench.launcher.stop(handle, grace_s=0.2).num_processes == 3


def test_an_orphan_without_environment_is_found_by_its_session(bench: Bench) -> None:
    handle = bench.start_stubborn("bare_orphan", "bare_orphan", "deaf")
    assert bench.launcher.stop(handle, grace_s=0.2).num_processes == 3


def test_a_grandchild_without_session_and_environment_is_found_if_it_was_seen(bench: Bench) -> None:
    handle = bench.start_stubborn("vanishing", "deaf")
    escapee = bench.pid("deaf")
    assert bench.launcher.is_alive(handle)  # the look that matters: its parent still lives
    parent = int(stat(escapee)[1])
    bench.go()
    until(lambda: not is_running(parent), "its parent ended")
    bench.launcher.stop(handle, grace_s=0.2)
    assert not is_running(escapee)


@quick_in("busybox")
def test_an_unseen_orphan_that_holds_the_port_is_ended(bench: Bench) -> None:
    handle = bench.start_stubborn("usurping", "serving")
    bench.go()
    until(lambda: not bench.launcher.is_alive(handle), "the server ended")
    report = bench.launcher.stop(handle, grace_s=5)
    assert (report.num_processes, report.port_free, report.exit_code) == (1, True, 0)


@quick_in("busybox", "ssh")
def test_a_tree_like_that_of_sglang_is_ended_whole(bench: Bench) -> None:
    handle = bench.start_stubborn("tree", "tree", "scheduler", "plain", "nested", "deaf")
    worker = bench.pid("scheduler")
    assert MARKER.encode() not in Path(f"/proc/{worker}/environ").read_bytes(), "its marker is overwritten"
    assert bench.launcher.stop(handle, grace_s=0.2).num_processes == 6


@quick_in("busybox")
def test_a_retitled_orphan_in_its_own_session_is_found_by_its_output(bench: Bench) -> None:
    handle = bench.start_stubborn("hiding", "hiding", "scheduler")
    escapee = bench.pid("scheduler")
    seen = (Path(handle.log_path).parent / "seen").read_text()
    assert f"{escapee}:" not in seen, "else it would be found by that"
    assert bench.launcher.stop(handle, grace_s=0.2).num_processes == 3
    assert not is_running(escapee)


def test_an_unseen_retitled_child_of_a_killed_server_is_ended(bench: Bench) -> None:
    handle = bench.launcher.start(bench.stubborn("breeding"))
    bench.go()
    until(lambda: "scheduler" in dict(bench.pids()), "the child is ready")
    until(lambda: not is_running(handle.pid), "the leader ended")
    assert bench.launcher.stop(handle, grace_s=0.2).num_processes == 1


@quick_in("busybox")
def test_a_parent_that_ends_its_children_in_order_sees_none_of_them_end_before(bench: Bench) -> None:
    handle = bench.start_stubborn("orderly")
    until(lambda: len(bench.pids()) == 4, "it and its three children are ready")
    report = bench.launcher.stop(handle, grace_s=10)
    assert (report.exit_code, report.signals, report.num_processes) == (5, ("TERM",), 5)


def test_children_whose_parent_ended_without_them_are_told_then(bench: Bench) -> None:
    handle = bench.start_stubborn("negligent")
    until(lambda: len(bench.pids()) == 4, "it and its three children are ready")
    report = bench.launcher.stop(handle, grace_s=10)
    assert (report.exit_code, report.signals, report.num_processes) == (5, ("TERM",), 5)


def test_a_child_whose_parent_ignores_sigterm_is_killed_with_it(bench: Bench) -> None:
    handle = bench.start_stubborn("deaf_parent", "deaf_parent", "telling")
    report = bench.launcher.stop(handle, grace_s=0.3)
    assert (report.exit_code, report.signals, report.num_processes) == (137, ("TERM", "KILL"), 3)
    assert "told" not in dict(bench.pids()), "it would have looked like a crash to its parent"


def test_a_reader_of_the_log_is_left_alone(bench: Bench) -> None:
    handle = bench.ended("true")
    with Path(handle.log_path).open() as log, stranger(("sleep", "100"), stdin=log) as reader:
        assert bench.launcher.stop(handle, grace_s=0).num_processes == 0
        assert reader.poll() is None


def test_a_stranger_on_the_port_is_left_alone_and_reported(bench: Bench) -> None:
    handle = bench.ended("true")
    with stranger(bench.stubborn_argv("serving")) as process:
        until(lambda: bool(bench.pids()), "the stranger listens")
        launcher = HostLauncher(AlteredShell(bench.launcher.shell, hasty), bench.launcher.settings)
        report = launcher.stop(handle, grace_s=0)
        assert (report.num_processes, report.port_free) == (0, False)
        assert process.poll() is None


def test_a_child_that_serves_on_after_its_server_is_ended(bench: Bench) -> None:
    handle = bench.start_stubborn("leaving_a_server", "serving")
    bench.go()
    until(lambda: bench.launcher.exit_code(handle) == 3, "the server ended")
    assert bench.launcher.owns_port(handle)
    report = bench.launcher.stop(handle, grace_s=5)
    assert (report.num_processes, report.port_free, report.exit_code) == (1, True, 3)


def test_a_server_whose_leader_was_killed_is_ended(bench: Bench) -> None:
    handle = bench.start_stubborn("bare_child", "bare_child", "plain")
    os.kill(handle.pid, signal.SIGKILL)
    until(lambda: not bench.launcher.is_alive(handle), "the leader is gone")
    assert bench.launcher.status(handle).state == "lost"
    report = bench.launcher.stop(handle, grace_s=5)
    assert (report.num_processes, report.exit_code) == (2, None)


def test_a_leader_that_is_told_to_end_keeps_the_exit_code(bench: Bench) -> None:
    handle = bench.start_stubborn("plain")
    os.kill(handle.pid, signal.SIGTERM)
    os.kill(bench.pid("plain"), signal.SIGTERM)
    until(lambda: bench.launcher.exit_code(handle) == 143, "the exit code is there")


@quick_in("busybox")
def test_a_process_whose_main_thread_ended_is_not_taken_for_a_zombie(bench: Bench) -> None:
    handle = bench.start_stubborn("end_main_thread")
    half_dead = bench.pid("end_main_thread")
    until(lambda: stat(half_dead)[0] == "Z", "its main thread ended")
    os.kill(handle.pid, signal.SIGKILL)
    assert bench.launcher.stop(handle, grace_s=0.2).num_processes == 1
    assert not is_running(half_dead)


def test_a_handle_that_was_written_down_still_stops_its_server(bench: Bench) -> None:
    handle = bench.start_stubborn("plain")
    restored = type(handle).from_dict(handle.to_dict())
    assert bench.launcher.stop(restored, grace_s=5).num_processes == 2


def test_a_stop_does_not_end_itself(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    handle = bench.start_stubborn("plain")
    monkeypatch.setenv(MARKER, handle.server_id)  # a sweep that was started from within a server
    assert bench.launcher.stop(handle, grace_s=0).num_processes == 2


@quick_in("busybox")
@pytest.mark.parametrize("change", [{"start_time": 1}, {"boot_id": "00000000-0000-0000-0000-000000000000"}])
def test_a_process_that_only_has_the_number_is_nobody(bench: Bench, change: dict[str, int | str]) -> None:
    with stranger(bench.stubborn_argv("nested")) as innocent:
        until(lambda: len(bench.pids()) == 2, "the innocent process and its child are ready")
        claim = bench.handle_of(innocent.pid)
        assert bench.launcher.is_alive(claim), "without the change it would be taken for ours"
        handle = dataclasses.replace(claim, **change)  # type: ignore[arg-type]
        assert not bench.launcher.is_alive(handle)
        assert bench.launcher.stop(handle, grace_s=0).num_processes == 0
        assert innocent.poll() is None
        assert is_running(bench.pid("deaf"))
