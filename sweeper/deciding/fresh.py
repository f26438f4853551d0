"""The confirming launches: which of them are fresh, and what they say so far. Pure."""

from __future__ import annotations

import datetime
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sweeper.deciding.drift import drift_of
from sweeper.deciding.launches import hours_between, lost_to_host, usable
from sweeper.deciding.noise import corrected
from sweeper.records import LaunchRecord, Purpose, TrialRecord
from sweeper.stats import CONFIDENCE, Group, Ratio, Terms, ratios_to_control, uneven_spreads

MIN_ROUNDS = 2
"""One launch each knows no spread."""

LEADER_SHARE = 0.8
"""So much of the error that is allowed goes to the finalist that led when it was chosen by several launches: in
nine of ten nights with a true winner it is that one."""

EARLIER_HOURS = 24.0
"""Launches of the baseline made up to so long before the confirmation count beside its fresh ones, ..."""

MIN_EARLIER = 3
"""... if there are so many, ..."""

MAX_EARLIER = 6
"""... the last ones of them: over a short time a drift is nearly straight, even where it levels off. And ..."""

MISFIT = 0.05
"""... if they and the fresh ones lie on one line over time: a gap as theirs is not rarer than this.

If they do not, the host is unsteady, or chance moved the fresh ones: only these count, with half the error.
"""


@dataclass(frozen=True)
class Confirmed:
    """What the fresh launches say.

    `fresh`: their values by trial number, the baseline's under 0. `ratios`: of the finalists to the baseline.
    `baseline_value`: what they refer to. `num_earlier`: so many earlier launches of the baseline were used beside
    the fresh ones, with a steady drift over all of them taken out.
    """

    fresh: Mapping[int, Group]
    ratios: Mapping[int, Ratio]
    baseline_value: float
    num_earlier: int

    @property
    def fastest_first(self) -> list[int]:
        """The finalists' numbers."""
        return sorted(self.ratios, key=lambda number: -self.ratios[number].value)

    def as_fast_as(self, best: int, alpha: float) -> list[int]:
        """Of the finalists those that are not significantly slower than `best`, which is among them."""
        others = [number for number in self.ratios if number != best]
        inverse = {number: tuple(1 / value for value in self.fresh[number]) for number in self.ratios}
        behind = ratios_to_control(tuple(inverse[number] for number in others), inverse[best])
        near = [
            number for number, ratio in zip(others, behind, strict=True) if ratio.p is None or ratio.p >= alpha
        ]
        return [best, *near]


_BEFORE_ALL = datetime.datetime.min.replace(tzinfo=datetime.UTC)


def fresh_since(chosen: Sequence[TrialRecord]) -> datetime.datetime:
    """Only launches after this moment confirm: when the last launch was made by which the finalists were chosen.

    A finalist that a later, larger budget brings is thus compared with launches of the same hour, not with a
    baseline of last week. Where none of those launches can be compared any more, all confirming ones count.
    """
    choosing = [n for trial in chosen for n in trial.measured if n.purpose is not Purpose.CONFIRM]
    return max((launch.started_at for launch in choosing), default=_BEFORE_ALL)


def attempts(trial: TrialRecord, chosen: Sequence[TrialRecord]) -> list[LaunchRecord]:
    """The trial's confirming launches since the finalists were `chosen`; one lost to the host is made again."""
    since = fresh_since(chosen) if chosen else None
    return [
        launch
        for launch in trial.launches
        if launch.purpose is Purpose.CONFIRM
        and (since is None or launch.started_at > since)
        and not lost_to_host(launch)
    ]


def fresh_launches(baseline: TrialRecord, rivals: Sequence[TrialRecord]) -> dict[int, list[LaunchRecord]]:
    """The measured launches that confirm, by trial number: the baseline and every rival that was a finalist."""
    chosen = were_finalists(rivals)
    return {
        trial.number: [launch for launch in attempts(trial, chosen) if launch.ok] for trial in (baseline, *chosen)
    }


def were_finalists(rivals: Sequence[TrialRecord]) -> list[TrialRecord]:
    """Those of which a confirming launch was measured."""
    return [trial for trial in rivals if any(launch.purpose is Purpose.CONFIRM for launch in trial.measured)]


def repeated(trials: Sequence[TrialRecord], objective: str) -> tuple[Group, ...]:
    """Values of launches that were made again before the confirmation, by configuration: what starts differ by.

    They were chosen by their values, and so say nothing of who is fast; their spread is as good as any. The
    baseline is the first of `trials`; what it drifts by is taken out.
    """
    drift = drift_of(trials[0].launches, objective)
    groups = (
        tuple(
            corrected(launch, objective, drift)
            for launch in trial.measured
            if launch.purpose is not Purpose.CONFIRM and usable(launch, objective)
        )
        for trial in trials[1:]
    )
    return tuple(group for group in groups if len(group) > 1)


def compare(
    baseline: TrialRecord,
    chosen: Sequence[TrialRecord],
    objective: str,
    others: tuple[Group, ...] = (),
    first: int | None = None,
) -> Confirmed | None:
    """What the fresh launches say (of each the `first` ones only, if given); None without two of the baseline.

    Finalists with fewer than two fresh values are left out. `others`: values `repeated` before.
    """
    known = {
        trial.number: [launch for launch in attempts(trial, chosen)[:first] if usable(launch, objective)]
        for trial in (baseline, *chosen)
    }
    fresh = known.pop(0)
    leaders = _leaders_first(chosen, objective)
    rivals = {number: known[number] for number in leaders if len(known[number]) >= MIN_ROUNDS}
    if len(fresh) < MIN_ROUNDS or not rivals:
        return None
    values = {number: _values(launches, objective) for number, launches in rivals.items()}
    even = not uneven_spreads((_values(fresh, objective), *values.values()))
    earlier = _earlier(baseline, fresh, objective) if even else []
    fits = not earlier or _fits(earlier, fresh, objective)
    control = [*earlier, *fresh] if fits else fresh
    hours = (_hours(control), *map(_hours, rivals.values())) if len(control) > len(fresh) else ()
    shares = _shares([leaders[number] for number in rivals])
    error = (1 - CONFIDENCE) * (1.0 if fits else 0.5)
    terms = Terms(hours, shares, error, others)
    found = ratios_to_control(tuple(values.values()), _values(control, objective), terms)
    ratios = dict(zip(values, found, strict=True))
    # With a trend taken out, this is the baseline as of the finalists' time.
    bases = [statistics.geometric_mean(values[number]) / ratio.value for number, ratio in ratios.items()]
    return Confirmed(
        fresh={0: _values(fresh, objective), **values},
        ratios=ratios,
        baseline_value=statistics.geometric_mean(bases),
        num_earlier=len(control) - len(fresh),
    )


def _leaders_first(chosen: Sequence[TrialRecord], objective: str) -> dict[int, int]:
    """Trial number to the number of launches by which it was chosen, the best by their mean first."""
    by = {
        trial.number: [
            math.log(launch.metrics[objective])
            for launch in trial.measured
            if launch.purpose is not Purpose.CONFIRM and usable(launch, objective)
        ]
        for trial in chosen
    }
    order = sorted(by, key=lambda number: -statistics.fmean(by[number]) if by[number] else math.inf)
    return {number: len(by[number]) for number in order}


def _shares(chosen_by: Sequence[int]) -> Group:
    """How the error is divided among finalists, leader first: equally, if one was chosen by a single launch."""
    others = len(chosen_by) - 1
    if not others or min(chosen_by) < 2:
        return tuple(1 / len(chosen_by) for _ in chosen_by)
    return (LEADER_SHARE, *((1 - LEADER_SHARE) / others for _ in range(others)))


def _earlier(baseline: TrialRecord, fresh: Sequence[LaunchRecord], objective: str) -> list[LaunchRecord]:
    """Launches of the baseline that nobody chose by their values: they may count beside the `fresh` ones."""
    began = fresh[0].started_at
    earlier = [
        launch
        for launch in baseline.measured
        if usable(launch, objective)
        and 0 < hours_between(launch.started_at, began) <= EARLIER_HOURS
        and launch.provenance == fresh[0].provenance
    ]
    return earlier[-MAX_EARLIER:] if len(earlier) >= MIN_EARLIER else []


def _fits(earlier: Sequence[LaunchRecord], fresh: Sequence[LaunchRecord], objective: str) -> bool:
    """Whether a steady drift explains what the `fresh` launches differ by from the earlier ones."""
    terms = Terms(hours=(_hours(earlier), _hours(fresh)))
    gap = ratios_to_control((_values(fresh, objective),), _values(earlier, objective), terms)[0]
    return gap.p is not None and 2 * min(gap.p, 1 - gap.p) >= MISFIT


def _values(launches: Sequence[LaunchRecord], objective: str) -> Group:
    return tuple(launch.metrics[objective] for launch in launches)


def _hours(launches: Sequence[LaunchRecord]) -> Group:
    return tuple(launch.started_at.timestamp() / 3600 for launch in launches)
