"""The lock of a host: for one process only, as long as it lives and is heard of, and across broken connections."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from launchers.errors import HostBusy, HostLost
from launchers.shell import LocalShell
from launchers.ssh import SshShell
from tests.launchers.conftest import is_running, stranger, until
from tests.ssh.conftest import FAST, MakeShell
from tests.ssh.proxy import Proxy
from tests.ssh.sshd import Sshd

pytestmark = pytest.mark.host
HOLD = """
import signal, sys
from launchers.ssh import Pace, SshShell, SshTarget
user, port, key, known_hosts, lock = sys.argv[1:]
target = SshTarget("127.0.0.1", user, int(port), key, "/none", known_hosts)
with SshShell(target, "gpu").hold(lock):
    print("held", flush=True)
    signal.pause()
"""

PATIENT = dataclasses.replace(FAST, nap_s=15.0)


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    return tmp_path / "it's a new $HOME" / "host.lock"


def is_free(lock: Path) -> bool:
    try:
        with LocalShell("here").hold(str(lock)):
            return True
    except HostBusy:
        return False


def holders(lock: Path) -> list[int]:
    """The shells of ours on the host that have the lock file open."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            is_ours = (folder / "cmdline").read_bytes().startswith(b"/bin/sh\0-s\0specsweep-")
            if is_ours and os.path.realpath(folder / "fd" / "9") == str(lock):
                found.append(int(folder.name))
    return found


def test_a_host_is_held_once_and_free_again_at_once(make_shell: MakeShell, lock: Path) -> None:
    first, second = make_shell(), make_shell()
    for shell in (first, second, first):
        with shell.hold(str(lock)):
            other = second if shell is first else first
            with pytest.raises(HostBusy, match=f"gpu is held by another specsweep: pid {os.getpid()} on .*pytest"):
                other.hold(str(lock)).__enter__()
            assert shell.run("exit 3", timeout_s=20).exit_code == 3
        assert is_free(lock)


def test_a_shell_holds_one_lock_only(shell: SshShell, lock: Path) -> None:
    with shell.hold(str(lock)):
        with pytest.raises(HostBusy, match=f"pid {os.getpid()}"), shell.hold(str(lock)):
            pytest.fail("held twice")
        assert not is_free(lock), "the refusal left the first one alone"


def test_local_and_remote_holders_exclude_each_other(shell: SshShell, lock: Path) -> None:
    local = LocalShell("here")
    with local.hold(str(lock)):
        text = lock.read_text().strip()
        with pytest.raises(HostBusy) as refused, shell.hold(str(lock)):
            pytest.fail("held twice")
        assert refused.value.holder == text
    with shell.hold(str(lock)):
        pattern = rf"here is held by another specsweep: pid {os.getpid()} on \S+, since \S+: \S"
        with pytest.raises(HostBusy, match=pattern), local.hold(str(lock)):
            pytest.fail("held twice")


def test_nobody_else_may_read_the_lock(shell: SshShell, lock: Path) -> None:
    with shell.hold(str(lock)):
        assert (lock.stat().st_mode & 0o777, lock.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_a_lock_is_no_way_to_another_file(shell: SshShell, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("precious")
    (tmp_path / "lock").symlink_to(precious)
    with pytest.raises(HostLost, match="symbolic link"), shell.hold(str(tmp_path / "lock")):
        pytest.fail("followed a link")
    assert precious.read_text() == "precious"


@pytest.mark.parametrize("name", ["file/host.lock", "folder"])
def test_a_lock_that_cannot_be_opened_is_not_a_busy_host(shell: SshShell, tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    with pytest.raises(HostLost, match=r"cannot be opened: .*(directory|File exists)"):
        shell.hold(str(tmp_path / name)).__enter__()


def test_the_end_of_a_hold_closes_the_connection(sshd: Sshd, shell: SshShell, lock: Path) -> None:
    until(lambda: sshd.sessions() == [], "the sessions of earlier tests are gone")
    with pytest.raises(BlockingIOError), shell.hold(str(lock)):
        address = shell.address(1)
        assert sshd.sessions() != []
        raise BlockingIOError("of the caller")
    until(lambda: sshd.sessions() == [], "no session is left")
    assert holders(lock) == []
    assert shell.num_breaks() == 0
    assert shell.run("exit 3", timeout_s=20).exit_code == 3, "it can be used again"
    assert shell.address(1) != address


def test_the_lock_of_a_killed_process_is_free_at_once(sshd: Sshd, lock: Path) -> None:
    target = sshd.target()
    words = [target.user, str(target.port), target.identity_file, target.known_hosts, str(lock)]
    with stranger((sys.executable, "-c", HOLD, *words), stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        assert not is_free(lock)
        os.kill(process.pid, signal.SIGKILL)
        until(lambda: is_free(lock), "the lock is free")


def test_the_lock_of_a_silent_client_is_free_after_a_while(
    make_shell: MakeShell, proxy: Proxy, lock: Path
) -> None:
    shell = make_shell(port=proxy.port, reconnect_s=0)
    with shell.hold(str(lock)):
        (holder,) = holders(lock)
        proxy.freeze()  # as when our machine loses power: sshd is told nothing
        assert not is_free(lock)
        until(lambda: is_free(lock), "the holder has given up")
        until(lambda: not is_running(holder), "and is gone")


@pytest.mark.slow
def test_a_client_that_is_heard_of_keeps_its_lock(make_shell: MakeShell, lock: Path) -> None:
    shell = make_shell()
    with shell.hold(str(lock)):
        held = holders(lock)
        shell.run("sleep 3.5", timeout_s=20)
        assert FAST.nap_s * FAST.num_silent_naps < 3.5, "longer than the host waits without a beat"
        assert holders(lock) == held
        assert not is_free(lock)
        assert shell.num_breaks() == 0, "nor is a link dead on which nothing is said for longer than that"


def test_the_lock_is_taken_again_after_a_cut(make_shell: MakeShell, proxy: Proxy, lock: Path) -> None:
    shell = make_shell(port=proxy.port)
    with shell.hold(str(lock)):
        first = holders(lock)
        proxy.cut()
        until(lambda: holders(lock) == [], "the broken connection freed the lock")
        proxy.heal()
        until(lambda: len(holders(lock)) == 1, "it is taken again, without anybody asking")
        assert holders(lock) != first
        assert (shell.run("exit 3", timeout_s=20).exit_code, shell.num_breaks()) == (3, 1)
    assert is_free(lock)


def test_our_own_holder_on_a_half_open_connection_is_not_in_our_way(
    make_shell: MakeShell, proxy: Proxy, lock: Path
) -> None:
    shell = make_shell(port=proxy.port, pace=PATIENT, connect_timeout_s=1)
    with shell.hold(str(lock)):
        (stale,) = holders(lock)
        proxy.freeze()
        until(lambda: shell.num_breaks() == 1, "the dead link is noticed")
        assert is_running(stale), "sshd has not noticed anything: the test is about this"
        proxy.heal()
        assert shell.run("exit 3", timeout_s=20).exit_code == 3
        assert not is_running(stale)
        assert len(holders(lock)) == 1
        assert not is_free(lock)
    assert is_free(lock)


def test_a_lock_that_somebody_else_took_meanwhile_is_lost(
    make_shell: MakeShell, proxy: Proxy, lock: Path, tmp_path: Path
) -> None:
    shell = make_shell(port=proxy.port)
    with shell.hold(str(lock)):
        proxy.cut()
        until(lambda: holders(lock) == [], "the broken connection freed the lock")
        with LocalShell("here").hold(str(lock)):
            proxy.heal()
            with pytest.raises(HostBusy, match=f"gpu is held by another specsweep: pid {os.getpid()}"):
                shell.run(f"touch {tmp_path}/hit", timeout_s=20)
            assert not (tmp_path / "hit").exists()
        assert shell.run("exit 3", timeout_s=20).exit_code == 3


def test_a_holder_that_died_is_replaced_before_the_next_script(shell: SshShell, lock: Path) -> None:
    with shell.hold(str(lock)):
        (holder,) = holders(lock)
        os.kill(holder, signal.SIGKILL)
        until(lambda: not is_running(holder), "the holder is gone")
        until(lambda: shell.run("exit 3", timeout_s=20).exit_code == 3 and not is_free(lock), "it is held again")
        assert shell.num_breaks() == 0


def test_a_process_that_merely_looks_like_our_holder_is_left_alone(
    make_shell: MakeShell, proxy: Proxy, lock: Path, token: str
) -> None:
    shell = make_shell(port=proxy.port, pace=PATIENT)
    with shell.hold(str(lock)):
        word = re.findall(rb"specsweep-\w+", Path(f"/proc/{holders(lock)[0]}/cmdline").read_bytes())[0].decode()
        with stranger(("sh", "-c", f": {token} /bin/sh -s {word}; sleep 100; :")) as innocent:
            proxy.cut()
            proxy.heal()
            assert shell.run("exit 3", timeout_s=20).exit_code == 3
            assert innocent.poll() is None


def cut_until(proxy: Proxy, sshd: Sshd, stage: str) -> None:
    """Cut what connection there is, and wait until a new one has come as far as this line of sshd's log."""
    count = sshd.log().count(stage)
    proxy.cut()
    proxy.heal()
    until(lambda: sshd.log().count(stage) > count, f"it is tried again, up to: {stage}")


@pytest.mark.slow
def test_a_lock_is_taken_again_after_breaks_while_it_was_taken_again(
    make_shell: MakeShell, proxy: Proxy, lock: Path, sshd: Sshd
) -> None:
    shell = make_shell(port=proxy.port, pace=PATIENT, connect_timeout_s=2)
    with shell.hold(str(lock)):
        (stale,) = holders(lock)
        proxy.freeze()
        until(lambda: shell.num_breaks() == 1, "the dead link is noticed")
        assert is_running(stale), "sshd has not noticed anything: the test is about this"
        proxy.delay_s = 0.05
        for stage in ("Connection from", "Accepted publickey", "Starting session"):
            cut_until(proxy, sshd, stage)
        proxy.cut()
        proxy.delay_s = 0
        proxy.heal()
        assert shell.run("exit 3", timeout_s=20).exit_code == 3
        assert not is_running(stale)
        assert len(holders(lock)) == 1
