"""What every launcher owes its callers, on real processes."""

from __future__ import annotations

import json
import stat as modes
import sys
from pathlib import Path

import pytest

from launchers.base import CommandResult
from launchers.errors import HostBusy, HostDirty, HostLost, StartFailed
from launchers.host import MAX_LOG_BYTES, HostLauncher, HostSettings
from launchers.shell import LocalShell
from tests.launchers.conftest import Bench, is_running, until
from tests.launchers.shells import quick_in

pytestmark = pytest.mark.host
HOSTILE_WORDS = (
    "",
    "-n",
    "--",
    "it's",
    'say "hi"',
    "$HOME `id`",
    "a\nb\n",
    "\\",
    "ā 漢 \x81",
    "*",
    "~",
    "a=b",
    "\t",
)
TELL_ALL = "import json, os, sys; print(json.dumps([sys.argv[1:], dict(os.environ)]))"


@quick_in("busybox", "ssh")
def test_a_server_is_alive_until_it_is_stopped(bench: Bench) -> None:
    handle = bench.start_stubborn("serving")
    assert bench.launcher.is_alive(handle)
    assert bench.launcher.exit_code(handle) is None
    report = bench.launcher.stop(handle, grace_s=10)
    assert not bench.launcher.is_alive(handle)
    assert (report.signals, report.num_processes, report.port_free) == (("TERM",), 2, True)
    assert report.exit_code == bench.launcher.exit_code(handle) == 143


def test_stopping_what_is_gone_is_fine(bench: Bench) -> None:
    handle = bench.start_stubborn("plain")
    bench.launcher.stop(handle, grace_s=10)
    report = bench.launcher.stop(handle, grace_s=10)
    assert (report.signals, report.num_processes, report.exit_code) == ((), 0, 143)


@pytest.mark.parametrize(("script", "code"), [("exit 0", 0), ("exit 7", 7), ("kill -SEGV $$", 139)])
def test_the_exit_code_of_a_server_that_ends_by_itself_is_kept(bench: Bench, script: str, code: int) -> None:
    assert bench.launcher.exit_code(bench.ended("sh", "-c", script)) == code


@quick_in("busybox")
@pytest.mark.parametrize("name", ["no-such-program", "/no/such/program", "/etc/passwd", "/"])
def test_a_program_that_cannot_be_found_is_refused(bench: Bench, name: str) -> None:
    with pytest.raises(StartFailed, match="no such program"):
        bench.launcher.start(bench.spec(name, "--port", "1"))


@quick_in("busybox")
def test_a_program_is_looked_for_on_the_path_of_its_environment(bench: Bench) -> None:
    program = bench.folder / "my-server"
    program.write_text("#!/bin/sh\necho found\n")
    program.chmod(0o700)
    handle = bench.ended("my-server", env={"PATH": str(bench.folder)})
    assert (bench.launcher.exit_code(handle), bench.launcher.logs(handle)) == (0, b"found\n")


@quick_in("busybox", "ssh")
def test_arguments_and_environment_arrive_unchanged(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TO_BE_REMOVED", "1")
    monkeypatch.setenv("OF_THE_HOST", "kept")
    env = {f"VALUE_{number}": word for number, word in enumerate(HOSTILE_WORDS)}
    handle = bench.ended(
        sys.executable,
        "-X",
        "utf8",
        "-c",
        TELL_ALL,
        *HOSTILE_WORDS,
        env=env,
        unset_env=("TO_BE_REMOVED", "NEVER_SET"),
    )
    argv, seen = json.loads(bench.launcher.logs(handle))
    assert tuple(argv) == HOSTILE_WORDS
    assert {name: seen[name] for name in env} == env
    assert "TO_BE_REMOVED" not in seen
    assert seen["OF_THE_HOST"] == "kept"


def test_neither_secrets_nor_open_permissions_stay_on_the_host(bench: Bench) -> None:
    handle = bench.ended("sh", "-c", ":", env={"HF_TOKEN": "a-secret-token"})
    bench.launcher.stop(handle, grace_s=0)
    paths = [bench.state_dir, *bench.state_dir.rglob("*")]
    assert [path for path in paths if modes.S_IMODE(path.stat().st_mode) & 0o077] == []
    assert [path for path in paths if path.is_file() and b"a-secret-token" in path.read_bytes()] == []


@quick_in("busybox", "ssh")
def test_a_server_has_the_umask_of_the_host_and_ignores_hangups(bench: Bench) -> None:
    handle = bench.ended("sh", "-c", "umask; kill -HUP $$; echo still here")
    mask = int(Path("/proc/self/status").read_text().split("Umask:")[1].split()[0], 8)
    first, second = bench.launcher.logs(handle).decode().split("\n", 1)
    assert (int(first, 8), second) == (mask, "still here\n")


def test_a_hostile_state_folder_is_only_a_name(bench: Bench) -> None:
    with bench.running("plain") as handle:
        assert handle.log_path == str(bench.state_dir / "servers" / handle.server_id / "log")
    assert list(bench.folder.rglob("hit")) == []
    assert sorted(path.name for path in bench.folder.iterdir()) == sorted([bench.state_dir.name, "pids"])


def test_a_state_folder_in_the_home_is_found(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(bench.folder))
    settings = HostSettings("here", "~/.state", bench.port, bench.port)
    launcher = HostLauncher(bench.launcher.shell, settings)
    with launcher.hold():
        handle = launcher.start(bench.spec("sh", "-c", "exit 4"))
    until(lambda: launcher.exit_code(handle) == 4, "the server ended")
    assert {path.name for path in (bench.folder / ".state").iterdir()} == {"host.lock", "servers"}


@quick_in("busybox", "ssh")
def test_on_a_host_whose_lock_was_removed_and_is_another_s_nothing_is_started(bench: Bench) -> None:
    lock = bench.state_dir / "host.lock"
    with bench.launcher.hold():
        bench.ended("sh", "-c", "exit 0")
        lock.unlink()
        bench.ended("sh", "-c", "exit 0")
        lock.write_text("pid 1 on elsewhere, since yesterday: specsweep run\n")
        with pytest.raises(HostBusy, match=r"the lock file was removed .*: pid 1 on elsewhere, "):
            bench.start_stubborn("plain")


@quick_in("busybox", "ssh")
def test_logs_are_read_in_bounded_pieces(bench: Bench) -> None:
    handle = bench.ended(sys.executable, "-c", "import sys; sys.stdout.buffer.write(bytes(range(256)) * 40_000)")
    whole = bytes(range(256)) * 40_000
    assert bench.launcher.logs(handle) == whole[:1_000_000]
    assert bench.launcher.logs(handle, 10_000_000, 100_000) == whole[10_000_000:10_100_000]
    assert bench.launcher.logs(handle, 0, 100_000_000) == whole[:MAX_LOG_BYTES]
    assert bench.launcher.logs(handle, len(whole)) == bench.launcher.logs(handle, len(whole) + 5) == b""
    assert bench.launcher.status(handle).log_size_bytes == len(whole)


def test_a_missing_log_is_not_an_empty_log(bench: Bench) -> None:
    handle = bench.ended("true")
    Path(handle.log_path).unlink()
    with pytest.raises(HostLost, match="cannot be read"):
        bench.launcher.logs(handle)


def test_the_address_of_a_server(bench: Bench) -> None:
    handle = bench.ended("true")
    assert bench.launcher.url(handle) == f"http://127.0.0.1:{bench.port}"
    six = HostLauncher(LocalShell(), HostSettings("here", "/s", address="::1"))
    assert six.url(handle) == f"http://[::1]:{bench.port}"


@quick_in("busybox", "ssh")
def test_a_short_command_gives_its_output_and_code(bench: Bench) -> None:
    script = 'printf "%s|" "$@"; echo oops >&2; exit 3'
    result = bench.launcher.run(("sh", "-c", script, "x", *HOSTILE_WORDS), timeout_s=20)
    assert result == CommandResult(3, "".join(f"{word}|" for word in HOSTILE_WORDS).encode(), b"oops\n")
    assert bench.launcher.run(("no-such-program",), timeout_s=20).exit_code == 127
    assert bench.launcher.run(("cat",), timeout_s=20).stdout == b"", "stdin is empty, not the script"


@quick_in("ssh")
def test_a_short_command_that_is_not_short_is_ended(bench: Bench) -> None:
    with pytest.raises(HostLost, match=r"0\.3 s"):
        bench.launcher.run(("sh", "-c", f": {bench.token}; sleep 100; :"), timeout_s=0.3)
    until(lambda: bench.remains() == [], "what the command had started is gone")


def test_the_output_of_a_command_is_whole_or_nothing(bench: Bench) -> None:
    assert len(bench.launcher.run(("head", "-c", "8000000", "/dev/zero"), timeout_s=60).stdout) == 8_000_000
    with pytest.raises(HostLost, match="not a whole reply"):
        bench.launcher.run(("head", "-c", "9000000", "/dev/zero"), timeout_s=60)


def test_a_nonce_starts_one_server_only(bench: Bench) -> None:
    spec = bench.stubborn("plain")
    handle = bench.launcher.start(spec)
    with pytest.raises(StartFailed, match="used before"):
        bench.launcher.start(spec)
    assert bench.launcher.is_alive(handle), "the refusal left the first one alone"
    bench.launcher.stop(handle, grace_s=5)
    with pytest.raises(StartFailed, match="used before"):
        bench.launcher.start(spec)


def test_a_state_folder_that_cannot_be_written_is_the_host_s_fault_and_not_the_server_s(bench: Bench) -> None:
    bench.state_dir.write_text("a file, not a folder")
    with pytest.raises(HostDirty, match=r"(?s)was not started on here: .* cannot be written: "):
        bench.launcher.start(bench.spec("true"))


class AnswerLost:
    """A shell whose first script runs, but whose answer does not arrive."""

    name = "flaky"

    def __init__(self, program: str) -> None:
        self.inner = LocalShell("here", program)
        self.hold = self.inner.hold
        self.address = self.inner.address
        self.num_breaks = self.inner.num_breaks
        self.num_calls = 0

    def run(self, script: str, timeout_s: float) -> CommandResult:
        self.num_calls += 1
        result = self.inner.run(script, timeout_s)
        if self.num_calls == 1:
            raise HostLost("the connection dropped")
        return result


def test_a_start_whose_answer_is_lost_leaves_nothing(bench: Bench, program: str) -> None:
    shell = AnswerLost(program)
    launcher = HostLauncher(shell, bench.launcher.settings)
    with pytest.raises(HostLost, match="the connection dropped"):
        launcher.start(bench.stubborn("deaf"))
    assert shell.num_calls == 2
    assert bench.remains() == []


def test_a_server_of_another_host_is_not_touched(bench: Bench) -> None:
    with bench.running("plain") as handle:
        other = HostLauncher(bench.launcher.shell, HostSettings("there", str(bench.state_dir)))
        with pytest.raises(ValueError, match="runs on 'here', not on 'there'"):
            other.stop(handle, grace_s=0)
        assert is_running(handle.pid)


def test_a_look_says_when_it_cannot_tell(bench: Bench) -> None:
    handle = bench.ended("true")
    blind = HostLauncher(LocalShell("here", "/bin/true"), bench.launcher.settings)
    with pytest.raises(HostLost, match="not a whole reply"):
        blind.is_alive(handle)
