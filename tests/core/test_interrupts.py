from __future__ import annotations

import os
import signal
import threading

import pytest

from sweeper.endings import ending_of
from sweeper.errors import ExitCode, NightOver, SweepInterrupted, Terminated
from sweeper.interrupts import FIRST_PRESS, SECOND_PRESS, Interrupts, ends_heard


class Said:
    """Collects notices, which come from a thread."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.arrived = threading.Event()

    def __call__(self, text: str) -> None:
        self.lines.append(text)
        self.arrived.set()


def send(number: signal.Signals) -> None:
    os.kill(os.getpid(), number)


def test_the_first_ctrl_c_only_asks_and_says_so() -> None:
    said = Said()
    interrupts = Interrupts(said)
    with interrupts.installed():
        send(signal.SIGINT)
        assert interrupts.finish_requested
        assert said.arrived.wait(5)
    assert said.lines == [FIRST_PRESS]


def test_the_second_ctrl_c_abandons() -> None:
    said = Said()
    interrupts = Interrupts(said)
    with interrupts.installed():
        send(signal.SIGINT)
        with pytest.raises(SweepInterrupted) as seen:
            send(signal.SIGINT)
    assert seen.value.exit_code is ExitCode.INTERRUPTED
    assert SECOND_PRESS in said.lines or said.arrived.wait(5)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_sigterm_and_a_closed_terminal_abandon_at_once(number: signal.Signals) -> None:
    interrupts = Interrupts(Said())
    with interrupts.installed(), pytest.raises(SweepInterrupted) as seen:
        send(number)
    assert seen.value.exit_code is ExitCode.TERMINATED


def test_a_shield_holds_an_interruption_back_until_it_ends() -> None:
    interrupts = Interrupts(Said())
    done = []
    with interrupts.installed(), pytest.raises(SweepInterrupted), interrupts.shielded():
        with interrupts.shielded():
            send(signal.SIGTERM)
            done.append("inner")
        done.append("outer")
    assert done == ["inner", "outer"]


def test_an_impatient_third_press_cannot_disturb_the_clean_up() -> None:
    interrupts = Interrupts(Said())
    cleaned = False
    with interrupts.installed():
        try:
            send(signal.SIGTERM)
        except SweepInterrupted:
            send(signal.SIGINT)
            send(signal.SIGTERM)
            cleaned = True
    assert cleaned


def test_the_former_handlers_are_put_back() -> None:
    before = signal.getsignal(signal.SIGINT)
    with Interrupts(Said()).installed():
        assert signal.getsignal(signal.SIGINT) != before
    assert signal.getsignal(signal.SIGINT) == before


def test_under_nohup_a_closed_terminal_ends_nothing() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with (interrupts := Interrupts(Said())).installed():
            send(signal.SIGHUP)
        assert not interrupts.finish_requested
    finally:
        signal.signal(signal.SIGHUP, before)


def test_an_error_inside_a_shield_is_not_replaced_by_the_interruption() -> None:
    interrupts = Interrupts(Said())
    with interrupts.installed(), pytest.raises(ValueError, match="lost"), interrupts.shielded():
        send(signal.SIGTERM)
        raise ValueError("the stop failed, and is not to be lost")


def wait_for_the_alarm() -> None:
    for _ in range(500):
        threading.Event().wait(0.01)
    pytest.fail("no alarm within 5 s")


def test_the_end_of_the_night_abandons_the_launch_and_the_sweep_goes_on() -> None:
    interrupts = Interrupts(Said())
    with interrupts.installed():
        with pytest.raises(NightOver), interrupts.night_ends_in(0.01):
            wait_for_the_alarm()
        with pytest.raises(SweepInterrupted) as seen:  # a person is still heard
            send(signal.SIGTERM)
    assert seen.value.exit_code is ExitCode.TERMINATED


def test_a_night_that_is_over_ends_at_once_but_not_under_a_shield() -> None:
    interrupts = Interrupts(Said())
    stopped = []
    with interrupts.installed(), pytest.raises(NightOver), interrupts.night_ends_in(-3), interrupts.shielded():
        while interrupts._pending is None:
            threading.Event().wait(0.01)
        stopped.append("the server")
    assert stopped == ["the server"]


def test_sigterm_at_the_end_of_the_night_wins() -> None:
    interrupts = Interrupts(Said())
    with (
        interrupts.installed(),
        pytest.raises(SweepInterrupted) as seen,
        interrupts.night_ends_in(0.01),
        interrupts.shielded(),
    ):
        while interrupts._pending is None:
            threading.Event().wait(0.01)
        send(signal.SIGTERM)
    assert seen.value.exit_code is ExitCode.TERMINATED


def test_without_an_end_or_without_handlers_there_is_no_alarm() -> None:
    interrupts = Interrupts(Said())
    with interrupts.night_ends_in(0.0):
        pass
    before_s, _ = signal.getitimer(signal.ITIMER_REAL)  # that of a time-out of this test, perhaps
    with interrupts.installed(), interrupts.night_ends_in(None):
        assert signal.getitimer(signal.ITIMER_REAL)[0] == pytest.approx(before_s, abs=60)


@pytest.mark.parametrize("seconds", [None, 300.0])
def test_an_alarm_of_somebody_else_ends_no_night(seconds: float | None) -> None:
    said = Said()
    interrupts = Interrupts(said)
    with interrupts.installed():
        send(signal.SIGALRM)
        with interrupts.night_ends_in(seconds):
            send(signal.SIGALRM)
    assert said.lines == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_where_no_sweep_is_under_way_the_command_ends_with_a_word(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with ends_heard():
        with Interrupts(Said()).installed(), pytest.raises(SweepInterrupted) as of_sweep:
            send(number)
        with pytest.raises(Terminated) as seen:
            send(number)
    assert not isinstance(of_sweep.value, Terminated)
    assert ending_of(seen.value).code is ExitCode.TERMINATED
    assert ending_of(seen.value).text == f"ended by {number.name}; nothing was left half done"
    assert signal.getsignal(number) is before


def test_a_closed_terminal_ends_no_command_under_nohup() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with ends_heard():
            send(signal.SIGHUP)
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_beside_the_main_thread_nothing_is_handled() -> None:
    before = signal.getsignal(signal.SIGTERM)
    seen: list[object] = []

    def look() -> None:
        with ends_heard():
            seen.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert seen == [before]
