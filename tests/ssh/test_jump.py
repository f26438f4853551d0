"""Through jump hosts and proxy commands, each with its own login and its own known key."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from launchers.errors import HostLost, SshRefused
from launchers.ssh import SshShell
from launchers.ssh_config import SshTarget
from tests.launchers.conftest import until, unused_port, with_token
from tests.ssh.conftest import FAST
from tests.ssh.proxy import Proxy
from tests.ssh.sshd import Sshd, make_key
from tests.ssh.test_breaks import seconds_to_notice
from tests.ssh.test_forward import connect, echo_upper, server

pytestmark = pytest.mark.host
RELAY = """
import socket, sys, threading
way = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
def up():
    while data := sys.stdin.buffer.raw.read(65536):
        way.sendall(data)
    way.shutdown(socket.SHUT_WR)
threading.Thread(target=up, daemon=True).start()
while data := way.recv(65536):
    sys.stdout.buffer.raw.write(data)
"""


@pytest.fixture(scope="module")
def jump(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    """Another sshd, with a host key of its own, that lets another key in."""
    with Sshd(tmp_path_factory.mktemp("jump")) as jump:
        yield jump


def through(folder: Path, gpu: Sshd, *jumps: Sshd, **settings: object) -> SshTarget:
    """A target whose ssh_config leads to `gpu` through `jumps`; `settings` are those of the first jump host."""
    names = [f"jump-{number}" for number, _ in enumerate(jumps)]
    text = gpu.config("gpu", ProxyJump=",".join(names)).read_text()
    for number, (name, jump) in enumerate(zip(names, jumps, strict=True)):
        text += jump.config(name, **(settings if number == 0 else {})).read_text()
    (folder / "config").write_text(text)
    return SshTarget("gpu", config_file=str(folder / "config"), connect_timeout_s=5, reconnect_s=20)


def test_a_jump_host_is_really_used(sshd: Sshd, jump: Sshd, tmp_path: Path) -> None:
    before = jump.log().count("Accepted publickey"), sshd.log().count("Accepted publickey")
    shell = SshShell(through(tmp_path, sshd, jump), "gpu", FAST)
    result = shell.run("echo $HOME $SSH_CONNECTION; exit 3", timeout_s=20)
    home, client, client_port, *_ = result.stdout.decode().split()
    assert (result.exit_code, home, client) == (3, str(sshd.home), "127.0.0.1")
    assert (jump.log().count("Accepted publickey"), sshd.log().count("Accepted publickey")) == (
        before[0] + 1,
        before[1] + 1,
    )
    (peer,) = [
        pid for pid in jump.sessions() if f":{int(client_port):04X} " in Path(f"/proc/{pid}/net/tcp").read_text()
    ][:1]
    assert peer
    with server(echo_upper) as port, connect(shell.address(port)) as client_socket:
        client_socket.sendall(b"a")
        assert client_socket.recv(1) == b"A"
    shell.close()
    until(lambda: jump.sessions() == [], "the connection to the jump host is closed, too")


def test_a_chain_of_jump_hosts(sshd: Sshd, jump: Sshd, tmp_path: Path) -> None:
    with Sshd(tmp_path / "second") as second:
        shell = SshShell(through(tmp_path, sshd, jump, second), "gpu", FAST)
        assert shell.run("exit 3", timeout_s=20).exit_code == 3
        assert second.log().count("Accepted publickey") == 1
        shell.close()


def test_a_jump_host_with_an_unknown_key_is_refused(sshd: Sshd, jump: Sshd, tmp_path: Path) -> None:
    target = through(tmp_path, sshd, jump, UserKnownHostsFile=tmp_path / "empty")
    with pytest.raises(SshRefused, match=f"ssh {jump.user}@127.0.0.1:{jump.port}: the host key is unknown"):
        SshShell(target).run(":", timeout_s=20)


def test_a_destination_with_an_unknown_key_is_told_from_its_jump_host(
    sshd: Sshd, jump: Sshd, tmp_path: Path
) -> None:
    sshd_config = sshd.config("gpu", ProxyJump="jump-0", UserKnownHostsFile=tmp_path / "empty").read_text()
    (tmp_path / "config").write_text(sshd_config + jump.config("jump-0").read_text())
    with pytest.raises(SshRefused, match="the host key is unknown") as refused:
        SshShell(SshTarget("gpu", config_file=str(tmp_path / "config"))).run(":", timeout_s=20)
    message = str(refused.value)
    assert f"127.0.0.1:{sshd.port} through {jump.user}@127.0.0.1:{jump.port}: " in message
    assert message.endswith("accept the key with: ssh gpu  (once, by hand)")


def test_a_password_is_not_offered_to_a_jump_host(
    sshd: Sshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPECSWEEP_SSH_PASSWORD", "for the destination only")
    with Sshd(tmp_path / "asking", "PasswordAuthentication yes\n") as asking:
        target = through(tmp_path, sshd, asking, IdentityFile=make_key(tmp_path / "stray"))
        with pytest.raises(SshRefused, match="the login was refused"):
            SshShell(target).run(":", timeout_s=20)
        assert "Failed password" not in asking.log()


def test_a_jump_host_that_does_not_get_there_says_so(sshd: Sshd, jump: Sshd, tmp_path: Path) -> None:
    text = sshd.config("gpu", ProxyJump="jump-0", Port=unused_port()).read_text()
    (tmp_path / "config").write_text(text + jump.config("jump-0").read_text())
    target = SshTarget("gpu", config_file=str(tmp_path / "config"))
    with pytest.raises(HostLost, match="the jump host does not connect to it"):
        SshShell(target, pace=FAST).run(":", timeout_s=20)


def test_a_dead_link_behind_the_jump_host_is_noticed(sshd: Sshd, jump: Sshd, tmp_path: Path, token: str) -> None:
    """The first stretch is fine: only an answer from the far end tells."""
    with Proxy(sshd.port) as far:
        text = sshd.config("gpu", ProxyJump="jump-0", Port=far.port).read_text()
        (tmp_path / "config").write_text(text + jump.config("jump-0").read_text())
        target = SshTarget("gpu", config_file=str(tmp_path / "config"), connect_timeout_s=1, reconnect_s=20)
        shell = SshShell(target, "gpu", FAST)
        noticed_s = seconds_to_notice(shell, far, token)
        print(f"noticed after {noticed_s:.1f} s, where 1.6 s of silence are allowed")
        far.heal()
        assert shell.run("exit 3", timeout_s=30).exit_code == 3
        shell.run(f"for pid in $(grep -l {token} /proc/[0-9]*/cmdline | tr -dc '0-9\\n'); do kill $pid; done", 20)
        shell.close()
        assert noticed_s < 30


def test_a_proxy_command_is_used_and_ended(sshd: Sshd, tmp_path: Path, token: str) -> None:
    (tmp_path / "relay.py").write_text(RELAY)
    command = f"{sys.executable} -I -S {tmp_path}/relay.py %p {token}"
    config = sshd.config("gpu", ProxyCommand=command)
    shell = SshShell(SshTarget("gpu", config_file=str(config), reconnect_s=20), "gpu", FAST)
    assert shell.run("exit 3", timeout_s=20).exit_code == 3
    (relay,) = with_token(token)
    subprocess.run(["kill", str(relay)], check=True)
    until(lambda: shell.num_breaks() == 1, "its end is the end of the connection")
    assert shell.run("exit 4", timeout_s=20).exit_code == 4
    shell.close()
    assert with_token(token) == []


def test_a_proxy_command_that_fails_is_said_so(sshd: Sshd) -> None:
    config = sshd.config("gpu", ProxyCommand="false %h")
    with pytest.raises(HostLost, match=r"through `false 127\.0\.0\.1`: what answers there did not agree on SSH"):
        SshShell(SshTarget("gpu", config_file=str(config)), pace=FAST).run(":", timeout_s=20)
