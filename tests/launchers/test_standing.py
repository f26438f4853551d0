"""Servers that stand beside a sweep: ours, left serving; somebody else's, which is stopped and comes back."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from launchers.errors import HostDirty
from launchers.host import HostLauncher
from launchers.standing import Standing
from tests.launchers.conftest import Bench, is_running, stranger, until
from tests.launchers.shells import quick_in

pytestmark = pytest.mark.host

ODD = ("it's", 'a "word"', "", "two\nlines\n", "$(touch hit)", "ā漢", "-n", "A=b")
SECRET = {"HF_TOKEN": "hf_very $ecret'\n value\n", "EMPTY": "", "PATH": os.environ["PATH"]}


def environ_of(pid: int) -> dict[str, str]:
    entries = Path(f"/proc/{pid}/environ").read_bytes().decode().split("\0")
    return dict(entry.partition("=")[::2] for entry in entries if entry)


def argv_of(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")[:-1]


@contextlib.contextmanager
def production(bench: Bench, env: dict[str, str] | None = None) -> Iterator[subprocess.Popen[bytes]]:
    """A server of somebody else on the bench's port, with a working folder and a log of its own."""
    place = bench.folder / "their place"
    place.mkdir(exist_ok=True)
    argv = (*bench.stubborn_argv("serving"), *ODD)
    with (
        (bench.folder / "their.log").open("ab") as log,
        stranger(argv, env=SECRET if env is None else env, cwd=place, stdout=log, stderr=log) as process,
    ):
        until(lambda: bench.pids() != [], "it serves")
        yield process


def newest(bench: Bench) -> int:
    return bench.pids()[-1][1]


def end(pid: int) -> None:
    """Kill what was started again; nobody else does."""
    os.killpg(pid, signal.SIGKILL)
    until(lambda: not is_running(pid), "it is gone")


def test_a_server_that_was_left_serving_is_no_leftover(bench: Bench) -> None:
    standing = Standing(bench.launcher)
    handle = bench.start_stubborn("serving")
    standing.keep(handle, '{"trial": 5, "name": "it\'s"}')
    assert bench.launcher.stop_leftovers(grace_s=1) == ()
    assert is_running(handle.pid)
    (kept,) = standing.kept()
    assert kept.note == '{"trial": 5, "name": "it\'s"}'
    assert (kept.handle.server_id, kept.handle.pid, kept.handle.port) == (handle.server_id, handle.pid, bench.port)
    bench.launcher.stop(kept.handle, grace_s=5)
    assert bench.remains() == []
    assert standing.kept() == ()


@quick_in("busybox", "ssh")
def test_somebody_elses_server_is_stopped_and_comes_back_as_it_was(bench: Bench) -> None:
    standing = Standing(bench.launcher)
    with production(bench) as theirs:
        before = environ_of(theirs.pid), argv_of(theirs.pid), Path(f"/proc/{theirs.pid}/cwd").readlink()
        told = standing.replace(bench.port, grace_s=5)
        assert told is not None
        assert "stubborn.py serving" in told
        theirs.wait()
    assert bench.remains() == []
    assert standing.pending() == (bench.port,)
    restored = standing.restore(bench.port, wait_s=20)
    assert restored is not None
    assert (restored.state, Path(restored.text)) == ("up", bench.folder / "their.log")
    pid = newest(bench)
    try:
        assert (environ_of(pid), argv_of(pid), Path(f"/proc/{pid}/cwd").readlink()) == before
        assert standing.pending() == ()
        assert list((bench.state_dir / "replaced").iterdir()) == [], "what was known of it held secrets"
        assert bench.launcher.stop_leftovers(grace_s=1) == (), "it is none of ours"
    finally:
        end(pid)
    assert not (bench.folder / "hit").exists()


def test_what_is_known_of_it_is_for_nobody_else_and_outlives_us(bench: Bench) -> None:
    with production(bench) as theirs:
        Standing(bench.launcher).replace(bench.port, grace_s=5)
        theirs.wait()
    folder = bench.state_dir / "replaced" / str(bench.port)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}
    another = Standing(HostLauncher(bench.launcher.shell, bench.launcher.settings))
    assert another.pending() == (bench.port,)
    restored = another.restore(bench.port, wait_s=20)
    assert restored is not None
    end(newest(bench))


def test_where_nobody_listens_there_is_nothing_to_replace_or_restore(bench: Bench) -> None:
    standing = Standing(bench.launcher)
    assert standing.replace(bench.port, grace_s=1) is None
    assert standing.restore(bench.port, wait_s=1) is None
    assert standing.pending() == ()


def test_a_server_that_could_not_be_started_again_is_not_touched(bench: Bench) -> None:
    standing = Standing(bench.launcher)
    with production(bench, env={}) as theirs:
        with pytest.raises(HostDirty, match="was not stopped: its environment cannot be read"):
            standing.replace(bench.port, grace_s=1)
        assert is_running(theirs.pid)
    assert standing.pending() == ()


def test_our_own_servers_are_not_somebody_elses(bench: Bench) -> None:
    with bench.running() as handle:
        with pytest.raises(HostDirty, match="specsweep started it"):
            Standing(bench.launcher).replace(bench.port, grace_s=1)
        assert bench.launcher.is_alive(handle)


def test_a_server_that_ends_at_once_is_told_and_not_forgotten(bench: Bench) -> None:
    standing = Standing(bench.launcher)
    with production(bench) as theirs:
        standing.replace(bench.port, grace_s=5)
        theirs.wait()
    command = bench.state_dir / "replaced" / str(bench.port) / "cmd"
    command.write_text("echo 'no GPU is left'; exit 3\n")
    restored = standing.restore(bench.port, wait_s=20)
    assert restored is not None
    assert (restored.state, restored.text) == ("dead", "no GPU is left")
    assert standing.pending() == (bench.port,)


def test_a_port_that_somebody_took_meanwhile_is_theirs(bench: Bench) -> None:
    standing = Standing(bench.launcher)
    with production(bench) as theirs:
        standing.replace(bench.port, grace_s=5)
        theirs.wait()
    with bench.running():
        until(lambda: len(bench.pids()) == 2, "ours serves in its place")
        with pytest.raises(HostDirty, match=f"port {bench.port} of here is taken by pid [0-9]+: .*serving"):
            standing.restore(bench.port, wait_s=1)
    assert standing.pending() == (bench.port,)


def test_one_that_was_written_down_and_never_stopped_is_left_alone(bench: Bench) -> None:
    standing = Standing(bench.launcher)
    with production(bench) as theirs:
        os.kill(theirs.pid, signal.SIGSTOP)
        folder = bench.state_dir / "replaced" / str(bench.port)
        folder.mkdir(parents=True)
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        start = Path(f"/proc/{theirs.pid}/stat").read_text().rpartition(") ")[2].split()[19]
        (folder / "pid").write_text(f"{theirs.pid} {start} {boot}\n")
        (folder / "cmd").write_text("exit 1\n")
        assert standing.restore(bench.port, wait_s=1) is None
        assert standing.pending() == ()
        assert is_running(theirs.pid)
