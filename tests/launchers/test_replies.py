"""Quoting and framing: nothing that a value or a host says can be taken for something else."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from launchers.base import LaunchSpec
from launchers.errors import HostLost, StartFailed
from launchers.host import HostLauncher, HostSettings
from launchers.replies import Reply, call_script, command_text, export_lines, parse_reply, quote
from launchers.shell import LocalShell
from tests.launchers.conftest import Bench
from tests.launchers.shells import quick_in

words = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)
nasty = st.sampled_from(
    ["", "-n", "--", "'", '"', "\n", "'\"'\"'", "\\", "$(id)", "`id`", "${x}", "!", "\x81\x88"]
)
bodies = st.binary(max_size=200)


def framed(body: bytes, nonce: str = "n0", kind: str = "logs", code: int = 0) -> bytes:
    return f"\n@specsweep {nonce} begin {kind}\n".encode() + body + f"\n@specsweep {nonce} end {code}\n".encode()


@quick_in("busybox")
@pytest.mark.host
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(words | nasty, max_size=20))
def test_every_word_reaches_a_real_shell_unchanged(program: str, values: list[str]) -> None:
    result = LocalShell("here", program).run(
        f"printf '%s\\0' {' '.join(map(quote, [*values, 'end']))}", timeout_s=60
    )
    assert result.stdout.decode().split("\0") == [*values, "end", ""], result


@pytest.mark.host
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(words | nasty, max_size=10))
def test_every_argument_reaches_a_command_unchanged(bench: Bench, values: list[str]) -> None:
    result = bench.launcher.run(("printf", "%s\\0", *values, "end"), timeout_s=60)
    assert result.stdout.decode().split("\0") == [*values, "end", ""], result


@given(words.filter(bool), words)
def test_a_word_with_a_nul_is_refused(before: str, after: str) -> None:
    with pytest.raises(ValueError, match="NUL"):
        quote(f"{before}\0{after}")


@given(body=bodies, before=bodies, after=bodies)
def test_a_reply_is_found_in_any_noise(body: bytes, before: bytes, after: bytes) -> None:
    assert parse_reply(before + framed(body) + after, "n0") == Reply("logs", body, 0)


@given(bodies)
def test_a_reply_to_another_call_is_no_reply(body: bytes) -> None:
    with pytest.raises(HostLost, match="not a whole reply"):
        parse_reply(framed(body, nonce="n1"), "n0")
    assert parse_reply(framed(framed(body, nonce="n1")), "n0").body == framed(body, nonce="n1")


@given(bodies, st.data())
def test_a_reply_that_was_cut_is_no_reply(body: bytes, data: st.DataObject) -> None:
    whole = framed(body)
    length = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises(HostLost):
        parse_reply(whole[:length], "n0")


@pytest.mark.parametrize(
    "stdout",
    [
        framed(b"") + framed(b""),
        b"\n@specsweep n0 end 0\n\n@specsweep n0 begin logs\n",
        framed(b"").replace(b"end 0", b"end x"),
        framed(b"").replace(b"end 0", b"end 1000"),
        framed(b"").replace(b"begin logs", b"begin LOGS"),
        framed(b"").replace(b"begin logs", b"begin logs more"),
    ],
)
def test_nonsense_is_no_reply(stdout: bytes) -> None:
    with pytest.raises(HostLost):
        parse_reply(stdout, "n0")


def test_a_body_that_does_not_fit_is_nonsense() -> None:
    assert Reply("port", b"30000", 0).fields(r"(\d+)") == ("30000",)
    for body in (b"", b"30000\n", b"x30000", b"30 000", b"\xff"):
        with pytest.raises(HostLost, match="makes no sense"):
            Reply("port", body, 0).fields(r"(\d+)")


def test_undecodable_text_of_a_host_can_be_shown() -> None:
    assert Reply("dirty", b"pid 1: \xff\xfe x\n", 0).text() == "pid 1: \\xff\\xfe x"


def test_a_call_is_one_line_after_the_functions() -> None:
    script = call_script("n0", "~/.specsweep", "run", ("it's", "a b"))
    assert script.endswith("\n{ main n0 '~/.specsweep' run 'it'\"'\"'s' 'a b'; } </dev/null\n")


def test_a_command_sets_then_removes_then_names_its_words() -> None:
    spec = LaunchSpec(("serve", "--name", "it's"), 30000, "n0", {"A": "1 2", "B": ""}, ("B", "C"))
    assert command_text(spec) == "export A='1 2'\nexport B=''\nunset B\nunset C\nset -- serve --name 'it'\"'\"'s'"


def test_everything_wrong_with_a_server_is_said_at_once() -> None:
    spec = LaunchSpec(("-x", "a\0b"), 70000, "../up", {"A-B": "1", "SPECSWEEP_SERVER": "x"}, ("1C",))
    with pytest.raises(StartFailed) as refused:
        command_text(spec)
    message = str(refused.value)
    for part in ("../up", "'-x'", "70000", "'A-B'", "'SPECSWEEP_SERVER'", "'1C'", "NUL"):
        assert part in message


@pytest.mark.parametrize("nonce", ["", ".", "..", ".a", "-a", "a/b", "a b", "a\n", "ä", "x" * 101])
def test_a_nonce_is_a_plain_file_name(nonce: str) -> None:
    with pytest.raises(StartFailed, match="nonce"):
        command_text(LaunchSpec(("serve",), 30000, nonce))


def test_everything_wrong_with_a_host_is_said_at_once() -> None:
    with pytest.raises(ValueError) as refused:
        HostSettings("gpu", "relative", 9, 8, answer_timeout_s=0, gpus=(1, 1), gpu_idle_mib=-1)
    for part in ("'gpu'", "'relative'", "9 to 8", "answer_timeout_s 0", "gpus (1, 1)", "gpu_idle_mib -1"):
        assert part in str(refused.value)


def test_a_command_needs_a_program() -> None:
    launcher = HostLauncher(LocalShell(), HostSettings("here"))
    for argv in ((), ("",), ("-x",)):
        with pytest.raises(ValueError, match="does not begin with a program"):
            launcher.run(argv, timeout_s=1)


def test_variables_are_set_for_what_follows_and_bad_names_are_refused() -> None:
    assert export_lines({"A": "it's"}) == "export A='it'\"'\"'s'\n"
    with pytest.raises(StartFailed, match="'1A'"):
        export_lines({"1A": "x"})
    with pytest.raises(StartFailed):
        export_lines({"A": "x\0y"})
