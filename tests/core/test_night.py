"""Whole sweeps with an end, on a clock that only launches move."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from launchers.base import CommandResult
from sweeper.deciding.verdict import Verdict, VerdictKind
from sweeper.errors import ConfigError, NightOver
from sweeper.launch_record import Save
from sweeper.loop import run_sweep
from sweeper.records import LaunchRecord, Proposal, Purpose
from sweeper.rig import Rig
from sweeper.study import Study
from sweeper.tracking import Tracker
from tests.core.test_loop import IdleLauncher, make_rig
from tests.core.test_study import open_study, record_of, speed
from tests.fakes import EPOCH, FakeClock, RecordingView

pytestmark = pytest.mark.study

LAUNCH_S = 600.0


class SettableClock(FakeClock):
    """Somebody may set its time of day."""

    set_by_s = 0.0

    def now(self) -> datetime.datetime:
        return super().now() + datetime.timedelta(seconds=self.set_by_s)


class Sweep:
    """One study; each `night` is a start of its own on the same clock."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clock = SettableClock()
        self.view = RecordingView()
        self.on_launch: Callable[[Proposal], None] = lambda _: None

    def study(self) -> Study:
        return open_study(self.folder)

    def rig(self, **budget: Any) -> Rig:
        self.view = RecordingView()
        rig = make_rig(self.folder, self.view)
        asked = rig.spec.budget.model_copy(update={"trials": 30, "confirm_launches": 3, **budget})
        return replace(rig, clock=self.clock, spec=rig.spec.model_copy(update={"budget": asked}))

    def run(self, rig: Rig) -> Verdict:
        return run_sweep(rig, self.study(), Tracker(rig.spec.tracking, rig.clock), self.launch)

    def night(self, **budget: Any) -> Verdict:
        return self.run(self.rig(**budget))

    def launch(self, proposal: Proposal, _rig: Rig, save: Save) -> LaunchRecord:
        began = self.clock.now()
        self.on_launch(proposal)
        self.clock.sleep(LAUNCH_S)
        record = record_of(proposal, speed(proposal.canonical))
        metrics = {**record.metrics, "launch_s": LAUNCH_S, "energy_wh": 1000.0}
        times = {"started_at": began, "ended_at": self.clock.now(), "metrics": metrics}
        return save(record.model_copy(update=times), {})

    def purposes(self) -> list[Purpose]:
        return [proposal.purpose for proposal in self.view.launches]

    def said(self, words: str) -> bool:
        return any(words in notice for notice in self.view.notices)


def at(hour: float) -> float:
    """Seconds from the start (midnight) to that hour."""
    return hour * 3600


def test_a_night_ends_in_time_with_a_confirmed_verdict(tmp_path: Path) -> None:
    sweep = Sweep(tmp_path)
    verdict = sweep.night(until="03:00")
    assert at(2.5) < sweep.clock.elapsed_s <= at(3)
    assert verdict.kind is VerdictKind.WINNER
    assert sweep.purposes()[-4:] == [Purpose.CONFIRM] * 4, "and then it was clear"
    assert len(sweep.view.launches) == 18 - 2, "for which a third round was kept back"
    assert sweep.said("the night ends at 03:00, in 3 h 00 min")
    assert sweep.said("budget.until=03:00: the search ends here, so that the finalists can be confirmed")
    assert verdict.cut_short == (
        "Cut short by budget.until=03:00: left out the rest of the search. A later end goes on from here."
    )
    assert verdict.cut_short in verdict.text


def test_the_same_command_goes_on_the_next_night(tmp_path: Path) -> None:
    sweep = Sweep(tmp_path)
    sweep.night(until="03:00")
    found = len(sweep.study().trials())
    sweep.clock.elapsed_s = at(10)
    sweep.night(until="03:00")
    assert len(sweep.study().trials()) > found
    assert sweep.said("the night ends at 03:00, in 17 h 00 min")


def test_a_night_that_was_interrupted_keeps_its_morning(tmp_path: Path) -> None:
    sweep = Sweep(tmp_path)
    rig = sweep.rig(until="03:00")

    def press(proposal: Proposal) -> None:
        rig.interrupts.finish_requested = proposal.trial_number == 2

    sweep.on_launch = press
    assert sweep.run(rig).cut_short == ""
    sweep.on_launch = lambda _: None
    sweep.clock.elapsed_s = at(1)
    sweep.night(until="03:00")
    assert sweep.said("the night goes on and ends at 03:00, in 2 h 00 min")
    assert sweep.clock.elapsed_s <= at(3)


@pytest.mark.parametrize("hours", [9.0, -9.0])
def test_a_clock_that_is_set_neither_ends_the_night_nor_makes_it_longer(tmp_path: Path, hours: float) -> None:
    sweep = Sweep(tmp_path)

    def set_clock(proposal: Proposal) -> None:
        if proposal.trial_number == 2:
            sweep.clock.set_by_s = hours * 3600

    sweep.on_launch = set_clock
    verdict = sweep.night(until="03:00")
    assert at(2.5) < sweep.clock.elapsed_s <= at(3)
    assert verdict.kind is VerdictKind.WINNER
    way = "forward" if hours > 0 else "back"
    assert [n for n in sweep.view.notices if f"was set 9 h 00 min {way}; the night still ends in" in n]


def test_a_night_too_short_to_confirm_says_so_before_and_in_the_verdict(tmp_path: Path) -> None:
    sweep = Sweep(tmp_path)
    verdict = sweep.night(until="00:45")
    assert Purpose.CONFIRM not in sweep.purposes()
    assert len(sweep.view.launches) == 4
    notice = next(n for n in sweep.view.notices if "the verdict will be unconfirmed" in n)
    assert notice.startswith("budget.until=00:45: ")
    assert not verdict.confirmed
    assert "left out the rest of the search, the confirmation" in verdict.text


def test_nothing_is_begun_when_not_even_a_start_fits(tmp_path: Path) -> None:
    sweep = Sweep(tmp_path)
    sweep.clock.elapsed_s = at(2.999)
    verdict = sweep.night(until="03:00")
    assert sweep.view.launches == []
    assert sweep.said("no further launch would end in time: before one has been measured 2 min are needed")
    assert "Cut short" in verdict.text


def test_hours_are_a_total_over_all_starts(tmp_path: Path) -> None:
    sweep = Sweep(tmp_path)
    sweep.night(hours=2.0)
    assert at(1.5) < sweep.clock.elapsed_s <= at(2)
    spent = sweep.clock.elapsed_s
    sweep.clock.elapsed_s += at(20)
    sweep.night(hours=2.0)
    assert sweep.view.launches == []
    sweep.night(hours=4.0)
    assert spent + at(20) < sweep.clock.elapsed_s <= at(20 + 4)


def test_a_launch_that_outlives_the_night_is_abandoned_and_made_again(tmp_path: Path) -> None:
    sweep = Sweep(tmp_path)

    def overrun(proposal: Proposal) -> None:
        if proposal.trial_number == 3:
            sweep.clock.elapsed_s = at(3)
            raise NightOver

    sweep.on_launch = overrun
    verdict = sweep.night(until="03:00")
    assert "left out the rest" in verdict.cut_short
    sweep.on_launch = lambda _: None
    sweep.night(until="12:00")
    assert sweep.view.launches[0].trial_number == 3


class Reading(IdleLauncher):
    """Its nvidia-smi says this of the power."""

    def __init__(self, text: bytes, code: int = 0) -> None:
        self._result = CommandResult(code, text, b"")

    def run(self, *_: object, **__: object) -> CommandResult:
        return self._result


def powered(rig: Rig, launcher: IdleLauncher) -> Rig:
    host = rig.spec.host.model_copy(update={"watch_gpus": True})
    return replace(rig, launcher=launcher, spec=rig.spec.model_copy(update={"host": host}))


def test_energy_is_a_budget_where_the_power_is_told(tmp_path: Path) -> None:
    sweep = Sweep(tmp_path)
    sweep.run(powered(sweep.rig(energy_kwh=15.5), Reading(b"412.3\n[N/A]\n")))
    assert len(sweep.view.launches) == 15 - 2, "kept back for a third round of the confirmation"
    assert sweep.purposes()[-4:] == [Purpose.CONFIRM] * 4


@pytest.mark.parametrize("launcher", [Reading(b"[N/A]\n"), Reading(b"not found", 127)])
def test_energy_that_nobody_tells_is_refused(tmp_path: Path, launcher: Reading) -> None:
    sweep = Sweep(tmp_path)
    with pytest.raises(
        ConfigError, match=r"budget\.energy_kwh: 2 cannot be kept: nvidia-smi on here tells no power"
    ):
        sweep.run(powered(sweep.rig(energy_kwh=2.0), launcher))
    assert sweep.view.launches == []


def test_energy_is_refused_where_the_gpus_are_not_watched(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"host\.watch_gpus is off"):
        Sweep(tmp_path).night(energy_kwh=2.0)


def test_an_end_that_is_past_is_refused(tmp_path: Path) -> None:
    day = f"{EPOCH:%Y-%m-%d}T00:00"
    with pytest.raises(ConfigError, match=rf"budget\.until: '{day}' is past: it is now {EPOCH:%Y-%m-%d} 00:00"):
        Sweep(tmp_path).night(until=day)
