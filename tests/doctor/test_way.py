"""The way over a real sshd: keys, hosts, jumps, closed ports, noisy and strange login shells."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from launchers.host import HostLauncher, HostSettings
from launchers.ssh import SshShell
from launchers.ssh_config import SshTarget
from sweeper.doctor.context import Context
from sweeper.doctor.examination import examine
from sweeper.doctor.finding import Finding, Level, Place, Said
from sweeper.engines.registry import engine_for
from tests.doctor.asking import LLAMACPP, composed, said
from tests.launchers.conftest import unused_port
from tests.ssh.conftest import account
from tests.ssh.sshd import Sshd, make_key, public

pytestmark = [pytest.mark.host, pytest.mark.compose]


@pytest.fixture(scope="module")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    with Sshd(tmp_path_factory.mktemp("sshd")) as sshd:
        yield sshd


def way(target: SshTarget) -> dict[str, Finding]:
    """What is found on the way, by check; the last of each."""
    spec = composed(*LLAMACPP)
    shell = SshShell(target, "gpu1")
    try:
        launcher = HostLauncher(shell, HostSettings("gpu1", "~/state", port_low=40200, port_high=40220))
        found = examine([Context(spec, engine_for(spec.engine.name), launcher)])
    finally:
        shell.close()
    host = [each for each in found if each.place is Place.HOST]
    if not any(each.check == "session" and each.level is Level.OK for each in found):
        assert {each.level for each in host} == {Level.WAITING}
    return {each.check: each for each in found if each.place is Place.WAY}


def test_a_good_way_is_told_from_end_to_end(sshd: Sshd) -> None:
    found = way(sshd.target())
    assert {each.level for each in found.values()} == {Level.OK}
    assert list(found) == ["route", "reach", "host_key", "login", "session", "latency", "clocks"]
    assert not list(sshd.home.iterdir())


@pytest.mark.parametrize(
    ("check", "changes", "reason", "fix"),
    [
        ("reach", {"port": "closed"}, "the connection was refused", "ssh 127.0.0.1"),
        ("reach", {"destination": "no-such-host.invalid"}, "is not known", "ssh no-such-host.invalid"),
        ("host_key", {"known_hosts": "unknown"}, "the host key is unknown: ssh-ed25519", "ssh-keyscan -t ed25519"),
        ("host_key", {"known_hosts": "changed"}, "THE HOST KEY HAS CHANGED", "ssh-keygen -R"),
        ("login", {"identity_file": "other"}, "the login was refused", "Name the right key"),
        ("login", {"identity_file": "/nowhere"}, "no such file", "Name the right key"),
        ("route", {"config_file": "circle", "destination": "a"}, "in a circle", "correct that file"),
    ],
)
def test_each_obstacle_is_told_where_it_stands(
    sshd: Sshd, tmp_path: Path, check: str, changes: dict[str, Any], reason: str, fix: str
) -> None:
    made = {
        "closed": unused_port(),
        "unknown": str(tmp_path / "empty"),
        "changed": str(tmp_path / "known"),
        "other": str(make_key(tmp_path / "other")),
        "circle": str(tmp_path / "config"),
    }
    (tmp_path / "known").write_text(f"[127.0.0.1]:{sshd.port} {public(tmp_path / 'other')}")
    (tmp_path / "config").write_text("Host a\n  ProxyJump b\nHost b\n  ProxyJump a\n")
    target = sshd.target(**{name: made.get(value, value) for name, value in changes.items()}, connect_timeout_s=5)
    found = way(target)
    assert found[check].level is Level.ERROR
    assert reason in found[check].reason
    assert fix in found[check].fix
    later = list(found)[list(found).index(check) + 1 :]
    assert {found[name].level for name in later} == {Level.WAITING}


def test_an_obstacle_behind_a_jump_host_is_told_as_that(sshd: Sshd, tmp_path: Path) -> None:
    config = sshd.config("jump")
    with config.open("a") as file:
        file.write(f"Host far\n  HostName 127.0.0.1\n  Port {unused_port()}\n  ProxyJump jump\n")
    found = way(SshTarget("far", config_file=str(config), connect_timeout_s=5))
    assert found["route"].reason.count(" -> ") == 1
    assert found["reach"].level is Level.ERROR
    assert "the jump host does not connect to it" in found["reach"].reason
    assert "ssh far" in found["reach"].fix


@pytest.mark.parametrize(
    ("login_shell", "startup", "level", "words"),
    [
        ("bash", {".bashrc": "echo welcome to gpu1\n"}, Level.WARNING, "welcome to gpu1"),
        ("bash", {".bashrc": "exit 0\n"}, Level.ERROR, "whole reply"),
        ("fish", {}, Level.OK, "fish"),
        ("tcsh", {".tcshrc": "echo hello\n"}, Level.WARNING, "hello"),
        ("csh", {}, Level.OK, "csh"),
    ],
)
def test_what_the_login_shell_does_is_told(
    sshd: Sshd, login_shell: str, startup: dict[str, str], level: Level, words: str, tmp_path: Path
) -> None:
    with account(login_shell) as (user, home):
        sshd.accept_at(home)
        for name, content in startup.items():
            (home / name).write_text(content)
        with Sshd(tmp_path / "own", env={"HOME": str(home)}) as own:
            own.accept(sshd.key)
            found = session(own.target(user=user, identity_file=str(sshd.key)))
        assert max(found, key=lambda each: [Level.OK, Level.WARNING, Level.ERROR].index(each.level)).level is level
        assert words in " ".join(each.reason for each in found)


def session(target: SshTarget) -> list[Said]:
    """What is said of the session."""
    spec = composed(*LLAMACPP)
    shell = SshShell(target, "gpu1")
    try:
        return said(
            "session", Context(spec, engine_for(spec.engine.name), HostLauncher(shell, HostSettings("gpu1")))
        )
    finally:
        shell.close()
