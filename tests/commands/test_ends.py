"""The table of ends: what a start is answered with, and what both hooks are told, which is true and told once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from launchers.shell import LocalShell
from sweeper.__main__ import main
from sweeper.errors import ExitCode
from sweeper.standing.beacon import Beacon
from tests.chaos.sweeps import LLAMA, SHORT
from tests.core.receiver import SECRET, Receiver, receiving
from tests.fakes import FakeClock
from tests.launchers.conftest import unused_port

pytestmark = [pytest.mark.host, pytest.mark.compose, pytest.mark.study]

STUDY = "chaos"
ENDED = "ended with exit code "
START = """
case "$*" in *--port*)
  echo >> launched
  if [ -s send ] && [ "$(wc -l < launched)" -ge "$(cut -d' ' -f1 send)" ]; then
    number=$(cut -d' ' -f2 send)
    : > send
    kill -"$number" {pid}
  fi
esac
exec {python} -S -E {llama} . "$@"
"""
"""Starts the stand-in, and sends this process a signal at the launch that the file `send` names."""


@dataclass
class Desk:
    """One study on this machine, started again and again; both hooks write down what they are told."""

    receiver: Receiver
    words: tuple[str, ...]
    seen: int = 0

    def start(self, *words: str) -> int:
        """Run it with all its settings."""
        return main(["run", "--plain", *self.words, *words])

    def news(self) -> list[str]:
        """What the webhook was told since this was asked last: event and first line. The command, too."""
        messages = self.receiver.received[self.seen :]
        self.seen = len(self.receiver.received)
        log = Path("told")
        by_command = log.read_text().splitlines() if log.exists() else []
        log.unlink(missing_ok=True)
        assert by_command == [message["event"] for message in messages]
        return [f"{message['event']}: {message['text'].splitlines()[0]}" for message in messages]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as server:
        yield server


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, receiver: Receiver) -> Desk:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOOK_URL", receiver.url)
    Path("hook").write_text('echo "$SPECSWEEP_EVENT" >> told\n')
    Path("start").write_text(START.format(pid=os.getpid(), python=sys.executable, llama=LLAMA))
    Path("model.gguf").write_bytes(b"GGUF")
    words = (
        *SHORT, f"engine.command=[sh,{tmp_path}/start]", "model.path=model.gguf", "budget.trials=2",
        f"host.state_dir={tmp_path}/state", "tracking=none", "budget.confirm_launches=0",
        f"host.port_low={(port := unused_port())}", f"host.port_high={port + 20}",
        "notify.command=[sh,hook]", "notify.webhook_env=HOOK_URL", "notify.events=[finished,interrupted,aborted]",
    )  # fmt: skip
    return Desk(receiver, words)


def send(number: signal.Signals, at_launch: int) -> None:
    """At this launch of the next start."""
    Path("launched").unlink(missing_ok=True)
    Path("send").write_text(f"{at_launch} {number.value}")


def test_the_ends_of_one_study_from_its_first_start_to_the_nights_after_its_last(desk: Desk) -> None:
    send(signal.SIGTERM, at_launch=1)
    assert desk.start() == ExitCode.TERMINATED
    assert desk.news() == ["interrupted: interrupted; the same command goes on"]

    send(signal.SIGINT, at_launch=1)
    assert main(["resume"]) == ExitCode.INTERRUPTED
    (told,) = desk.news()
    assert told.startswith("interrupted: So far, with up to 1 launches to go: ")

    send(signal.SIGINT, at_launch=1)  # in the last launch: nothing is left for another start
    assert main(["resume", STUDY]) == ExitCode.OK
    (finished,) = desk.news()
    assert finished.startswith("finished: ")

    assert main(["resume", STUDY]) == ExitCode.OK
    assert desk.start() == ExitCode.OK
    assert main(["resume"]) == ExitCode.OK
    assert desk.news() == []
    assert "nothing has changed since this verdict was told" in Path(f"sweeps/{STUDY}.log").read_text()

    assert main(["resume", STUDY, "budget.trials=3"]) == ExitCode.OK
    (more,) = desk.news()
    assert more.startswith("finished: ")
    ends = [
        line.split(" note: ")[1] for line in Path(f"sweeps/{STUDY}.log").read_text().splitlines() if ENDED in line
    ]
    assert [int(line.removeprefix(ENDED).split(":")[0]) for line in ends] == [143, 130, 0, 0, 0, 0]
    assert ends[-1] == f"{ENDED}0: {more.removeprefix('finished: ')}"


def test_a_budget_that_is_spent_is_told_once(desk: Desk) -> None:
    assert desk.start("budget.hours=0.000001") == ExitCode.OK
    (told,) = desk.news()
    assert told.startswith("finished: ")
    assert "Cut short by budget.hours" in told
    assert desk.start("budget.hours=0.000001") == ExitCode.OK
    assert desk.news() == []


def test_an_end_that_could_not_be_told_is_told_by_the_next_start(desk: Desk) -> None:
    words = ("budget.trials=1", "notify.tries=1", "notify.command=[]")
    desk.receiver.statuses = [500]
    assert desk.start(*words) == ExitCode.OK
    assert desk.start(*words) == ExitCode.OK
    assert [message["event"] for message in desk.receiver.received] == ["finished", "finished"]


@pytest.mark.parametrize(
    ("words", "code", "event"),
    [
        (("budget.until=2020-01-01T07:00",), ExitCode.USAGE, "aborted: 1 mistake in the configuration:"),
        (("limits.free_gib=1000000",), ExitCode.ABORTED, "aborted: "),
        (("budget.until=2099-01-01T07:00", "budget.hours=0.00001"), ExitCode.OK, "finished: "),
    ],
)
def test_what_nothing_can_be_launched_under_is_told(
    desk: Desk, words: tuple[str, ...], code: ExitCode, event: str
) -> None:
    assert desk.start(*words) == code
    (told,) = desk.news()
    assert told.startswith(event)
    assert not Path("launched").exists()


def test_a_second_start_of_a_study_that_is_at_work_disturbs_nobody(desk: Desk, tmp_path: Path) -> None:
    """The one at work tells its own end; a timer that fires once more has nothing to add."""
    holder = "import sys; from tests.commands.test_ends import work; work(*sys.argv[1:])"
    command = [sys.executable, "-c", holder, f"{tmp_path}/state/host.lock", f"{tmp_path}/sweeps"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]) as other:
        assert other.stdout is not None
        assert other.stdout.readline()
        try:
            assert desk.start() == ExitCode.HOST_BUSY
            assert desk.start("study.name=another") == ExitCode.HOST_BUSY
        finally:
            other.kill()
    (told,) = desk.news()
    assert told.startswith("aborted: local is held by another specsweep: pid ")
    log = Path(f"sweeps/{STUDY}.log").read_text()
    assert f"note: another start ended with exit code 4: study {STUDY} is at work already: local is held" in log


@pytest.mark.parametrize("command", ["run", "report"])
def test_a_command_that_is_ended_while_it_loads_says_so(tmp_path: Path, command: str) -> None:
    """Whom to tell is not known before the settings are read."""
    argv = [sys.executable, "-m", "sweeper", command]
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    pipe = subprocess.PIPE
    with subprocess.Popen(argv, cwd=tmp_path, env=env, stdout=pipe, stderr=pipe, text=True) as process:
        while not hears(process.pid, signal.SIGTERM):
            assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        out, told = process.communicate()
    assert (process.returncode, out) == (ExitCode.TERMINATED, "")
    assert told.startswith("specsweep: ended by SIGTERM")
    assert told.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def hears(pid: int, number: signal.Signals) -> bool:
    """Whether it has a handler for it."""
    status = Path(f"/proc/{pid}/status").read_text()
    caught = next(line for line in status.splitlines() if line.startswith("SigCgt:"))
    return bool(int(caught.split()[1], 16) >> (number - 1) & 1)


def work(lock: str, folder: str) -> None:
    """As a process that works on the study does, until it is killed."""
    Path(folder).mkdir()
    with LocalShell("local").hold(lock), Beacon(Path(folder), STUDY, "local", FakeClock(), "output_throughput"):
        print("held", flush=True)
        signal.pause()


def test_a_resume_tells_whom_the_run_told_why_it_cannot_go_on(desk: Desk) -> None:
    """Nobody may sit there; a hook that was kept is known without its secret."""
    Path("my/host").mkdir(parents=True)
    Path("my/host/mine.yaml").write_text("defaults: [local]\n")
    send(signal.SIGINT, at_launch=1)
    secret = "engine.env.HF_TOKEN=hush-hush"
    assert main(["run", "--plain", "--config-dir", "my", *desk.words, "host=mine", secret]) == ExitCode.INTERRUPTED
    desk.news()
    assert main(["resume"]) == ExitCode.USAGE
    assert desk.news() == ["aborted: 1 mistake in the configuration:"]
    Path("my/host/mine.yaml").unlink()
    assert main(["resume", secret]) == ExitCode.USAGE
    assert desk.news() == ["aborted: 1 mistake in the configuration:"]


def test_a_resume_goes_on_without_a_hook_whose_secret_nobody_kept_and_says_so_first(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    webhook = f"notify.webhook={desk.receiver.url}"
    send(signal.SIGINT, at_launch=1)
    assert desk.start("notify.webhook_env=", webhook, "notify.command=[]") == ExitCode.INTERRUPTED
    assert len(desk.receiver.received) == 1
    capsys.readouterr()

    send(signal.SIGINT, at_launch=1)
    assert main(["resume", "budget.trials=3"]) == ExitCode.INTERRUPTED
    out = capsys.readouterr().out
    told = "notify.webhook: no longer told: its URL is a secret, which is not kept."
    assert out.index(told) < out.index("trial 1: ")
    assert told in Path(f"sweeps/{STUDY}.log").read_text()
    assert len(desk.receiver.received) == 1

    assert main(["resume", "notify.webhook_env=HOOK_URL"]) == ExitCode.OK
    assert told not in capsys.readouterr().out
    assert desk.receiver.received[-1]["event"] == "finished"
    for path in Path().rglob("*"):
        assert not path.is_file() or SECRET.encode() not in path.read_bytes()
