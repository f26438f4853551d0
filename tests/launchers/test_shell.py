"""The shell of this machine: bounded, killable, and silent in process lists."""

from __future__ import annotations

import _thread
import subprocess
import threading
from pathlib import Path

import pytest

from launchers.errors import HostBusy, HostLost
from launchers.shell import MAX_OUTPUT_BYTES, LocalShell
from tests.launchers.conftest import until, with_token

pytestmark = pytest.mark.host
SHELL = LocalShell("here")


def test_both_outputs_and_the_exit_code_come_back() -> None:
    result = SHELL.run("printf out; printf err >&2; exit 5", timeout_s=20)
    assert (result.exit_code, result.stdout, result.stderr) == (5, b"out", b"err")


def test_a_script_ended_by_a_signal_has_the_code_of_a_shell() -> None:
    assert SHELL.run("kill -KILL $$", timeout_s=20).exit_code == 137


def test_a_script_does_not_appear_in_process_lists() -> None:
    assert SHELL.run("cat /proc/$$/cmdline", timeout_s=20).stdout == b"/bin/sh\0-s\0"


def test_a_long_script_and_long_outputs_do_not_block_each_other() -> None:
    noise = "head -c 10000000 /dev/zero; head -c 10000000 /dev/zero >&2\n"
    padding = f": '{'x' * 300_000}'\n"
    result = SHELL.run(noise + padding + noise + "exit 9", timeout_s=60)
    assert result.exit_code == 9
    assert (len(result.stdout), len(result.stderr)) == (MAX_OUTPUT_BYTES, MAX_OUTPUT_BYTES)


def test_a_script_that_ends_early_need_not_be_read_to_its_end() -> None:
    assert SHELL.run("exit 3\n" + "# padding\n" * 100_000, timeout_s=20).exit_code == 3


def test_a_script_beyond_its_time_is_killed_with_its_children(tmp_path: Path) -> None:
    token = tmp_path.name + "-beyond-its-time"
    script = f"sh -c ': {token}; sleep 100; :' & sh -c ': {token}; sleep 100; :'"
    with pytest.raises(HostLost, match=r"within 0\.2 s"):
        SHELL.run(script, timeout_s=0.2)
    until(lambda: with_token(token) == [], "the children are gone")


def test_a_script_that_closes_its_outputs_is_still_waited_for() -> None:
    assert SHELL.run("exec >&- 2>&-; sleep 0.2; exit 6", timeout_s=20).exit_code == 6
    with pytest.raises(HostLost):
        SHELL.run("exec >&- 2>&-; sleep 100", timeout_s=0.2)


def test_what_runs_on_in_the_background_is_not_waited_for() -> None:
    result = SHELL.run("sleep 100 & echo $!", timeout_s=20)
    SHELL.run(f"kill {int(result.stdout)}", timeout_s=20)


class LastWords(LocalShell):
    """A shell whose script answers and ends just when it is asked whether it has ended, and not before."""

    def __init__(self, folder: Path) -> None:
        super().__init__("here")
        self.go = folder / "go"

    def _spawn(self) -> subprocess.Popen[bytes]:
        go = self.go

        class Process(subprocess.Popen[bytes]):
            def poll(self) -> int | None:
                go.touch()
                return self.wait()

        waits = 'until [ -e "$1" ]; do sleep 0.01; done; echo the whole answer'
        pipe = subprocess.PIPE
        argv = ["sh", "-c", waits, "sh", str(go)]
        return Process(argv, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0, start_new_session=True)


def test_an_answer_given_between_a_look_and_the_question_for_the_end_is_not_lost(tmp_path: Path) -> None:
    assert LastWords(tmp_path).run(":", timeout_s=20).stdout == b"the whole answer\n"


def test_an_interrupted_wait_ends_the_script(tmp_path: Path) -> None:
    token = tmp_path.name + "-interrupted"

    def interrupt() -> None:
        until(lambda: with_token(token) != [], "the script runs")
        _thread.interrupt_main()

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        SHELL.run(f"sh -c ': {token}; sleep 100; :'", timeout_s=60)
    until(lambda: with_token(token) == [], "the script is gone")


def test_a_shell_that_is_missing_means_a_lost_host() -> None:
    with pytest.raises(HostLost, match="cannot be run"):
        LocalShell("here", "/no/such/shell").run(":", timeout_s=1)


def test_a_lock_that_cannot_be_opened_is_not_a_busy_host(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(HostLost, match="cannot be opened"), SHELL.hold(str(tmp_path / "file" / "host.lock")):
        pytest.fail("there is no such folder")


def test_a_lock_is_no_way_to_another_file(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("precious")
    (tmp_path / "host.lock").symlink_to(precious)
    with pytest.raises(HostLost, match="cannot be opened"), SHELL.hold(str(tmp_path / "host.lock")):
        pytest.fail("followed a link")
    assert precious.read_text() == "precious"


def test_an_error_inside_a_held_host_frees_it(tmp_path: Path) -> None:
    path = str(tmp_path / "new" / "host.lock")
    with pytest.raises(BlockingIOError), SHELL.hold(path):
        raise BlockingIOError("of the caller")
    with SHELL.hold(path), pytest.raises(HostBusy), SHELL.hold(path):
        pytest.fail("held twice")
