"""Launchers over every shell there is here, and a check that no test leaves a process behind."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from launchers.base import LaunchSpec, ServerHandle, Shell
from launchers.host import HostLauncher, HostSettings
from launchers.shell import LocalShell
from launchers.ssh import SshShell, SshTarget
from tests.launchers.shells import kinds, shell_program

STUBBORN = Path(__file__).with_name("stubborn.py")
HOSTILE_NAME = 'it\'s a "state" $(touch hit)\n `x` ā漢 \\ -*?'


def until(condition: Callable[[], bool], what: str) -> None:
    """Wait until `condition` holds; fails after 30 s, naming `what`."""
    for _ in range(3000):
        if condition():
            return
        threading.Event().wait(0.01)
    pytest.fail(f"after 30 s still not so: {what}")


def stat(pid: int) -> list[str]:
    """Fields of /proc/PID/stat from the state (field 3) on; empty when there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(") ")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []


def is_running(pid: int) -> bool:
    """Whether the process exists and is not merely waiting to be reaped."""
    fields = stat(pid)
    return bool(fields) and (fields[0] not in "XZ" or int(fields[17]) > 1)


def with_token(token: str) -> list[int]:
    """Living processes that carry `token` on their command line or in their environment."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes() + (folder / "environ").read_bytes()
        except OSError:  # gone meanwhile, or not ours to look into
            continue
        if token.encode() in words and is_running(int(folder.name)):
            found.append(int(folder.name))
    return found


def in_group(group: int) -> list[int]:
    """Living processes of a process group."""
    pids = [int(folder.name) for folder in Path("/proc").glob("[0-9]*")]
    return [pid for pid in pids if (stat(pid) or ["", "", ""])[2] == str(group) and is_running(pid)]


@contextlib.contextmanager
def stranger(argv: tuple[str, ...], **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    """A process group that no launcher started; killed at the end."""
    with subprocess.Popen(argv, start_new_session=True, **options) as process:
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            until(lambda: not in_group(process.pid), "the stranger's processes are gone")


def unused_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass(frozen=True)
class Bench:
    """A launcher under test and what a test needs to look behind it."""

    launcher: HostLauncher
    folder: Path
    port: int
    token: str

    @property
    def state_dir(self) -> Path:
        return Path(self.launcher.settings.state_dir)

    def spec(self, *argv: str, env: dict[str, str] | None = None, unset_env: tuple[str, ...] = ()) -> LaunchSpec:
        """A server whose every process carries the token in its environment, by way of its id."""
        nonce = f"{self.token}-{secrets.token_hex(3)}"
        return LaunchSpec(argv=argv, port=self.port, nonce=nonce, env=env or {}, unset_env=unset_env)

    def stubborn_argv(self, mode: str) -> tuple[str, ...]:
        """The command line of tests/launchers/stubborn.py."""
        return (sys.executable, "-I", "-S", str(STUBBORN), mode, str(self.folder), str(self.port), self.token)

    def stubborn(self, mode: str) -> LaunchSpec:
        """A server of that program."""
        return self.spec(*self.stubborn_argv(mode))

    def start_stubborn(self, mode: str, *ready: str) -> ServerHandle:
        """Start it and wait until a process of every mode in `ready` has noted itself."""
        handle = self.launcher.start(self.stubborn(mode))
        until(lambda: set(ready or (mode,)) <= {name for name, _ in self.pids()}, f"{ready or mode} are ready")
        return handle

    def pids(self) -> list[tuple[str, int]]:
        """(mode, pid) of the processes that have noted themselves."""
        notes = self.folder / "pids"
        lines = notes.read_text().splitlines() if notes.exists() else []
        return [(line.split()[0], int(line.split()[1])) for line in lines]

    def handle_of(self, pid: int) -> ServerHandle:
        """A handle that claims the process `pid`, which may be anybody's."""
        server_id = f"{self.token}-claimed"
        boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return ServerHandle(server_id, "here", pid, int(stat(pid)[19]), boot_id, self.port, "", server_id)

    def pid(self, mode: str) -> int:
        return dict(self.pids())[mode]

    def go(self) -> None:
        (self.folder / "go").touch()

    @contextlib.contextmanager
    def running(self, mode: str = "serving") -> Iterator[ServerHandle]:
        """A server for as long as the context is open."""
        handle = self.start_stubborn(mode)
        try:
            yield handle
        finally:
            self.launcher.stop(handle, grace_s=5)

    def ended(
        self, *argv: str, env: dict[str, str] | None = None, unset_env: tuple[str, ...] = ()
    ) -> ServerHandle:
        """A server that has ended by itself."""
        handle = self.launcher.start(self.spec(*argv, env=env, unset_env=unset_env))
        until(lambda: not self.launcher.is_alive(handle), "the server ended")
        return handle

    def remains(self) -> list[int]:
        """Living processes of this test, found in ways that do not rely on the launcher."""
        return with_token(self.token)


NOT_OVER_SSH = {
    "test_a_state_folder_in_the_home_is_found",  # sets HOME of this process; tests/ssh has this over SSH
    "test_the_address_of_a_server",  # is another over SSH; tests/ssh has it
    # and these bring a local shell of their own:
    "test_a_start_whose_answer_is_lost_leaves_nothing",
    "test_every_word_reaches_a_real_shell_unchanged",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out what would only repeat itself."""
    items[:] = [item for item in items if not (_is_over_ssh(item) and item.name.split("[")[0] in NOT_OVER_SSH)]


def _is_over_ssh(item: pytest.Item) -> bool:
    parameters = getattr(item, "callspec", None)
    return parameters is not None and parameters.params.get("kind") == "ssh"


@pytest.fixture(params=kinds("dash"))
def kind(request: pytest.FixtureRequest) -> str:
    """Which shell is under test: /bin/sh as on Debian, Alpine and Red Hat, or the one behind a real sshd."""
    return str(request.param)


@pytest.fixture
def program(kind: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The program that is the shell under test; over SSH, the one that sshd's host has."""
    return "/bin/sh" if kind == "ssh" else shell_program(kind, tmp_path_factory.mktemp(kind))


@pytest.fixture(scope="session")
def remote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshTarget]:
    """A host behind a real sshd: this machine, with the environment that the tests expect of a host."""
    from tests.ssh.sshd import Sshd  # it needs what is defined here

    with Sshd(tmp_path_factory.mktemp("remote"), env={"OF_THE_HOST": "kept", "TO_BE_REMOVED": "1"}) as sshd:
        yield sshd.target()


@pytest.fixture
def shell(kind: str, program: str, request: pytest.FixtureRequest) -> Iterator[Shell]:
    """The shell under test."""
    if kind != "ssh":
        yield LocalShell("here", program)
        return
    shell = SshShell(request.getfixturevalue("remote"), "here")
    yield shell
    shell.close()


@pytest.fixture
def bench(shell: Shell, tmp_path: Path) -> Iterator[Bench]:
    """A launcher with a hostile state folder. Afterwards nothing of the test may run any more."""
    token = f"token-{secrets.token_hex(8)}"
    folder = tmp_path / token
    folder.mkdir()
    port = unused_port()
    settings = HostSettings("here", str(folder / HOSTILE_NAME), port, port)
    bench = Bench(HostLauncher(shell, settings), folder, port, token)
    yield bench
    remains = bench.remains()
    for pid in remains:
        os.kill(pid, signal.SIGKILL)
    assert remains == [], "the test left processes behind"
