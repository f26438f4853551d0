"""What ssh_config makes of a destination. No connection is made here."""

from __future__ import annotations

import getpass
from pathlib import Path

import pytest

from launchers.errors import SshRefused
from launchers.ssh_config import Hop, SshTarget, route


def hops(folder: Path, text: str, destination: str = "gpu", **settings: object) -> tuple[Hop, ...]:
    config = folder / "config"
    config.write_text(text)
    return route(SshTarget(destination, config_file=str(config), **settings))  # type: ignore[arg-type]


def only(folder: Path, text: str, destination: str = "gpu", **settings: object) -> Hop:
    (hop,) = hops(folder, text, destination, **settings)
    return hop


def test_an_alias_is_resolved(tmp_path: Path) -> None:
    hop = only(
        tmp_path,
        "Host gpu\n HostName %h.example.org\n Port 2222\n User ann\n IdentityFile ~/a\n IdentitiesOnly yes\n"
        ' UserKnownHostsFile ~/k1 "/k 2"\n GlobalKnownHostsFile none\n'
        "Host *\n User bob\n Port 1\n IdentityFile /b\n",
    )
    home = str(Path.home())
    assert (hop.host, hop.port, hop.user, hop.alias) == ("gpu.example.org", 2222, "ann", "gpu")
    assert hop.key_name == "[gpu.example.org]:2222"
    assert (hop.identities, hop.identities_only) == ((f"{home}/a", "/b"), True)
    assert hop.known_hosts == (f"{home}/k1", "/k 2")


def test_without_any_configuration_there_are_the_defaults_of_openssh(tmp_path: Path) -> None:
    hop = route(SshTarget("gpu.example.org", config_file=str(tmp_path / "missing")))[-1]
    assert (hop.host, hop.port, hop.user) == ("gpu.example.org", 22, getpass.getuser())
    assert hop.key_name == "gpu.example.org"
    assert hop.known_hosts[0] == str(Path("~/.ssh/known_hosts").expanduser())
    assert hop.known_hosts[-1] == "/etc/ssh/ssh_known_hosts"


def test_what_is_said_explicitly_wins(tmp_path: Path) -> None:
    text = "Host gpu\n Port 2222\n User ann\n IdentityFile /a\n UserKnownHostsFile /k\n GlobalKnownHostsFile /g\n"
    hop = only(tmp_path, text, user="bob", port=23, identity_file="/b", known_hosts="/mine")
    assert (hop.port, hop.user, hop.identities, hop.known_hosts) == (23, "bob", ("/b",), ("/mine", "/g"))


def test_a_name_for_the_host_key_takes_the_place_of_host_and_port(tmp_path: Path) -> None:
    assert only(tmp_path, "Host gpu\n Port 2222\n HostKeyAlias cluster\n").key_name == "cluster"


def test_included_files_are_read_where_they_stand(tmp_path: Path) -> None:
    (tmp_path / "conf.d").mkdir()
    (tmp_path / "conf.d" / "1").write_text("Host gpu\n User ann\nHost other\n User eve\n")
    (tmp_path / "conf.d" / "2").write_text("Host gpu\n User late\n Port 2\n")
    (tmp_path / "inner").write_text("Port 3\nHostName 10.0.0.3\n")
    text = 'Include "conf.d/*"\nIdentityFile /global\nHost gpu\n include ' + str(tmp_path) + "/inner\n User last\n"
    hop = only(tmp_path, text)
    assert (hop.user, hop.port, hop.host, hop.identities) == ("ann", 2, "10.0.0.3", ("/global",))
    other = only(tmp_path, text, "other")
    assert (other.user, other.port, other.host) == ("eve", 22, "other"), "an include in a block is the block's"


def test_a_file_that_includes_itself_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SshRefused, match="16 levels deep"):
        hops(tmp_path, "Include config\n")


def test_jump_hosts_stand_before_the_destination(tmp_path: Path) -> None:
    text = (
        "Host gpu\n ProxyJump eve@[::1]:24,inner\n"
        "Host ::1\n IdentityFile /outer\n"
        "Host inner\n HostName 10.0.0.2\n User ann\n ProxyJump never\n"
    )
    outer, inner, gpu = hops(tmp_path, text, identity_file="/mine", user="me")
    assert (outer.host, outer.port, outer.user, outer.identities) == ("::1", 24, "eve", ("/outer",))
    assert (inner.host, inner.port, inner.user) == ("10.0.0.2", 22, "ann"), "its own ProxyJump is overruled"
    assert (gpu.host, gpu.user, gpu.identities) == ("gpu", "me", ("/mine",))
    assert inner.via == " through eve@::1:24"
    assert str(gpu) == "ssh me@gpu:22 through ann@10.0.0.2:22"


def test_the_jump_host_of_a_jump_host_counts(tmp_path: Path) -> None:
    text = "Host gpu\n ProxyJump ssh://a:23\nHost a\n ProxyJump b\nHost b\n ProxyJump none\nHost *\n ProxyJump x\n"
    assert [(hop.host, hop.port) for hop in hops(tmp_path, text)] == [("b", 22), ("a", 23), ("gpu", 22)]


@pytest.mark.parametrize("text", ["ProxyJump bastion\n", "Host a\n ProxyJump gpu\nHost gpu\n ProxyJump a\n"])
def test_jump_hosts_that_lead_in_a_circle_are_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(SshRefused, match="circle"):
        hops(tmp_path, text)


def test_of_jump_and_command_the_first_counts(tmp_path: Path) -> None:
    command = only(tmp_path, "Host gpu\n ProxyCommand nc %h %p\n ProxyJump a\n")
    assert (command.proxy_command, str(command)[-22:]) == ("nc gpu 22", ":22 through `nc gpu 22`"[-22:])
    jump = hops(tmp_path, "Host gpu\n ProxyJump a\n ProxyCommand nc %h %p\n")
    assert [(hop.host, hop.proxy_command) for hop in jump] == [("a", ""), ("gpu", "")]
    assert only(tmp_path, "Host gpu\n ProxyCommand none\n ProxyJump a\n").proxy_command == ""


def test_match_blocks_count(tmp_path: Path) -> None:
    text = "Host gpu\n HostName gpu.example.org\nMatch host *.example.org\n User ann\nMatch host b\n User eve\n"
    assert only(tmp_path, text).user == "ann"


@pytest.mark.parametrize(
    "text", ["Port no-number\n", "Port 70000\n", "Host 'unclosed\n", "x\n", "ProxyJump a b\n"]
)
def test_a_configuration_that_makes_no_sense_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(SshRefused, match="cannot be applied to gpu"):
        hops(tmp_path, text)


@pytest.mark.parametrize(
    "name", ["", "-oProxyCommand=x", "ann@gpu", "a b", "a\nb", "a;b", "a/b", "*", "a,b", "$(x)"]
)
def test_a_destination_is_a_plain_name(name: str) -> None:
    with pytest.raises(ValueError, match="destination must be"):
        SshTarget(name)


@pytest.mark.parametrize("name", ["gpu", "gpu-1.example.org", "10.0.0.1", "::1", "fe80::1%eth0", "gpu_1"])
def test_names_and_addresses_are_destinations(name: str) -> None:
    assert SshTarget(name).destination == name


def test_everything_wrong_with_a_target_is_said_at_once() -> None:
    with pytest.raises(ValueError) as refused:
        SshTarget(
            "gpu", "a b", 70000, "k\n", password_env="1X", connect_timeout_s=0, reconnect_s=float("nan")
        )  # fmt: skip
    for part in ("'a b'", "70000", "'k\\n'", "'1X'", "connect_timeout_s 0", "reconnect_s nan"):
        assert part in str(refused.value)
