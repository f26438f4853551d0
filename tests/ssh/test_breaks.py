"""Connections that break: noticed in time, counted once, made anew, and nothing runs twice unasked."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from launchers.base import LaunchSpec
from launchers.clock import SystemClock
from launchers.errors import HostLost, LinkLost, SshRefused
from launchers.host import HostLauncher, HostSettings
from launchers.ssh import SshShell
from tests.launchers.conftest import until, with_token
from tests.ssh.conftest import MakeShell
from tests.ssh.proxy import Proxy
from tests.ssh.sshd import Sshd, make_key, public

pytestmark = pytest.mark.host


@contextlib.contextmanager
def breaking_under(token: str, break_link: Callable[[], None]) -> Iterator[None]:
    """Break the link as soon as a script that carries `token` runs on the host."""

    def wait_and_break() -> None:
        until(lambda: with_token(token) != [], "the script runs")
        break_link()

    thread = threading.Thread(target=wait_and_break)
    thread.start()
    yield
    thread.join()


@pytest.mark.parametrize("how", ["cut", "freeze"])
def test_a_link_that_breaks_under_a_script_is_lost_and_counted_once(
    make_shell: MakeShell, proxy: Proxy, token: str, how: str
) -> None:
    shell = make_shell(port=proxy.port, connect_timeout_s=1)
    with breaking_under(token, proxy.cut if how == "cut" else proxy.freeze), pytest.raises(LinkLost) as failed:
        shell.run(f"sh -c ': {token}; sleep 2.5; :'", timeout_s=60)
    assert "may have run to its end or not" in str(failed.value)
    assert shell.num_breaks() == 1
    proxy.heal()
    assert shell.run("exit 3", timeout_s=20).exit_code == 3
    assert shell.num_breaks() == 1
    for pid in with_token(token):  # it runs on; nobody needs to wait for its end
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def test_a_link_that_broke_between_scripts_costs_nothing(make_shell: MakeShell, proxy: Proxy) -> None:
    shell = make_shell(port=proxy.port)
    assert shell.run("exit 3", timeout_s=20).exit_code == 3
    proxy.cut()
    timer = threading.Timer(0.7, proxy.heal)
    timer.start()
    assert shell.run("exit 4", timeout_s=20).exit_code == 4
    assert shell.num_breaks() == 1
    timer.join()


def test_a_link_is_mended_before_anybody_asks(make_shell: MakeShell, proxy: Proxy) -> None:
    shell = make_shell(port=proxy.port)
    shell.run(":", timeout_s=20)
    proxy.cut()
    until(lambda: proxy.num_connections >= 2, "it is tried")
    tried = proxy.num_connections
    proxy.heal()
    until(lambda: proxy.num_connections > tried, "and tried again")
    assert shell.run("exit 3", timeout_s=20).exit_code == 3


def test_a_restarted_sshd_is_found_again(tmp_path: Path) -> None:
    with Sshd(tmp_path / "sshd") as sshd:
        shell = SshShell(sshd.target())
        assert shell.run("exit 3", timeout_s=20).exit_code == 3
        sshd.stop()
        until(lambda: shell.num_breaks() == 1, "the end is noticed")
        sshd.start()
        assert shell.run("exit 4", timeout_s=20).exit_code == 4
        shell.close()


def test_a_link_that_stays_broken_is_a_lost_host(make_shell: MakeShell, proxy: Proxy) -> None:
    shell = make_shell(port=proxy.port, reconnect_s=1)
    shell.run(":", timeout_s=20)
    proxy.cut()
    until(lambda: shell.num_breaks() == 1, "the end is noticed")
    with pytest.raises(HostLost) as failed:
        shell.run(":", timeout_s=20)
    assert not isinstance(failed.value, LinkLost)


def test_what_a_person_must_mend_is_not_retried(tmp_path: Path) -> None:
    with Sshd(tmp_path / "sshd") as sshd:
        shell = SshShell(sshd.target())
        shell.run(":", timeout_s=20)
        sshd.known_hosts.write_text(f"[127.0.0.1]:* {public(make_key(tmp_path / 'other'))}")
        sshd.stop()
        sshd.start()
        with pytest.raises(SshRefused, match="HAS CHANGED"):
            shell.run(":", timeout_s=20)
        shell.close()


def test_closing_ends_the_attempts_in_the_background(make_shell: MakeShell, proxy: Proxy) -> None:
    shell = make_shell(port=proxy.port)
    shell.run(":", timeout_s=20)
    proxy.cut()
    until(lambda: proxy.num_connections >= 2, "it is tried")
    shell.close()
    until(lambda: not any(t.name.startswith("gpu: ") for t in threading.enumerate()), "all its threads have ended")
    assert shell.num_breaks() == 1


def test_a_slow_link_is_not_a_dead_one(make_shell: MakeShell, proxy: Proxy) -> None:
    shell = make_shell(port=proxy.port)
    proxy.delay_s = 0.1  # each way, for every piece
    result = shell.run("head -c 300000 /dev/zero; exit 3", timeout_s=60)
    assert (result.exit_code, len(result.stdout), shell.num_breaks()) == (3, 300_000, 0)


def test_a_server_survives_a_cut_in_the_middle_of_its_life(
    make_shell: MakeShell, proxy: Proxy, tmp_path: Path, token: str
) -> None:
    launcher = HostLauncher(make_shell(port=proxy.port), HostSettings("gpu", str(tmp_path / "state")))
    with launcher.hold():
        handle = launcher.start(LaunchSpec(("sh", "-c", f": {token}; sleep 100; :"), launcher.free_port(), token))
        proxy.cut()
        timer = threading.Timer(1.2, proxy.heal)
        timer.start()
        assert launcher.is_alive(handle)
        assert launcher.num_breaks() == 1
        timer.join()
        launcher.stop(handle, grace_s=0)


def seconds_to_notice(shell: SshShell, proxy: Proxy, token: str) -> float:
    """How long a script waits for its end after the link became half-open under it."""
    clock = SystemClock()
    frozen_at: list[float] = []

    def freeze() -> None:
        proxy.freeze()
        frozen_at.append(clock.monotonic_s())

    with breaking_under(token, freeze), pytest.raises(LinkLost):
        shell.run(f"sh -c ': {token}; sleep 20; :'", timeout_s=60)
    return clock.monotonic_s() - frozen_at[0]


@pytest.mark.slow
def test_a_dead_link_is_noticed_within_fifteen_seconds(sshd: Sshd, proxy: Proxy, token: str) -> None:
    """At the pace of real work. The kernel's own timers have no part in it: the proxy's kernel answers."""
    shell = SshShell(sshd.target(port=proxy.port, connect_timeout_s=1, reconnect_s=0))
    noticed_s = seconds_to_notice(shell, proxy, token)
    shell.close()
    print(f"a half-open link was noticed after {noticed_s:.1f} s")
    assert noticed_s < 30  # against hanging; the aim is 15
