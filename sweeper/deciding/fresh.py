"""The confirming launches: which of them are fresh, and what they say so far. Pure."""

from __future__ import annotations

import datetime
import statistics
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sweeper.deciding.choosing import Choosing, choosing
from sweeper.deciding.comparable import differing
from sweeper.deciding.launches import hours_between, lost_to_host, usable
from sweeper.records import LaunchRecord, Purpose, TrialRecord
from sweeper.statistics.ratios import Evidence, Ratio, Terms, evidence, ratios_to_control
from sweeper.statistics.stats import Group, uneven_spreads

MIN_ROUNDS = 2
"""One launch each knows no spread."""

LEADER_SHARE = 0.8
"""So much of the error that is allowed goes to the finalist that led when it was chosen by several launches: in
nine of ten nights with a true winner it is that one."""

FAR_SHARE = 0.05
"""So much of it goes to the finalists that noise tells from the leader: enough for a gain that is plain to see."""

CHOOSING_HOURS = 24.0
"""Of the launches by which the finalists were chosen those count that were made up to so long before the first
fresh one, ..."""

MIN_CHOOSING = 3
"""... if there are so many of the finalist and of the baseline. Fewer of the baseline know no drift. Of a finalist
that stood out, and was not launched again for that, the one launch counts."""


_BEFORE_ALL = datetime.datetime.min.replace(tzinfo=datetime.UTC)


@dataclass(frozen=True)
class Before:
    """What was measured before the confirmation.

    `repeated`: by trial number the values of those that were launched again, for what starts differ by.
    `num_tried`: among so many configurations the finalists were chosen. `since`: only launches after this moment
    confirm. `chosen_by`: what the finalists were chosen by.
    """

    repeated: Mapping[int, Group] = field(default_factory=dict)
    num_tried: int = 1
    since: datetime.datetime = _BEFORE_ALL
    chosen_by: Choosing = field(default_factory=lambda: Choosing((), ""))


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


def before_confirming(trials: Sequence[TrialRecord], objective: str, finalists: Collection[int] = ()) -> Before:
    """What the launches before the confirmation say of all `trials`, the first of which is the baseline.

    The spread of values by which some were chosen is as good as any. What the baseline drifts by is taken out.
    `finalists`: numbers of those that are to be confirmed, besides those of which a launch was made for it.
    """
    chosen_by = Choosing(trials, objective)
    repeated = {trial.number: chosen_by.values(trial.number) for trial in trials[1:]}
    return Before(
        repeated={number: values for number, values in repeated.items() if len(values) > 1},
        num_tried=max(1, sum(bool(choosing(trial)) for trial in trials[1:])),
        since=fresh_since(trials, finalists),
        chosen_by=chosen_by,
    )


def fresh_since(trials: Sequence[TrialRecord], finalists: Collection[int] = ()) -> datetime.datetime:
    """Only launches after this moment confirm: when the last launch was made by which a finalist was chosen.

    A finalist that a later, larger budget brings is thus compared with launches of the same hour, not with a
    baseline of last week; also where none of its own confirming launches could be measured. Where no choosing
    launch can be compared any more, all confirming ones count.
    """
    chosen = [trial for trial in trials if trial.number in finalists or was_finalist(trial)]
    launches = [launch for trial in chosen for launch in choosing(trial)]
    return max((launch.started_at for launch in launches), default=_BEFORE_ALL)


def was_finalist(trial: TrialRecord) -> bool:
    """Whether a launch of it was made to confirm it, whatever became of that."""
    return not trial.is_baseline and any(launch.purpose is Purpose.CONFIRM for launch in trial.launches)


def attempts(trial: TrialRecord, since: datetime.datetime) -> list[LaunchRecord]:
    """The trial's confirming launches after that moment; one lost to the host is made again."""
    return [
        launch
        for launch in trial.launches
        if launch.purpose is Purpose.CONFIRM and launch.started_at > since and not lost_to_host(launch)
    ]


def fresh_launches(trials: Sequence[TrialRecord]) -> dict[int, list[LaunchRecord]]:
    """The measured launches that confirm, by trial number; the baseline is the first of the `trials`."""
    since = fresh_since(trials)
    return {trial.number: [launch for launch in attempts(trial, since) if launch.ok] for trial in trials}


def compare(
    baseline: TrialRecord,
    chosen: Sequence[TrialRecord],
    objective: str,
    before: Before,
    first: int | None = None,
) -> Confirmed | None:
    """What the fresh launches say (of each the `first` ones only, if given); None without two of the baseline.

    Finalists with fewer than two fresh values are left out.
    """
    known = {
        trial.number: [launch for launch in attempts(trial, before.since)[:first] if usable(launch, objective)]
        for trial in (baseline, *chosen)
    }
    fresh = known.pop(0)
    by_number = {trial.number: trial for trial in chosen}
    rivals = {number: launches for number, launches in known.items() if len(launches) >= MIN_ROUNDS}
    if len(fresh) < MIN_ROUNDS or not rivals:
        return None
    control = _values(fresh, objective)
    values = {number: _values(launches, objective) for number, launches in rivals.items()}
    even = not uneven_spreads((control, *values.values()))
    base = _countable(baseline, fresh[0], objective) if even else []
    chose = {number: _countable(by_number[number], fresh[0], objective) for number in values}
    seen = {number: _choice(number, chose[number], base, objective, before) for number in values}
    terms = Terms(
        shares=_shares(list(values), before.chosen_by),
        others=tuple(before.repeated.values()),
        choosing=tuple(seen.values()),
    )
    return Confirmed(
        fresh={0: control, **values},
        ratios=dict(zip(values, ratios_to_control(tuple(values.values()), control, terms), strict=True)),
        num_choosing={number: len(chose[number]) if seen[number] else 0 for number in values},
    )


def _shares(numbers: Sequence[int], chosen_by: Choosing) -> Group:
    """How the error is divided among the finalists: by what they were chosen by, so before any fresh launch.

    Equally among those that were chosen by a single launch, or by none that can be compared.
    """
    counts = {number: len(chosen_by.values(number)) for number in numbers}
    if not all(counts.values()):
        return tuple(1 / len(numbers) for _ in numbers)
    ranked = chosen_by.ranked(numbers)
    near = chosen_by.near_best(ranked)
    num_far = len(ranked) - len(near)
    left = 1 - FAR_SHARE if num_far else 1.0
    shares = {number: FAR_SHARE / num_far for number in ranked if number not in near}
    if len(near) > 1 and min(counts[number] for number in near) > 1:
        leader, *others = near
        shares |= {number: left * (1 - LEADER_SHARE) / len(others) for number in others}
        shares[leader] = left * LEADER_SHARE
    else:
        shares |= {number: left / len(near) for number in near}
    return tuple(shares[number] for number in numbers)


def _countable(trial: TrialRecord, fresh: LaunchRecord, objective: str) -> list[LaunchRecord]:
    """Those of them that count: made not long before the `fresh` launch, and under the same conditions."""
    return [
        launch
        for launch in choosing(trial)
        if usable(launch, objective)
        and 0 < hours_between(launch.started_at, fresh.started_at) <= CHOOSING_HOURS
        and not differing(fresh.provenance, launch.provenance)
    ]


def _choice(
    number: int, launches: Sequence[LaunchRecord], base: Sequence[LaunchRecord], objective: str, before: Before
) -> Evidence | None:
    """What the launches say by which a finalist was chosen among all that were tried, a steady drift taken out."""
    if len(launches) == 1 and len(base) == len(before.chosen_by.values(0)) >= MIN_CHOOSING:
        return _standing_out(number, before)
    if min(len(launches), len(base)) < MIN_CHOOSING:
        return None
    others = tuple(group for other, group in before.repeated.items() if other != number)
    hours = (_hours(base), _hours(launches))
    values = (_values(launches, objective), _values(base, objective))
    found = evidence(values[:1], values[1], hours, others, before.num_tried)[0]
    return found if found.error else None


def _standing_out(number: int, before: Before) -> Evidence | None:
    """What the one launch of a finalist says that nobody came near, given that nobody did; None if somebody did.

    The others say how large its value had to be for that, and nothing else: where they are far behind, next to
    nothing has to be allowed for (a test conditional on the choice: Fithian, Sun and Taylor 2014). Of the value
    n / (n + 1) go with the gap to n launches of the baseline; the rest is independent of the gap.
    """
    lead = before.chosen_by.lead(number)
    if lead <= 0:
        return None
    value, base = before.chosen_by.values(number), before.chosen_by.values(0)
    found = evidence((value,), base, others=tuple(before.repeated.values()))[0]
    return replace(found, least=found.gap - lead * (1 + 1 / len(base))) if found.error else None


def _values(launches: Sequence[LaunchRecord], objective: str) -> Group:
    return tuple(launch.metrics[objective] for launch in launches)


def _hours(launches: Sequence[LaunchRecord]) -> Group:
    return tuple(launch.started_at.timestamp() / 3600 for launch in launches)
