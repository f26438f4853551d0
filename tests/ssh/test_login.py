"""Who may log in where: host keys, keys, passphrases, passwords, the agent; and what is said when it fails."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from launchers.errors import HostLost, SshRefused
from launchers.ssh import Pace, SshShell
from launchers.ssh_config import SshTarget
from tests.launchers.conftest import stranger, unused_port
from tests.ssh.conftest import MakeShell, account
from tests.ssh.sshd import Sshd, make_key, public

pytestmark = pytest.mark.host
IMPATIENT = Pace(first_patience_s=0)


def refusal(shell: SshShell) -> str:
    with pytest.raises(SshRefused) as refused:
        shell.run(":", timeout_s=20)
    return str(refused.value)


def fingerprint(key: Path) -> str:
    argv = ["ssh-keygen", "-lf", f"{key}.pub"]
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.split()[1]


def test_a_host_is_reached_by_its_alias(sshd: Sshd) -> None:
    shell = SshShell(SshTarget("gpu", config_file=str(sshd.config("gpu"))))
    assert (shell.run("echo $HOME", timeout_s=20).stdout, shell.name) == (f"{sshd.home}\n".encode(), "gpu")
    shell.close()


def test_an_unknown_host_key_is_refused_with_the_command_that_accepts_it(sshd: Sshd, tmp_path: Path) -> None:
    known = tmp_path / "known hosts"
    shell = SshShell(sshd.target(known_hosts=str(known)))
    message = refusal(shell)
    assert fingerprint(sshd.host_key) in message
    assert "/etc/ssh/ssh_host_ed25519_key.pub" in message
    command = message.split("accept the key with: ")[1]
    assert command == f"ssh-keyscan -t ed25519 -p {sshd.port} 127.0.0.1 >> '{known}'"
    subprocess.run(command, shell=True, check=True, stderr=subprocess.DEVNULL)
    assert shell.run("exit 3", timeout_s=20).exit_code == 3
    shell.close()


def test_a_changed_host_key_is_never_to_be_accepted_blindly(sshd: Sshd, tmp_path: Path) -> None:
    other = make_key(tmp_path / "other")
    known = tmp_path / "known"
    known.write_text(f"# a comment\n[127.0.0.1]:{sshd.port} {public(other)}")
    message = refusal(SshShell(sshd.target(known_hosts=str(known))))
    assert "THE HOST KEY HAS CHANGED" in message
    assert f"line 2 of {known}" in message
    assert fingerprint(other) in message
    assert fingerprint(sshd.host_key) in message
    assert "keyscan" not in message


@pytest.mark.parametrize(
    ("line", "is_known"),
    [
        ("127.0.0.1 {key}", False),  # that is port 22
        ("x,[127.0.0.1]:{port} {key}", True),
        ("[127.0.0.?]:* {key}", True),
        ("[127.*]:*,![127.0.0.1]:{port} {key}", False),
        ("[127.0.0.1]:{port} ssh-ed25519 AAAA", False),
        ("[127.0.0.1]:{port} ssh-nothing AAAA", False),
        ("[127.0.0.1]:{port}", False),
        ("#[127.0.0.1]:{port} {key}", False),
        ("@cert-authority [127.0.0.1]:{port} {key}", False),
        ("@revoked [127.0.0.1]:{port} {key}", False),
        ("[127.0.0.1]:{port} {key}@revoked * {key}", False),
        ("|1|nonsense| {key}", False),
        ("\udcff\n[127.0.0.1]:{port} {key}", True),
    ],
)
def test_known_hosts_are_read_as_openssh_does(sshd: Sshd, tmp_path: Path, line: str, is_known: bool) -> None:
    known = tmp_path / "known"
    text = line.format(port=sshd.port, key=public(sshd.host_key))
    known.write_bytes(text.encode("utf-8", "surrogateescape"))
    shell = SshShell(sshd.target(known_hosts=str(known)))
    if is_known:
        assert shell.run(":", timeout_s=20).exit_code == 0
        shell.close()
    else:
        assert re.search("unknown|revoked", refusal(shell))


def test_hashed_known_hosts_are_found(sshd: Sshd, tmp_path: Path) -> None:
    known = tmp_path / "known"
    known.write_text(f"[127.0.0.1]:{sshd.port} {public(sshd.host_key)}")
    subprocess.run(["ssh-keygen", "-H", "-f", str(known)], check=True, capture_output=True)
    assert "127.0.0.1" not in known.read_text()
    shell = SshShell(sshd.target(known_hosts=str(known)))
    assert shell.run(":", timeout_s=20).exit_code == 0
    shell.close()


def test_a_key_of_the_known_type_is_asked_for(tmp_path: Path) -> None:
    rsa = make_key(tmp_path / "rsa", kind="rsa")
    with Sshd(tmp_path / "sshd", extra=f"HostKey {rsa}\n") as sshd:  # and its usual one, which paramiko prefers
        sshd.known_hosts.write_text(f"[127.0.0.1]:* {public(rsa)}")
        shell = SshShell(sshd.target())
        assert shell.run(":", timeout_s=20).exit_code == 0
        shell.close()


def test_a_refused_login_says_what_was_tried(sshd: Sshd, tmp_path: Path) -> None:
    stray = make_key(tmp_path / "stray")
    config = sshd.config("gpu", IdentityFile=f"{tmp_path}/missing\n  IdentityFile {stray}")
    message = refusal(SshShell(SshTarget("gpu", config_file=str(config))))
    assert f"ssh {sshd.user}@127.0.0.1:{sshd.port}: the login was refused" in message
    assert f"{tmp_path}/missing: no such file; {stray}: rejected" in message
    assert "SPECSWEEP_SSH_PASSWORD" in message


def test_a_login_that_nobody_answers_is_no_refusal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("launchers.ssh_link._LOGIN_TIMEOUT_S", 0.5)
    slow = "AuthorizedKeysFile none\nAuthorizedKeysCommand /usr/bin/sleep 4\nAuthorizedKeysCommandUser root\n"
    with Sshd(tmp_path / "sshd", extra=slow) as sshd:
        shell = SshShell(sshd.target(), pace=IMPATIENT)
        with pytest.raises(HostLost, match=r"no answer to the login within 0\.5 s") as lost:
            shell.run(":", timeout_s=20)
        assert not isinstance(lost.value, SshRefused), "it is worth another try"


def test_the_right_key_is_found_among_several(sshd: Sshd, tmp_path: Path) -> None:
    stray = make_key(tmp_path / "stray")
    config = sshd.config("gpu", IdentityFile=f"{stray}\n  IdentityFile {sshd.key}")
    shell = SshShell(SshTarget("gpu", config_file=str(config)))
    assert shell.run(":", timeout_s=20).exit_code == 0
    shell.close()


@pytest.mark.parametrize(
    "kind", ["ed25519", pytest.param("rsa", marks=pytest.mark.slow), pytest.param("ecdsa", marks=pytest.mark.slow)]
)
def test_a_passphrase_comes_from_the_environment(
    sshd: Sshd, make_shell: MakeShell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    locked = make_key(tmp_path / "locked", "a p'ss ā", kind)
    sshd.accept(locked)
    shell = make_shell(identity_file=str(locked), passphrase_env="OPEN")
    assert "protected by a passphrase; put that into OPEN" in refusal(shell)
    monkeypatch.setenv("OPEN", "wrong")
    assert "is the passphrase in OPEN right?" in refusal(shell)
    monkeypatch.setenv("OPEN", "a p'ss ā")
    assert shell.run(":", timeout_s=20).exit_code == 0


def test_a_file_that_is_no_key_is_named(make_shell: MakeShell, tmp_path: Path) -> None:
    (tmp_path / "junk").write_text("junk")
    assert f"{tmp_path}/junk: cannot be read" in refusal(make_shell(identity_file=str(tmp_path / "junk")))


def test_a_password_comes_from_the_environment_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    allowed = "PasswordAuthentication yes\n"
    with account("sh", "a pässword") as (user, _), Sshd(tmp_path / "sshd", allowed) as sshd:
        missing_key = tmp_path / "missing"
        shell = SshShell(sshd.target(user=user, identity_file=str(missing_key), password_env="WORD"))
        assert "put the password into WORD" in refusal(shell)
        monkeypatch.setenv("WORD", "wrong")
        message = refusal(shell)
        assert "the password in WORD: rejected" in message
        assert "wrong" not in message
        monkeypatch.setenv("WORD", "a pässword")
        assert shell.run("id -un", timeout_s=20).stdout.decode() == f"{user}\n"
        assert "a pässword" not in repr(vars(shell))
        shell.close()


def test_a_key_and_a_password_can_both_be_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    both = "PasswordAuthentication yes\nAuthenticationMethods publickey,password\n"
    with account("sh", "word") as (user, home), Sshd(tmp_path / "sshd", both) as sshd:
        sshd.accept_at(home)
        shell = SshShell(sshd.target(user=user, password_env="WORD"))
        assert "accepted, and a password is wanted as well" in refusal(shell)
        monkeypatch.setenv("WORD", "word")
        assert shell.run(":", timeout_s=20).exit_code == 0
        shell.close()


@contextlib.contextmanager
def agent(folder: Path, *keys: Path) -> Iterator[str]:
    path = str(folder / "agent")
    with stranger(("ssh-agent", "-D", "-a", path), stdout=subprocess.DEVNULL) as process:
        while not Path(path).exists() and process.poll() is None:
            pass
        environment = {**os.environ, "SSH_AUTH_SOCK": path}
        subprocess.run(["ssh-add", "-q", *map(str, keys)], env=environment, check=True)
        yield path


def test_a_key_of_the_agent_is_used(sshd: Sshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    strays = [make_key(tmp_path / f"stray-{number}") for number in range(3)]
    locked = make_key(tmp_path / "locked")
    sshd.accept(locked)
    with agent(tmp_path, *strays, locked) as path:
        monkeypatch.setenv("SSH_AUTH_SOCK", path)
        for only_named in ("yes", "no"):
            subprocess.run(
                ["ssh-keygen", "-q", "-p", "-N", "secret", "-P", "", "-f", locked], check=only_named == "yes"
            )
            config = sshd.config("gpu", IdentityFile=locked, IdentitiesOnly=only_named)
            shell = SshShell(SshTarget("gpu", config_file=str(config)))
            assert shell.run(":", timeout_s=20).exit_code == 0
            shell.close()
        config = sshd.config("gpu", IdentityFile=strays[0], IdentitiesOnly="yes")
        assert refusal(SshShell(SshTarget("gpu", config_file=str(config)))).count("rejected") == 1


def test_too_many_keys_are_no_broken_connection(sshd: Sshd, tmp_path: Path) -> None:
    strays = [make_key(tmp_path / f"stray-{number}") for number in range(7)]
    config = sshd.config("gpu", IdentityFile="\n  IdentityFile ".join(map(str, strays)))
    message = refusal(SshShell(SshTarget("gpu", config_file=str(config))))
    assert "IdentitiesOnly yes when there are many" in message


def lost(target: SshTarget) -> str:
    with pytest.raises(HostLost) as failed:
        SshShell(target, "gpu", IMPATIENT).run(":", timeout_s=20)
    assert not isinstance(failed.value, SshRefused)
    return str(failed.value)


def test_a_host_that_is_not_there_is_told_from_one_that_refuses_us(sshd: Sshd) -> None:
    port = unused_port()
    assert f"gpu: ssh {sshd.user}@127.0.0.1:{port}: the connection was refused" in lost(sshd.target(port=port))


def test_a_name_that_is_not_known_is_said_so(sshd: Sshd) -> None:
    assert "the name 'no-such-host.invalid' is not known" in lost(sshd.target(destination="no-such-host.invalid"))


def test_a_host_that_says_nothing_is_not_waited_for_long(sshd: Sshd) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        target = sshd.target(port=silent.getsockname()[1], connect_timeout_s=0.3)
        assert "did not agree on SSH" in lost(target)


def test_the_first_connection_is_tried_for_a_few_seconds(sshd: Sshd) -> None:
    shell = SshShell(sshd.target(), pace=Pace(first_patience_s=20))
    sshd.stop()
    timer = threading.Timer(0.8, sshd.start)
    timer.start()
    assert shell.run("exit 3", timeout_s=20).exit_code == 3
    timer.join()
    assert shell.num_breaks() == 0
    shell.close()
