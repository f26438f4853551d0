"""What a new specsweep does about servers and locks of one that died; and whom it must leave alone."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from launchers.errors import HostBusy
from launchers.host import KEPT_FOLDERS
from launchers.replies import LEADER, call_script, parse_reply, quote
from tests.launchers.conftest import Bench, is_running, stranger, until
from tests.launchers.shells import quick_in

pytestmark = pytest.mark.host

START_AND_WAIT = """
import json, signal, sys
from launchers.base import LaunchSpec
from launchers.host import HostLauncher, HostSettings
from launchers.shell import LocalShell
program, state_dir, port, nonce, *argv = sys.argv[1:]
launcher = HostLauncher(LocalShell("here", program), HostSettings("here", state_dir, int(port), int(port)))
with launcher.hold():
    handle = launcher.start(LaunchSpec(argv=tuple(argv), port=int(port), nonce=nonce))
    print(json.dumps(handle.to_dict()), flush=True)
    signal.pause()
"""


def record(bench: Bench, server_id: str, pid_file: str, seen: str = "") -> Path:
    """A state folder as a server of another day would have left it."""
    folder = bench.state_dir / "servers" / server_id
    folder.mkdir(parents=True)
    (folder / "pid").write_text(pid_file)
    (folder / "port").write_text(f"{bench.port}\n")
    (folder / "seen").write_text(seen)
    return folder


def test_the_server_of_a_killed_sweep_is_stopped_by_the_next_one(bench: Bench, program: str) -> None:
    spec = bench.stubborn("family")
    words = [program, str(bench.state_dir), str(bench.port), spec.nonce, *spec.argv]
    with stranger((sys.executable, "-c", START_AND_WAIT, *words), stdout=subprocess.PIPE) as sweep:
        assert sweep.stdout is not None
        handle = json.loads(sweep.stdout.readline())
        until(lambda: len(bench.pids()) == 5, "all five are ready")
        with pytest.raises(HostBusy, match=f"pid {sweep.pid} on .*{spec.nonce}") as refused, bench.launcher.hold():
            pytest.fail("two sweeps hold one host")
        assert f"pid {sweep.pid} on" in refused.value.holder
        os.kill(sweep.pid, signal.SIGKILL)
        sweep.wait()
        with bench.launcher.hold():
            assert is_running(handle["pid"]), "a server outlives its sweep"
            assert bench.launcher.stop_leftovers(grace_s=0.2) == (spec.nonce,)
    assert bench.remains() == []
    assert bench.launcher.stop_leftovers(grace_s=0.2) == ()


@quick_in("ssh")
def test_a_lock_is_not_inherited_by_the_server(bench: Bench) -> None:
    with bench.launcher.hold():
        handle = bench.start_stubborn("plain")
    with bench.launcher.hold():
        assert bench.launcher.is_alive(handle)
        bench.launcher.stop(handle, grace_s=5)


def test_a_host_is_held_once_even_within_one_process(bench: Bench) -> None:
    with bench.launcher.hold(), pytest.raises(HostBusy, match=f"pid {os.getpid()}"), bench.launcher.hold():
        pytest.fail("held twice")
    with bench.launcher.hold():
        lock = bench.state_dir / "host.lock"
    assert (lock.stat().st_mode & 0o777, bench.state_dir.stat().st_mode & 0o777) == (0o600, 0o700)


@quick_in("busybox", "ssh")
def test_leftovers_of_every_kind_are_stopped(bench: Bench) -> None:
    healthy = bench.start_stubborn("escaping", "escaping", "deaf")
    headless = bench.start_stubborn("bare_child", "bare_child", "plain")
    os.kill(headless.pid, signal.SIGKILL)
    gone = bench.ended("true")
    stopped = bench.launcher.stop_leftovers(grace_s=0.2)
    assert set(stopped) == {healthy.server_id, headless.server_id}
    assert gone.server_id not in stopped


def test_an_escapee_seen_before_is_a_leftover(bench: Bench) -> None:
    handle = bench.start_stubborn("vanishing", "deaf")
    bench.launcher.status(handle)
    bench.go()
    until(lambda: "vanishing" in dict(bench.pids()), "the escapee is an orphan")
    os.kill(bench.pid("vanishing"), signal.SIGKILL)
    until(lambda: not is_running(handle.pid), "the leader ended")
    assert bench.launcher.stop_leftovers(grace_s=0.2) == (handle.server_id,)


@quick_in("busybox")
def test_an_unseen_escapee_that_only_kept_its_output_is_a_leftover(bench: Bench) -> None:
    handle = bench.start_stubborn("hiding", "hiding", "scheduler")
    os.kill(bench.pid("hiding"), signal.SIGKILL)
    until(lambda: not is_running(handle.pid), "the leader ended")
    assert bench.launcher.stop_leftovers(grace_s=0.2) == (handle.server_id,)


def test_a_start_that_was_cut_short_is_a_leftover(bench: Bench) -> None:
    handle = bench.start_stubborn("plain")
    (bench.state_dir / "servers" / handle.server_id / "pid").unlink()
    assert bench.launcher.stop_leftovers(grace_s=0.2) == (handle.server_id,)


@pytest.mark.parametrize("noise", [bytes(range(256)), b"9999999999999 1 ab\n"])
def test_a_record_that_a_crash_of_the_disk_left_as_noise_is_no_record(bench: Bench, noise: bytes) -> None:
    handle = bench.start_stubborn("plain")
    folder = bench.state_dir / "servers" / handle.server_id
    (folder / "pid").write_bytes(noise)
    (folder / "port").write_bytes(noise)
    assert bench.launcher.stop_leftovers(grace_s=0.2) == (handle.server_id,)


@pytest.mark.parametrize(
    "pid_file", ["{pid} 1 {boot}", "{pid} {start} another-boot", "{pid}", "", "x y z", "-1 0 {boot}"]
)
def test_a_stale_record_never_costs_an_innocent_process_its_life(bench: Bench, pid_file: str) -> None:
    with stranger(bench.stubborn_argv("nested")) as innocent:
        until(lambda: len(bench.pids()) == 2, "the innocent process and its child are ready")
        claim = bench.handle_of(innocent.pid)
        text = pid_file.format(pid=claim.pid, start=claim.start_time, boot=claim.boot_id)
        record(bench, "stale", text, seen=f"{claim.pid}:1 {bench.pid('deaf')}:2 ")
        assert bench.launcher.stop_leftovers(grace_s=0) == ()
        bench.launcher.stop(dataclasses.replace(claim, server_id="stale", boot_id="-"), grace_s=0)
        assert innocent.poll() is None
        assert is_running(bench.pid("deaf"))


def test_a_start_that_was_overtaken_by_its_stop_runs_nothing(bench: Bench) -> None:
    folder = record(bench, "late", "")
    script = f'D={quote(str(folder))}; printf \'%s\\n\' {quote(LEADER)} > "$D/leader"; sh "$D/leader" "$D" 022'
    for stopped, runs in ((True, False), (False, True)):
        (folder / "cmd").write_text(f"set -- mkdir {quote(str(folder / 'hit'))}")
        (folder / "stopped").touch() if stopped else (folder / "stopped").unlink()
        bench.launcher.shell.run(script, timeout_s=20)
        assert (folder / "hit").exists() == runs


def test_the_folder_of_a_living_server_is_never_deleted(bench: Bench) -> None:
    gone = bench.ended("true")
    with bench.running("plain") as handle:
        script = call_script("n0", str(bench.state_dir), "prune", ("0",))
        assert parse_reply(bench.launcher.shell.run(script, timeout_s=20).stdout, "n0").kind == "pruned"
        assert Path(handle.log_path).exists()
        assert not Path(gone.log_path).exists()


@quick_in("busybox")
def test_old_folders_of_gone_servers_are_deleted(bench: Bench) -> None:
    oldest = bench.start_stubborn("plain")
    servers = bench.state_dir / "servers"
    os.utime(servers / oldest.server_id, (1, 1))
    for number in range(KEPT_FOLDERS + 5):
        folder = record(bench, f"old-{number:02}", "1 1 another-boot")
        os.utime(folder, (1000 + number, 1000 + number))
    precious = bench.folder / "precious"
    precious.mkdir()
    (servers / "link").symlink_to(precious)
    (servers / "not ours").mkdir()
    bench.launcher.stop_leftovers(grace_s=0.2)
    left = {path.name for path in servers.iterdir()}
    assert {"link", "not ours", oldest.server_id} <= left, "a stop renews the folder"
    assert left - {"link", "not ours", oldest.server_id} == {f"old-{number:02}" for number in range(6, 25)}
    assert precious.is_dir()
