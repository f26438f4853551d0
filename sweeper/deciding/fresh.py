"""The confirming launches: which of them are fresh, and what they say so far. Pure."""

from __future__ import annotations

import datetime
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sweeper.deciding.drift import drift_of
from sweeper.deciding.launches import hours_between, lost_to_host, usable
from sweeper.deciding.noise import corrected
from sweeper.ratios import Evidence, Ratio, Terms, evidence, ratios_to_control
from sweeper.records import LaunchRecord, Purpose, TrialRecord
from sweeper.stats import Group, uneven_spreads

MIN_ROUNDS = 2
"""One launch each knows no spread."""

LEADER_SHARE = 0.8
"""So much of the error that is allowed goes to the finalist that led when it was chosen by several launches: in
nine of ten nights with a true winner it is that one."""

CHOOSING_HOURS = 24.0
"""Of the launches by which the finalists were chosen those count that were made up to so long before the first
fresh one, ..."""

MIN_CHOOSING = 3
"""... if there are so many of the finalist and of the baseline. Fewer of the baseline know no drift. A finalist
that stood out was not launched again; allowing for the choice among all, its one launch would speak against it."""


@dataclass(frozen=True)
class Before:
    """What was measured before the confirmation.

    `repeated`: by trial number the values of those that were launched again, for what starts differ by.
    `num_tried`: among so many configurations the finalists were chosen.
    """

    repeated: Mapping[int, Group] = field(default_factory=dict)
    num_tried: int = 1


NOTHING_KNOWN = Before()


@dataclass(frozen=True)
class Confirmed:
    """What the fresh launches say.

    `fresh`: their values by trial number, the baseline's under 0. `ratios`: of the finalists to the baseline.
    `num_choosing`: by finalist how many of the launches that it was chosen by count a little beside them; 0: none.
    """

    fresh: Mapping[int, Group]
    ratios: Mapping[int, Ratio]
    num_choosing: Mapping[int, int]

    @property
    def baseline_value(self) -> float:
        """The baseline's mean, which the ratios refer to."""
        return statistics.geometric_mean(self.fresh[0])

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


def before_confirming(trials: Sequence[TrialRecord], objective: str) -> Before:
    """What the launches before the confirmation say of all `trials`, the first of which is the baseline.

    The spread of values by which some were chosen is as good as any. What the baseline drifts by is taken out.
    """
    drift = drift_of(trials[0].launches, objective)
    groups = {
        trial.number: tuple(
            corrected(launch, objective, drift) for launch in _choosing(trial) if usable(launch, objective)
        )
        for trial in trials[1:]
    }
    repeated = {number: group for number, group in groups.items() if len(group) > 1}
    return Before(repeated, max(1, sum(bool(_choosing(trial)) for trial in trials[1:])))


def compare(
    baseline: TrialRecord,
    chosen: Sequence[TrialRecord],
    objective: str,
    before: Before = NOTHING_KNOWN,
    first: int | None = None,
) -> Confirmed | None:
    """What the fresh launches say (of each the `first` ones only, if given); None without two of the baseline.

    Finalists with fewer than two fresh values are left out.
    """
    known = {
        trial.number: [launch for launch in attempts(trial, chosen)[:first] if usable(launch, objective)]
        for trial in (baseline, *chosen)
    }
    fresh = known.pop(0)
    by_number = {trial.number: trial for trial in chosen}
    leaders = _leaders_first(chosen, objective)
    rivals = {number: known[number] for number in leaders if len(known[number]) >= MIN_ROUNDS}
    if len(fresh) < MIN_ROUNDS or not rivals:
        return None
    control = _values(fresh, objective)
    values = {number: _values(launches, objective) for number, launches in rivals.items()}
    even = not uneven_spreads((control, *values.values()))
    base = _countable(baseline, fresh[0], objective) if even else []
    chose = {number: _countable(by_number[number], fresh[0], objective) for number in values}
    seen = {number: _choice(number, chose[number], base, objective, before) for number in values}
    terms = Terms(
        shares=_shares([leaders[number] for number in values]),
        others=tuple(before.repeated.values()),
        choosing=tuple(seen.values()),
    )
    return Confirmed(
        fresh={0: control, **values},
        ratios=dict(zip(values, ratios_to_control(tuple(values.values()), control, terms), strict=True)),
        num_choosing={number: len(chose[number]) if seen[number] else 0 for number in values},
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


def _choosing(trial: TrialRecord) -> list[LaunchRecord]:
    """The measured launches by which finalists are chosen."""
    return [launch for launch in trial.measured if launch.purpose is not Purpose.CONFIRM]


def _countable(trial: TrialRecord, fresh: LaunchRecord, objective: str) -> list[LaunchRecord]:
    """Those of them that count: made not long before the `fresh` launch, and under the same conditions."""
    return [
        launch
        for launch in _choosing(trial)
        if usable(launch, objective)
        and 0 < hours_between(launch.started_at, fresh.started_at) <= CHOOSING_HOURS
        and launch.provenance == fresh.provenance
    ]


def _choice(
    number: int, launches: Sequence[LaunchRecord], base: Sequence[LaunchRecord], objective: str, before: Before
) -> Evidence | None:
    """What the launches say by which a finalist was chosen among all that were tried, a steady drift taken out."""
    if min(len(launches), len(base)) < MIN_CHOOSING:
        return None
    others = tuple(group for other, group in before.repeated.items() if other != number)
    hours = (_hours(base), _hours(launches))
    values = (_values(launches, objective), _values(base, objective))
    found = evidence(values[:1], values[1], hours, others, before.num_tried)[0]
    return found if found.error else None


def _values(launches: Sequence[LaunchRecord], objective: str) -> Group:
    return tuple(launch.metrics[objective] for launch in launches)


def _hours(launches: Sequence[LaunchRecord]) -> Group:
    return tuple(launch.started_at.timestamp() / 3600 for launch in launches)
