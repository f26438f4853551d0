"""A real sshd for each file, shells that are closed after each test, and a pace that takes seconds for minutes."""

from __future__ import annotations

import contextlib
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from launchers.ssh import Pace, SshShell
from tests.launchers.conftest import until, with_token
from tests.ssh.proxy import Proxy
from tests.ssh.sshd import Sshd, missing

FAST = Pace(ping_s=0.2, tick_s=0.2, num_silent_ticks=8, beat_s=0.2, nap_s=0.2, num_silent_naps=15)
"""A dead link is one of 1.6 s, a dead client one of 3 s."""

MakeShell = Callable[..., SshShell]


@pytest.fixture(scope="module")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    with Sshd(tmp_path_factory.mktemp("sshd")) as sshd:
        yield sshd


@pytest.fixture
def proxy(sshd: Sshd) -> Iterator[Proxy]:
    with Proxy(sshd.port) as proxy:
        yield proxy


@pytest.fixture
def make_shell(sshd: Sshd) -> Iterator[MakeShell]:
    """A shell on the host (`target` settings as keywords), with the fast pace; closed after the test."""
    shells = []

    def make(pace: Pace = FAST, **settings: Any) -> SshShell:
        shells.append(SshShell(sshd.target(**settings), "gpu", pace))
        return shells[-1]

    yield make
    for shell in shells:
        shell.close()


@pytest.fixture
def shell(make_shell: MakeShell) -> SshShell:
    return make_shell()


@pytest.fixture
def token() -> Iterator[str]:
    """A word for command lines: no process that carries it may be left after the test."""
    token = f"token-{secrets.token_hex(8)}"
    yield token
    until(lambda: with_token(token) == [], "no process of the test is left")


@contextlib.contextmanager
def account(login_shell: str, password: str = "") -> Iterator[tuple[str, Path]]:
    """A throw-away user with a home folder: (name, home). Skips where there is no such shell."""
    program = shutil.which(login_shell)
    if program is None:
        missing(f"{login_shell} is not installed here: not tested as a login shell")
    name = f"sst-{secrets.token_hex(4)}"
    home = Path(tempfile.mkdtemp(prefix="specsweep-home-", dir="/var/tmp"))
    try:
        subprocess.run(["useradd", "-M", "--home-dir", str(home), "--shell", str(program), name], check=True)
        word = password or secrets.token_hex(16)  # without one the user is locked, and sshd lets nobody in
        subprocess.run(["chpasswd"], input=f"{name}:{word}".encode(), check=True)
        shutil.chown(home, name, name)
        yield name, home
    finally:
        subprocess.run(["userdel", "--force", name], check=True, stderr=subprocess.DEVNULL)
        shutil.rmtree(home)
