"""Scripts over SSH: bounded, killable, unchanged, many at once, whatever the login shell."""

from __future__ import annotations

import _thread
import concurrent.futures
import threading
from pathlib import Path

import pytest

from launchers.errors import HostLost, LinkLost
from launchers.replies import call_script, parse_reply, quote
from launchers.shell import MAX_OUTPUT_BYTES
from launchers.ssh import MAX_SCRIPTS, SshShell
from tests.launchers.conftest import until, with_token
from tests.launchers.test_contract import HOSTILE_WORDS
from tests.ssh.conftest import account
from tests.ssh.sshd import Sshd

pytestmark = pytest.mark.host


def test_both_outputs_and_the_exit_code_come_back(shell: SshShell) -> None:
    result = shell.run("printf out; printf err >&2; exit 5", timeout_s=20)
    assert (result.exit_code, result.stdout, result.stderr) == (5, b"out", b"err")


def test_one_connection_serves_many_scripts(sshd: Sshd, shell: SshShell) -> None:
    before = sshd.log().count("Accepted publickey")
    for number in range(3):
        assert shell.run(f"exit {number}", timeout_s=20).exit_code == number
    assert sshd.log().count("Accepted publickey") == before + 1


def test_a_script_does_not_appear_in_process_lists_nor_see_its_token(shell: SshShell) -> None:
    result = shell.run("tr '\\0' '|' < /proc/$$/cmdline; echo; echo $# \"$@\"", timeout_s=20)
    command, arguments = result.stdout.decode().splitlines()
    assert command.startswith("/bin/sh|-s|specsweep-")
    assert arguments.strip() == "0"


def test_hostile_words_arrive_unchanged(shell: SshShell) -> None:
    words = " ".join(quote(word) for word in (*HOSTILE_WORDS, "\udcff", "end"))
    result = shell.run(f"printf '%s\\0' {words}", timeout_s=20)
    assert result.stdout.decode("utf-8", "surrogateescape").split("\0") == [*HOSTILE_WORDS, "\udcff", "end", ""]


def test_there_is_no_terminal(shell: SshShell) -> None:
    assert shell.run("[ ! -t 0 ] && [ ! -t 1 ] && [ ! -t 2 ] && exit 7", timeout_s=20).exit_code == 7


def test_a_long_script_and_long_outputs_do_not_block_each_other(shell: SshShell) -> None:
    noise = "head -c 10000000 /dev/zero; head -c 10000000 /dev/zero >&2\n"
    padding = f": '{'x' * 3_000_000}'\n"  # more than the window of a channel
    result = shell.run(noise + padding + "echo end; exit 9", timeout_s=60)
    assert result.exit_code == 9
    assert (len(result.stdout), len(result.stderr)) == (MAX_OUTPUT_BYTES, MAX_OUTPUT_BYTES)


def test_a_script_that_ends_early_need_not_be_read_to_its_end(shell: SshShell) -> None:
    assert shell.run("exit 3\n" + "# padding\n" * 400_000, timeout_s=20).exit_code == 3


@pytest.mark.parametrize("quiet", ["", "exec >&- 2>&-; "])
def test_a_script_beyond_its_time_is_killed_with_its_children(shell: SshShell, token: str, quiet: str) -> None:
    script = f"{quiet}sh -c ': {token}; sleep 100; :' & sh -c ': {token}; sleep 100; :'"
    with pytest.raises(HostLost, match=r"within 0\.4 s; it was killed"):
        shell.run(script, timeout_s=0.4)
    assert with_token(token) == []
    assert shell.run("exit 4", timeout_s=20).exit_code == 4, "the connection is none the worse"
    assert shell.num_breaks() == 0


def test_what_has_left_the_group_outlives_a_script_beyond_its_time(shell: SshShell, token: str) -> None:
    script = f"setsid sh -c ': {token}; sleep 100; :' >/dev/null 2>&1 & sleep 100"
    with pytest.raises(HostLost):
        shell.run(script, timeout_s=0.4)
    server = with_token(token)[0]
    shell.run(f"kill -KILL -{server}", timeout_s=20)


def test_what_runs_on_in_the_background_is_not_waited_for(shell: SshShell) -> None:
    result = shell.run("printf whole; sleep 100 & echo $!", timeout_s=20)
    shell.run(f"kill {int(result.stdout.removeprefix(b'whole'))}", timeout_s=20)


def test_an_interrupted_wait_ends_the_script(shell: SshShell, token: str) -> None:
    def interrupt() -> None:
        until(lambda: with_token(token) != [], "the script runs")
        _thread.interrupt_main()

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        shell.run(f"sh -c ': {token}; sleep 100; :'", timeout_s=60)
    assert with_token(token) == []


def test_a_shell_that_was_killed_is_no_broken_connection(shell: SshShell) -> None:
    with pytest.raises(HostLost, match="without an exit code") as failed:
        shell.run("kill -KILL $$", timeout_s=20)
    assert not isinstance(failed.value, LinkLost)
    assert shell.num_breaks() == 0


def test_twenty_scripts_at_once(shell: SshShell) -> None:
    with concurrent.futures.ThreadPoolExecutor(20) as pool:
        results = list(pool.map(lambda number: shell.run(f"sleep 0.1; echo {number}", timeout_s=60), range(20)))
    assert [int(result.stdout) for result in results] == list(range(20))


def test_a_host_that_allows_three_sessions_is_enough(tmp_path: Path) -> None:
    with Sshd(tmp_path / "sshd", "MaxSessions 3\n") as sshd:
        shell = SshShell(sshd.target())
        with shell.hold(str(tmp_path / "lock")), concurrent.futures.ThreadPoolExecutor(20) as pool:
            results = list(pool.map(lambda number: shell.run(f"exit {number}", timeout_s=60).exit_code, range(20)))
        assert results == list(range(20))
        assert shell.num_breaks() == 0


def test_scripts_wait_for_each_other_no_longer_than_their_own_time(shell: SshShell, token: str) -> None:
    with concurrent.futures.ThreadPoolExecutor(MAX_SCRIPTS) as pool:
        for _ in range(MAX_SCRIPTS):
            pool.submit(shell.run, f"sh -c ': {token}; sleep 1; :'", 60)
        until(lambda: len(with_token(token)) == MAX_SCRIPTS, "all of them run")
        with pytest.raises(HostLost, match=r"other scripts did not end within 0\.2 s"):
            shell.run(":", timeout_s=0.2)


@pytest.mark.parametrize(
    "login_shell",
    ["fish", "csh", *(pytest.param(name, marks=pytest.mark.slow) for name in ("tcsh", "bash", "busybox"))],
)
def test_any_login_shell_will_do(tmp_path: Path, token: str, login_shell: str) -> None:
    name = "sh" if login_shell == "busybox" else login_shell
    chatter = "echo hello from the start-up file; echo and on stderr 1>&2\n" if login_shell != "busybox" else ""
    with account(name) as (user, home), Sshd(tmp_path / "sshd", env={"HOME": str(home)}) as sshd:
        sshd.accept_at(home)
        for path in (".bashrc", ".cshrc", ".tcshrc", ".config/fish/config.fish"):
            (home / path).parent.mkdir(parents=True, exist_ok=True)
            (home / path).write_text(chatter)
        home.joinpath(".config").chmod(0o755)
        shell = SshShell(sshd.target(user=user))
        words = (*HOSTILE_WORDS, "for x in y; do :; done; VAR=1")
        script = call_script("n0", f"{home}/state", "run", ("printf", "%s|", *words))
        result = shell.run(script, timeout_s=60)
        assert (b"hello from" in result.stdout) == bool(chatter)
        assert parse_reply(result.stdout, "n0").body.decode() == "".join(f"{word}|" for word in words)
        assert shell.run("exit 5", timeout_s=60).exit_code == 5
        with pytest.raises(HostLost, match="it was killed"):
            shell.run(f"sh -c ': {token}; sleep 100; :'", timeout_s=0.5)
        assert with_token(token) == []
        with shell.hold("~/of-the-home/host.lock"):
            assert (home / "of-the-home" / "host.lock").read_text().startswith("pid ")
        shell.close()
