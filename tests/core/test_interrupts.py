from __future__ import annotations

import os
import signal
import threading

import pytest

from sweeper.errors import ExitCode, SweepInterrupted
from sweeper.interrupts import FIRST_PRESS, SECOND_PRESS, Interrupts


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
