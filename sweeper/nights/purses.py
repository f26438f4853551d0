"""What a night has of time and energy, what is left of it, and what a launch takes of it."""

from __future__ import annotations

from collections.abc import Sequence

from sweeper.deadline import NightSpan
from sweeper.deciding.affordable import Purse
from sweeper.deciding.durations import Taken, energy_wh, launch_s, start_s
from sweeper.deciding.per_trial import PerTrial
from sweeper.records import TrialRecord
from sweeper.spec import SweepSpec


def first_launch_s(spec: SweepSpec) -> float:
    """Seconds that must be left for a launch while none has been measured, its measuring left out."""
    warmups_s = sum(workload.warmup_max_s for workload in spec.workloads)
    return spec.limits.start_s + spec.limits.stop_grace_s + warmups_s


def longest_launch_s(spec: SweepSpec) -> float:
    """Seconds that a launch takes at most by its limits; more than it ever takes."""
    return first_launch_s(spec) + sum(workload.max_measure_s for workload in spec.workloads)


class Purses:
    """What runs out on `host` of one study. It is asked several times around each launch, so each trial is looked
    at once while its launches stay as they are.
    """

    def __init__(self, spec: SweepSpec, host: str) -> None:
        self._spec = spec
        self._spent_s = PerTrial(lambda trial: sum(launch_s(n) for n in trial.launches if n.host == host))
        self._durations, self._starts, self._energy = Taken(launch_s), Taken(start_s), Taken(energy_wh)

    def of(self, trials: Sequence[TrialRecord], span: NightSpan | None, until_s: float | None) -> list[Purse]:
        """What runs out, as far as it was asked for. `until_s`: seconds to the end of the night `span`."""
        spec, budget, purses = self._spec, self._spec.budget, []
        if times := self._times(trials, span, until_s):
            learned = self._durations.learned(trials, longest_launch_s(spec))
            first_s = first_launch_s(spec)
            purses = [Purse(n, left_s, whole_s, learned, first_s, is_time=True) for n, left_s, whole_s in times]
        if budget.energy_kwh is not None:
            whole_wh = 1000 * budget.energy_kwh
            name = f"budget.energy_kwh={budget.energy_kwh:g}"
            left_wh = whole_wh - spent_wh(trials)
            purses.append(Purse(name, left_wh, whole_wh, self._energy.learned(trials, 0.0), first=1.0))
        return purses

    def time_left_s(
        self, trials: Sequence[TrialRecord], span: NightSpan | None, until_s: float | None
    ) -> float | None:
        """Seconds that are left of the time that runs out first; None where none was asked for."""
        return min((left_s for _, left_s, _ in self._times(trials, span, until_s)), default=None)

    def _times(
        self, trials: Sequence[TrialRecord], span: NightSpan | None, until_s: float | None
    ) -> list[tuple[str, float, float]]:
        """What limits the time: name, seconds left, seconds in all."""
        budget, times = self._spec.budget, []
        if until_s is not None and span is not None:
            whole_s = (span.ends_at - span.begun_at).total_seconds()
            times.append((f"budget.until={budget.until}", until_s - self._finish_s(trials), whole_s))
        if budget.hours is not None:
            whole_s = 3600 * budget.hours
            times.append((f"budget.hours={budget.hours:g}", whole_s - sum(self._spent_s.of(trials)), whole_s))
        return times

    def _finish_s(self, trials: Sequence[TrialRecord]) -> float:
        """What leaving the host as asked takes at the end: another start, unless it is just left."""
        if self._spec.on_finish == "stop":
            return 0.0
        return self._starts.learned(trials, self._spec.limits.start_s).upper(None)


def spent_wh(trials: Sequence[TrialRecord]) -> float:
    """Watt-hours of all launches; those that were not measured count as the others do, by their time."""
    launches = [launch for trial in trials for launch in trial.launches]
    known = [(wh, launch_s(launch)) for launch in launches if (wh := energy_wh(launch)) is not None]
    total_wh, total_s = sum(wh for wh, _ in known), sum(seconds for _, seconds in known)
    unknown_s = sum(launch_s(launch) for launch in launches if energy_wh(launch) is None)
    return total_wh + (unknown_s * total_wh / total_s if total_s else 0.0)
