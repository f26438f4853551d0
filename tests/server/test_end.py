"""However a launch ends, its server is stopped, and the error that counts is the one that is raised."""

from __future__ import annotations

import pytest

from launchers.errors import HostLost, StopFailed
from sweeper.errors import ExitCode, FailureKind, SweepInterrupted, TrialError
from sweeper.serving.launch_trace import LaunchTrace
from sweeper.serving.server import running_server
from tests.server.fake_launcher import STOPPED, FakeLauncher, Interruption
from tests.server.serving import ABORT, SPEC, failure, rig, serve

pytestmark = pytest.mark.host


# Failures of the body.


def test_failed_benchmark_of_a_dead_server_is_the_crash(launcher: FakeLauncher, trace: LaunchTrace) -> None:
    launcher.lives, launcher.code, launcher.log = 4, 134, ABORT  # it takes a moment to die
    body = TrialError(FailureKind.BENCHMARK_FAILED, "prompt 'p0': connection reset")
    error = failure(launcher, trace, body)
    assert error.kind is FailureKind.SERVER_CRASH
    assert "prompt 'p0': connection reset" in str(error)
    assert any("GGML_ASSERT" in line for line in error.evidence)
    assert error.__cause__ is body


@pytest.mark.parametrize("kind", [FailureKind.BENCHMARK_FAILED, FailureKind.SERVER_HANG])
def test_failed_benchmark_of_a_living_server_stays_what_it_is(
    launcher: FakeLauncher, trace: LaunchTrace, kind: FailureKind
) -> None:
    body = TrialError(kind, "no")
    assert failure(launcher, trace, body) is body
    assert trace.stop == STOPPED


def test_other_failures_of_the_body_are_not_reinterpreted(launcher: FakeLauncher, trace: LaunchTrace) -> None:
    launcher.lives = 2
    body = TrialError(FailureKind.SILENT_BYPASS, "nothing drafted")
    assert failure(launcher, trace, body) is body


def test_unexpected_error_in_the_body_still_stops_the_server(launcher: FakeLauncher, trace: LaunchTrace) -> None:
    with pytest.raises(ZeroDivisionError):
        serve(launcher, trace, ZeroDivisionError())
    assert trace.stop == STOPPED


# Stopping.


def test_surviving_server_ends_the_sweep_whatever_else_went_wrong(
    launcher: FakeLauncher, trace: LaunchTrace
) -> None:
    launcher.stop_errors = [StopFailed("pid 42 survived", ("pid 42",))]
    body = TrialError(FailureKind.SERVER_HANG, "no answer")
    with pytest.raises(StopFailed, match="survived") as caught:
        serve(launcher, trace, body)
    assert caught.value.__context__ is body
    assert trace.stop is None
    assert [phase.name for phase in trace.phases] == ["check", "launch", "start: ready", "start", "stop"]


def test_stop_that_could_not_be_told_is_tried_again(launcher: FakeLauncher, trace: LaunchTrace) -> None:
    launcher.stop_errors = [HostLost("too slow")]
    serve(launcher, trace)
    assert trace.stop == STOPPED
    assert launcher.calls.count("stop") == 2


def test_stop_that_can_never_be_told_ends_the_sweep(launcher: FakeLauncher, trace: LaunchTrace) -> None:
    launcher.stop_errors = [HostLost("too slow"), HostLost("gone")]
    with pytest.raises(StopFailed, match=r"cannot be told.*gone"):
        serve(launcher, trace)


# Interruptions.


def test_interruption_in_the_body_stops_the_server(launcher: FakeLauncher, trace: LaunchTrace) -> None:
    with pytest.raises(SweepInterrupted):
        serve(launcher, trace, SweepInterrupted(ExitCode.TERMINATED))
    assert trace.stop == STOPPED


def test_interruption_while_the_server_was_being_started_stops_it(
    launcher: FakeLauncher, trace: LaunchTrace
) -> None:
    shield = Interruption(SweepInterrupted(ExitCode.INTERRUPTED), after=1)
    with pytest.raises(SweepInterrupted):
        serve(launcher, trace, shielded=shield.shielded)
    assert launcher.calls == ["settle", "start", "stop", "settle"]


def test_interruption_just_before_the_stop_does_not_skip_it(launcher: FakeLauncher, trace: LaunchTrace) -> None:
    shield = Interruption(SweepInterrupted(ExitCode.INTERRUPTED), before=2)
    with pytest.raises(SweepInterrupted):
        serve(launcher, trace, shielded=shield.shielded)
    assert trace.stop == STOPPED


def test_interruption_during_the_stop_does_not_stop_twice(launcher: FakeLauncher, trace: LaunchTrace) -> None:
    shield = Interruption(SweepInterrupted(ExitCode.INTERRUPTED), after=2)
    with pytest.raises(SweepInterrupted):
        serve(launcher, trace, shielded=shield.shielded)
    assert launcher.calls.count("stop") == 1


def test_surviving_server_outweighs_an_interruption(launcher: FakeLauncher, trace: LaunchTrace) -> None:
    launcher.stop_errors = [StopFailed("pid 42 survived")]
    with pytest.raises(StopFailed):
        serve(launcher, trace, SweepInterrupted(ExitCode.TERMINATED))


def test_view_that_fails_does_not_keep_the_server_alive(launcher: FakeLauncher, trace: LaunchTrace) -> None:
    def broken(phase: str) -> None:
        if phase == "stopping":
            raise BrokenPipeError

    with pytest.raises(BrokenPipeError), running_server(SPEC, rig(launcher), trace, broken):
        pass
    assert trace.stop == STOPPED
