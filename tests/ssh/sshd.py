"""A real sshd on the loopback address, in a folder of its own.

    with Sshd(folder) as sshd:
        SshShell(sshd.target()).run("id", timeout_s=20)

`sshd.port`, `sshd.user`, `sshd.key` (accepted), `sshd.known_hosts`, `sshd.log()`; `sshd.config(...)` writes an
ssh_config. `stop` and `start` are a reboot of the daemon: the sessions end with it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import getpass
import os
import shutil
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import pytest

from launchers.ssh_config import SshTarget
from tests.launchers.conftest import is_running, stat, until, unused_port

SETTINGS = """
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/authorized_keys %h/authorized_keys
PidFile none
StrictModes no
UsePAM no
PermitRootLogin yes
PasswordAuthentication no
KbdInteractiveAuthentication no
PrintMotd no
SetEnv {env}
UseDNS no
LogLevel VERBOSE
"""


def missing(why: str) -> None:
    """Skip a test for want of something, except on CI, where everything must be there."""
    if os.environ.get("CI"):
        pytest.fail(f"{why}; CI must have it")
    pytest.skip(why)


def make_key(path: Path, passphrase: str = "", kind: str = "ed25519") -> Path:
    """A new private key (and path.pub)."""
    cheap = ["-a", "1", *(["-b", "2048"] if kind == "rsa" else [])]
    argv = ["ssh-keygen", "-q", "-t", kind, *cheap, "-N", passphrase, "-C", "test", "-f", str(path)]
    subprocess.run(argv, check=True, stdin=subprocess.DEVNULL)
    return path


def public(key: Path) -> str:
    return Path(f"{key}.pub").read_text()


class Sshd:
    """See the module.

    `extra`: lines for sshd_config, before the usual ones (sshd takes the first of a kind). `env` is set in
    every session; HOME is an empty folder, so that nothing of the user's own start-up files is in the way.
    """

    def __init__(self, folder: Path, extra: str = "", env: Mapping[str, str] | None = None) -> None:
        self.program = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
        if self.program is None or os.geteuid() != 0:
            missing("a real sshd is needed (openssh-server), and root to let users log in")
        self.folder = folder
        self.folder.mkdir(parents=True, exist_ok=True)
        self.user = getpass.getuser()
        self.home = folder / "home"
        self.home.mkdir()
        self.port = unused_port()
        self.host_key = make_key(folder / "host_key")
        self.key = make_key(folder / "key")
        self.known_hosts = folder / "known_hosts"
        self.known_hosts.write_text(f"[127.0.0.1]:* {public(self.host_key)}")
        self.accept(self.key)
        variables = " ".join(f'{name}="{value}"' for name, value in {"HOME": self.home, **(env or {})}.items())
        settings = SETTINGS.format(port=self.port, folder=folder, env=variables)
        (folder / "sshd_config").write_text(extra + settings)
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def accept(self, key: Path) -> None:
        """Let this key in, for every user."""
        with (self.folder / "authorized_keys").open("a") as file:
            file.write(public(key))

    def accept_at(self, home: Path) -> None:
        """Let our key in for the user with this home folder, who may not be able to read ours."""
        (home / "authorized_keys").write_text(public(self.key))

    def start(self) -> None:
        """Listen. Fails when that takes 30 s."""
        Path("/run/sshd").mkdir(exist_ok=True)
        before = self.log().count("Server listening")
        with (self.folder / "log").open("ab") as log:
            argv = [str(self.program), "-D", "-e", "-f", str(self.folder / "sshd_config")]
            self._process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        until(lambda: self.log().count("Server listening") > before, f"sshd listens: {self.log()}")

    def stop(self) -> None:
        """End the daemon and its sessions, as a reboot would; what they started in the background goes on."""
        process, self._process = self._process, None
        if process is None:
            return
        os.kill(process.pid, signal.SIGSTOP)  # no new children from now on
        pids = self.sessions(process.pid)
        for pid in (*pids, process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait()
        until(lambda: not any(is_running(pid) for pid in pids), "the sessions of sshd are gone")

    def sessions(self, parent: int | None = None) -> list[int]:
        """The processes of sshd beside the one that listens."""
        parents = {parent or (self._process.pid if self._process else -1)}
        found: list[int] = []
        while parents:  # each connection: a monitor, and below it one for the user
            children = [pid for pid in _sshds() if int((stat(pid) or ["", "0"])[1]) in parents]
            found += children
            parents = set(children)
        return found

    def log(self) -> str:
        """Everything sshd has said so far."""
        path = self.folder / "log"
        return path.read_text(errors="replace") if path.exists() else ""

    def config(self, alias: str = "gpu", **settings: Any) -> Path:
        """A new ssh_config for an `alias` that leads here; `settings` are added, or replace ours."""
        whole = {
            "HostName": "127.0.0.1",
            "Port": self.port,
            "User": self.user,
            "IdentityFile": self.key,
            "IdentitiesOnly": "yes",
            "UserKnownHostsFile": self.known_hosts,
            "GlobalKnownHostsFile": "none",
            **settings,
        }
        path = self.folder / f"config-{alias}"
        path.write_text(f"Host {alias}\n" + "".join(f"  {name} {value}\n" for name, value in whole.items()))
        return path

    def target(self, **changes: Any) -> SshTarget:
        """How to get here without any configuration."""
        target = SshTarget(
            "127.0.0.1",
            user=self.user,
            port=self.port,
            identity_file=str(self.key),
            known_hosts=str(self.known_hosts),
            config_file=str(self.folder / "no-config"),
            reconnect_s=30,
        )
        return dataclasses.replace(target, **changes)


def _sshds() -> list[int]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (folder / "comm").read_text().strip() == "sshd":
                found.append(int(folder.name))
    return found
