"""A server for one launch comes up: ready and ours, or a failure with its kind and its evidence."""

from __future__ import annotations

import pytest

from launchers.errors import HostDirty, HostLost, StartFailed
from sweeper.errors import FailureKind, TrialError
from sweeper.serving.launch_trace import LaunchTrace
from sweeper.serving.server import new_nonce, pick_port
from tests.server import fake_llama as fake
from tests.server.fake_launcher import STOPPED, FakeLauncher
from tests.server.fake_llama import FakeLlama
from tests.server.serving import ABORT, failure, serve

pytestmark = pytest.mark.host


# The good case.


def test_server_is_started_checked_used_and_stopped(launcher: FakeLauncher, trace: LaunchTrace) -> None:
    assert serve(launcher, trace) == ["checking the host", "ready", "body", "stopping"]
    assert trace.handle is not None
    assert trace.handle.nonce == fake.NONCE
    assert trace.stop == STOPPED
    assert trace.effective == {"parallel": 1}
    assert trace.log.content() == launcher.log
    assert [phase.name for phase in trace.phases] == ["check", "launch", "start: ready", "start", "stop"]
    assert launcher.calls.count("stop") == 1


def test_start_waits_until_the_server_is_healthy(
    launcher: FakeLauncher, trace: LaunchTrace, llama: FakeLlama
) -> None:
    llama.answers["/health"] = fake.in_turn(fake.drop, fake.status(503), fake.status(503), fake.status(200))
    serve(launcher, trace)
    spent = {phase.name: phase.duration_s for phase in trace.phases}
    assert spent["start"] == pytest.approx(0.6)  # three waits of the fake clock


def test_nonces_are_fresh_words() -> None:
    words = {new_nonce() for _ in range(100)}
    assert len(words) == 100
    assert all(word.isalnum() for word in words)


# Failures of the start.


def test_server_that_dies_while_starting_is_diagnosed(launcher: FakeLauncher, trace: LaunchTrace) -> None:
    launcher.lives, launcher.code = 1, 1
    launcher.log = b"loading model\nload_model: failed to load draft model, '/x'\n"
    launcher.address = "http://127.0.0.1:9"  # nothing answers there
    error = failure(launcher, trace)
    assert error.kind is FailureKind.UNSUPPORTED
    assert "during its start, exit code 1" in str(error)
    assert any("failed to load draft model" in line for line in error.evidence)
    assert trace.log.content() == launcher.log
    assert trace.stop == STOPPED


def test_death_that_the_log_does_not_explain_is_a_crash_with_the_last_lines(
    launcher: FakeLauncher, trace: LaunchTrace
) -> None:
    launcher.lives, launcher.code, launcher.log = 0, 137, b"one\n\ntwo\n"
    error = failure(launcher, trace)
    assert error.kind is FailureKind.SERVER_CRASH
    assert "exit code 137" in str(error)
    assert error.evidence == ("one", "two")


def test_server_that_is_never_healthy_is_a_start_time_out(
    launcher: FakeLauncher, trace: LaunchTrace, llama: FakeLlama
) -> None:
    llama.answers["/health"] = fake.status(503)
    launcher.log = b"srv load_model: loading model 'x'\n"
    error = failure(launcher, trace)
    assert error.kind is FailureKind.START_TIMEOUT
    assert "within 30 s" in str(error)
    assert "loading model" in str(error)
    assert error.evidence
    assert trace.stop == STOPPED


@pytest.mark.parametrize(
    ("raised", "kind"),
    [
        (HostDirty("port taken", ("pid 7 nginx",)), FailureKind.HOST_DIRTY),
        (HostLost("no answer"), FailureKind.HOST_LOST),
        (StartFailed("no such program"), FailureKind.SERVER_CRASH),
    ],
)
def test_what_the_launcher_raises_has_its_kind(
    launcher: FakeLauncher, trace: LaunchTrace, raised: Exception, kind: FailureKind
) -> None:
    launcher.start_error = raised
    error = failure(launcher, trace)
    assert error.kind is kind
    assert str(raised) in str(error)
    assert "stop" not in launcher.calls  # nothing was started
    if isinstance(raised, HostDirty):
        assert error.evidence == ("pid 7 nginx",)


def test_port_that_cannot_be_had_is_a_failure_of_the_host(launcher: FakeLauncher) -> None:
    launcher.port = HostDirty("every port is taken", ("pid 7",))
    with pytest.raises(TrialError) as caught:
        pick_port(launcher)
    assert caught.value.kind is FailureKind.HOST_DIRTY


def test_host_that_is_lost_while_the_server_starts_is_not_a_death(
    launcher: FakeLauncher, trace: LaunchTrace
) -> None:
    launcher.log = HostLost("no answer")
    assert failure(launcher, trace).kind is FailureKind.HOST_LOST
    assert trace.stop == STOPPED


def test_speculation_that_the_server_gave_up_silently_is_unsupported(
    launcher: FakeLauncher, trace: LaunchTrace
) -> None:
    launcher.log = b"E load_model: failed to initialize speculative decoding context: x\nlistening on http://\n"
    error = failure(launcher, trace)
    assert error.kind is FailureKind.UNSUPPORTED
    assert "failed to initialize" in error.evidence[0]


# Another server.


@pytest.mark.parametrize(
    ("props", "said"),
    [
        ({"model_alias": "other", "model_path": fake.MODEL}, "its nonce is 'other'"),
        ({"model_alias": fake.NONCE, "model_path": "/other"}, "its model is '/other'"),
        ({}, "does not name"),
        ([], "not a JSON object"),
    ],
)
def test_server_with_another_identity_is_not_measured(
    launcher: FakeLauncher, trace: LaunchTrace, llama: FakeLlama, props: object, said: str
) -> None:
    llama.answers["/props"] = fake.page(props)
    error = failure(launcher, trace)
    assert error.kind is FailureKind.WRONG_SERVER
    assert said in str(error)
    assert trace.stop == STOPPED


@pytest.mark.parametrize("answer", [fake.status(404), fake.raw(b"[" * 100_000), fake.raw(b"\xff\x00")])
def test_page_that_makes_no_sense_identifies_nobody(
    launcher: FakeLauncher, trace: LaunchTrace, llama: FakeLlama, answer: fake.Answer
) -> None:
    llama.answers["/props"] = answer
    assert failure(launcher, trace).kind is FailureKind.WRONG_SERVER


def test_port_held_by_another_process_is_noticed(launcher: FakeLauncher, trace: LaunchTrace) -> None:
    launcher.owns = False
    assert failure(launcher, trace).kind is FailureKind.WRONG_SERVER


def test_server_that_dies_before_it_names_itself_has_crashed(
    launcher: FakeLauncher, trace: LaunchTrace, llama: FakeLlama
) -> None:
    llama.answers["/props"] = fake.drop
    launcher.lives, launcher.code, launcher.log = 2, 134, ABORT
    error = failure(launcher, trace)
    assert error.kind is FailureKind.SERVER_CRASH
    assert "right after its start" in str(error)
