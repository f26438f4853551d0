"""Notifications: what is sent, that they are retried, and that they neither block, fail nor betray anything."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy.exc import SQLAlchemyError

from launchers.errors import HostBusy, StopFailed
from sweeper.errors import AlreadyAtWork, ConfigError, ExitCode, SweepAborted, SweepInterrupted
from sweeper.known_secrets import KNOWN
from sweeper.nights.notify import Notifier, webhook_url
from sweeper.spec import NotifySpec
from tests.core.receiver import SECRET, Receiver, receiving
from tests.fakes import FakeClock

pytestmark = pytest.mark.host

WRITE_DOWN = """
import os, sys
with open(sys.argv[1], "a") as file:
    words = os.environ["SPECSWEEP_EVENT"], os.environ["SPECSWEEP_STUDY"], sys.stdin.read()
    file.write("|".join(words) + "\\n")
sys.exit(int(sys.argv[2]))
"""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as server:
        yield server


def notifier(said: list[str], **settings: object) -> Notifier:
    return Notifier(NotifySpec.model_validate(settings), FakeClock(), said.append)


def test_a_webhook_gets_the_event_as_json(receiver: Receiver) -> None:
    said: list[str] = []
    with notifier(said, webhook=receiver.url) as told:
        told.tell("finished", "night", "gpu1", "Winner: trial 7\x1b[31m\nby far")
    (message,) = receiver.received
    assert message == {
        "event": "finished",
        "study": "night",
        "host": "gpu1",
        "text": "Winner: trial 7\nby far",
        "at": "2026-01-01T00:00:00+00:00",
    }
    assert said == []


def test_a_webhook_is_tried_again_and_waits_longer_each_time(receiver: Receiver) -> None:
    said: list[str] = []
    receiver.statuses = [500, 503, 200]
    clock = FakeClock()
    with Notifier(NotifySpec(webhook=receiver.url), clock, said.append) as told:
        told.tell("finished", "night", "gpu1", "done")
    assert len(receiver.received) == 3
    assert clock.elapsed_s == 2 + 8
    assert said == []


def test_a_webhook_that_fails_is_said_without_its_url(receiver: Receiver) -> None:
    said: list[str] = []
    receiver.statuses = [404] * 9
    with notifier(said, webhook=receiver.url, tries=2) as told:
        told.tell("aborted", "night", "gpu1", "stopped")
    assert said == ["notify.webhook: aborted could not be told: it answered with status 404"]
    receiver.shutdown()
    receiver.server_close()
    with notifier(said, webhook=receiver.url, tries=1) as told:
        told.tell("aborted", "night", "gpu1", "stopped")
    assert said[1:] == ["notify.webhook: aborted could not be told: it cannot be reached"]
    assert SECRET not in " ".join(said)


def test_a_webhook_that_never_answers_holds_nobody_up(receiver: Receiver) -> None:
    said: list[str] = []
    receiver.hold.clear()
    slow = Notifier(NotifySpec(webhook=receiver.url, timeout_s=600), FakeClock(), said.append, patience_s=0.2)
    with slow as told:
        told.tell("finished", "night", "gpu1", "done")
    assert receiver.received == [], "the context was left while the answer was still awaited"
    assert said == ["notify: specsweep ends while a message is still being sent"]


def test_a_webhook_that_takes_too_long_is_told_as_that(receiver: Receiver) -> None:
    said: list[str] = []
    receiver.hold.clear()
    with notifier(said, webhook=receiver.url, timeout_s=0.3, tries=1) as told:
        told.tell("finished", "night", "gpu1", "done")
    assert said == ["notify.webhook: finished could not be told: no answer within 0.3 s"]


def test_a_command_gets_the_message_on_its_stdin_and_no_shell_sees_it(tmp_path: Path) -> None:
    said: list[str] = []
    file = tmp_path / "told $(touch hit); `x`"
    with notifier(said, command=(sys.executable, "-c", WRITE_DOWN, str(file), "0")) as told:
        told.tell("first_winner", "night", "gpu1", "trial 3 $(touch hit)")
        told.tell("finished", "night", "gpu1", "done")
    assert file.read_text() == "first_winner|night|trial 3 $(touch hit)\n\nfinished|night|done\n\n"
    assert [path.name for path in tmp_path.iterdir()] == [file.name]
    assert said == []


def test_a_command_that_fails_is_tried_again_and_said(tmp_path: Path) -> None:
    said: list[str] = []
    file = tmp_path / "told"
    with notifier(said, command=(sys.executable, "-c", WRITE_DOWN, str(file), "3"), tries=2) as told:
        told.tell("finished", "night", "gpu1", "done")
    assert file.read_text().count("finished|") == 2
    assert said == [f"notify.command: finished could not be told: {sys.executable} ended with exit code 3"]


@pytest.mark.parametrize(
    ("command", "why"),
    [(("/no/such/program",), "cannot be run: FileNotFoundError"), (("sleep", "600"), "did not end within 0.3 s")],
)
def test_a_command_that_cannot_run_or_hangs_is_said(command: tuple[str, ...], why: str) -> None:
    said: list[str] = []
    with notifier(said, command=command, tries=1, timeout_s=0.3) as told:
        told.tell("finished", "night", "gpu1", "done")
    assert [why in line for line in said] == [True]


def test_a_command_that_hangs_does_not_silence_the_webhook_and_is_not_left_behind(
    receiver: Receiver, tmp_path: Path
) -> None:
    said: list[str] = []
    begun = tmp_path / "begun"
    command = ("sh", "-c", f"echo $$ > {begun}; sleep 600")
    spec = NotifySpec(webhook=receiver.url, command=command, timeout_s=600)
    with Notifier(spec, FakeClock(), said.append, patience_s=3.0) as told:
        told.tell("finished", "night", "gpu1", "done")
        while not begun.exists() or not begun.read_text():
            pass
    assert [message["text"] for message in receiver.received] == ["done"]
    assert said == ["notify: specsweep ends while a message is still being sent"]
    assert not Path(f"/proc/{begun.read_text().strip()}").exists()


def test_only_events_that_were_asked_for_are_told(receiver: Receiver) -> None:
    with notifier([], webhook=receiver.url, events=("aborted",)) as told:
        told.tell("finished", "night", "gpu1", "done")
        with pytest.raises(SweepAborted), told.ending("night", "gpu1"):
            raise SweepAborted("a disk is full")
        with pytest.raises(SweepInterrupted), told.ending("night", "gpu1"):
            raise SweepInterrupted(ExitCode.INTERRUPTED)
    assert [(message["event"], message["text"]) for message in receiver.received] == [
        ("aborted", "a disk is full")
    ]


def test_the_url_may_stand_in_the_environment_alone() -> None:
    spec = NotifySpec(webhook_env="MY_HOOK")
    assert webhook_url(spec, {"MY_HOOK": f"https://x.org/{SECRET}"}) == f"https://x.org/{SECRET}"
    for environ, says in (({}, "MY_HOOK is not set"), ({"MY_HOOK": f"ftp://x/{SECRET}"}, "holds no URL")):
        with pytest.raises(ConfigError, match=says) as refused:
            webhook_url(spec, environ)
        assert SECRET not in str(refused.value)


def while_ending(error: BaseException) -> BaseException:
    """It came while the sweep was ending, as asked."""
    error.__context__ = SweepInterrupted(ExitCode.TERMINATED)
    return error


@pytest.mark.parametrize(
    ("error", "event", "text"),
    [
        (KeyError("speed"), "aborted", "a bug in specsweep: KeyError: 'speed'"),
        (HostBusy("gpu1 is held by pid 7"), "aborted", "gpu1 is held by pid 7"),
        (StopFailed("still alive", ("pid 8 python",)), "aborted", "stopped: still alive\npid 8 python"),
        (KeyboardInterrupt(), "interrupted", "interrupted; the same command goes on"),
        (while_ending(SQLAlchemyError("no answer")), "interrupted", "interrupted, and the study's database"),
    ],
)
def test_every_end_that_is_no_good_one_is_told(
    receiver: Receiver, error: BaseException, event: str, text: str
) -> None:
    with notifier([], webhook=receiver.url) as told, pytest.raises(type(error)), told.ending("night", "gpu1"):
        raise error
    ((got, words),) = [(message["event"], message["text"]) for message in receiver.received]
    assert (got, words[: len(text)]) == (event, text)


def test_no_second_end_is_told_whatever_comes_after_the_first(receiver: Receiver) -> None:
    with notifier([], webhook=receiver.url) as told:
        told.tell("first_winner", "night", "gpu1", "trial 3")
        with pytest.raises(SweepInterrupted), told.ending("night", "gpu1"):
            told.tell("finished", "night", "gpu1", "Winner: trial 3")
            raise SweepInterrupted(ExitCode.TERMINATED)
    assert [message["event"] for message in receiver.received] == ["first_winner", "finished"]


def test_a_sweep_that_is_at_work_already_tells_its_own_end(receiver: Receiver) -> None:
    with notifier([], webhook=receiver.url) as told, pytest.raises(AlreadyAtWork), told.ending("night", "gpu1"):
        raise AlreadyAtWork("study night is at work already")
    assert receiver.received == []


@pytest.mark.parametrize(
    ("statuses", "settings", "is_told"),
    [
        ([], {}, True),
        ([500, 204], {"tries": 2}, True),
        ([500, 500], {"tries": 2}, False),
        ([], {"command": ("false",), "tries": 1}, False),
        ([], {"events": ("aborted",)}, False),
        ([], {"webhook": ""}, False),
    ],
)
def test_it_is_known_afterwards_whether_every_way_has_told_it(
    receiver: Receiver, statuses: list[int], settings: dict[str, object], is_told: bool
) -> None:
    receiver.statuses = statuses
    seen: list[str] = []
    with notifier([], **{"webhook": receiver.url, **settings}) as told:
        told.tell("finished", "night", "gpu1", "done", lambda: seen.append("told"))
        assert seen == []
    assert seen == ["told"] * is_told


def test_a_secret_that_is_known_leaves_in_no_message(receiver: Receiver) -> None:
    KNOWN.learn(["hush-hush-hush"])
    with notifier([], webhook=receiver.url) as told:
        told.tell("aborted", "night", "gpu1", "the login hush-hush-hush was refused")
    assert receiver.received[0]["text"] == "the login *** was refused"
