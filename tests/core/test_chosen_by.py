"""The launches by which a finalist was chosen, beside the fresh ones that confirm it."""

from __future__ import annotations

import random

import pytest

from sweeper.deciding.fresh import Before, before_confirming, compare
from sweeper.records import Purpose, TrialRecord
from sweeper.statistics.ratios import NORMAL, Ratio
from tests.core.test_confirm import OBJECTIVE, with_launch
from tests.fakes import trial


def chosen(
    *, jump: float = 1.0, drift_per_hour: float = 0.0, gain: float = 1.05, age_h: float = 0.0
) -> tuple[TrialRecord, TrialRecord]:
    """Six launches of the baseline and three of a finalist in the search, then three rounds."""
    rng = random.Random(2)
    base, rival = trial(0), trial(1, m=1)

    def speed(hour: float) -> float:
        return 50 * (1 + drift_per_hour * hour) * (1 + rng.gauss(0, 0.01))

    for hour in map(float, range(6)):
        purpose = Purpose.CONTROL if hour else Purpose.BASELINE
        base = with_launch(base, speed(hour), hour - age_h, purpose)
    for hour, purpose in ((0.5, Purpose.SEARCH), (4.5, Purpose.RECHECK), (5.5, Purpose.RECHECK)):
        rival = with_launch(rival, gain * speed(hour), hour - age_h, purpose)
    for when in (6.0, 6.2, 6.4):
        base = with_launch(base, speed(when) * jump, when)
        rival = with_launch(rival, 1.05 * speed(when + 0.1) * jump, when + 0.1)
    return base, rival


def seen(base: TrialRecord, rival: TrialRecord, before: Before | None = None) -> tuple[Ratio, int]:
    """The finalist's ratio, and how many of its choosing launches counted."""
    found = compare(base, [rival], OBJECTIVE, before or before_confirming([base, rival], OBJECTIVE))
    assert found is not None
    return found.ratios[1], found.num_choosing[1]


def test_the_launches_that_a_finalist_was_chosen_by_count_a_little() -> None:
    fast, count = seen(*chosen(gain=1.05))
    slow, _ = seen(*chosen(gain=0.98))
    assert count == 3
    assert fast.value == pytest.approx(slow.value)
    assert (fast.low or 0) > (slow.low or 0)


def test_they_count_less_the_more_configurations_were_tried() -> None:
    base, rival = chosen()
    few, many = (seen(base, rival, Before(num_tried=count))[0] for count in (2, 40))
    assert (few.low or 0) > (many.low or 0)


def test_a_drift_of_the_host_is_taken_out_of_them() -> None:
    """The host becomes slower; the finalist was launched late, and is as fast as the baseline was at that time."""
    steady, _ = seen(*chosen(gain=1.02))
    for drift in (-0.02, 0.02):
        drifting, count = seen(*chosen(drift_per_hour=drift, gain=1.02))
        assert count == 3
        assert drifting.enough == pytest.approx(steady.enough, abs=0.1)


def test_a_jump_of_the_host_before_the_confirmation_changes_nothing() -> None:
    before, after = seen(*chosen())[0], seen(*chosen(jump=0.9))[0]
    assert before.value == pytest.approx(after.value)
    assert before.low == pytest.approx(after.low, rel=0.002)
    assert before.enough == pytest.approx(after.enough, abs=0.05)


def test_they_do_not_count_from_the_day_before() -> None:
    assert seen(*chosen(age_h=25.0))[1] == 0
    assert seen(*chosen(age_h=17.0))[1] == 3


def test_they_do_not_count_from_another_version_of_the_server() -> None:
    base, rival = chosen()
    fact, old = "engine_version", "old"
    assert seen(with_fact(base, fact, before=old), with_fact(rival, fact, before=old))[1] == 0
    assert seen(with_fact(base, fact), with_fact(rival, fact, before=old))[1] == 0
    assert seen(with_fact(base, fact), with_fact(rival, fact))[1] == 3


def test_they_count_from_another_version_of_specsweep_and_under_another_name_of_the_workload() -> None:
    base, rival = chosen()
    for fact in ("specsweep_version", "workload"):
        assert seen(with_fact(base, fact, before="old"), with_fact(rival, fact, before="old"))[1] == 3


def with_fact(record: TrialRecord, fact: str, before: str = "new") -> TrialRecord:
    """With a fact of the provenance that is `new` in the confirmation."""
    launches = (
        made.model_copy(update={"provenance": {fact: "new" if made.purpose is Purpose.CONFIRM else before}})
        for made in record.launches
    )
    return record.model_copy(update={"launches": tuple(launches)})


def test_they_do_not_count_beside_fewer_than_three_of_the_baseline() -> None:
    base, rival = chosen()
    few = base.model_copy(update={"launches": base.launches[4:]})
    ratio, count = seen(few, rival)
    assert count == 0
    assert ratio.enough == pytest.approx(NORMAL.inv_cdf(0.95))


def stood_out(value: float, *others: float) -> list[TrialRecord]:
    """Three launches of the baseline at 50 and one of each other in the search, then three rounds of the first."""
    trials = [trial(0), *(trial(number, m=number) for number in range(1, len(others) + 2))]
    for hour, speed in ((0.0, 50.0), (2.0, 50.6), (4.0, 49.4)):
        trials[0] = with_launch(trials[0], speed, hour, Purpose.CONTROL if hour else Purpose.BASELINE)
    for number, speed in enumerate((value, *others), start=1):
        trials[number] = with_launch(trials[number], speed, number / 10, Purpose.SEARCH)
    for at, base, fresh in ((6.0, 50.2, 51.0), (6.4, 49.6, 51.6), (6.8, 50.5, 50.4)):
        trials[0] = with_launch(trials[0], base, at)
        trials[1] = with_launch(trials[1], fresh, at + 0.2)
    return trials


def first_of(trials: list[TrialRecord]) -> tuple[Ratio, int]:
    return seen(trials[0], trials[1], before_confirming(trials, OBJECTIVE))


def test_the_one_launch_of_a_finalist_that_nobody_came_near_counts() -> None:
    """Among twenty, as if it had been the only one: the others were so far behind that it needed no luck."""
    far = [40.0 - number for number in range(19)]
    (good, count), (bad, _) = (first_of(stood_out(value, *far)) for value in (52, 50))
    alone, _ = first_of(stood_out(52))
    assert count == 1
    assert good.value == bad.value
    assert (good.low or 0) > (bad.low or 0)
    assert good.enough < NORMAL.inv_cdf(0.95)
    assert good.low == pytest.approx(alone.low, rel=1e-3)


def test_the_nearer_the_next_one_came_the_less_it_counts_and_near_ones_take_it_all() -> None:
    needed = [first_of(stood_out(52, other))[0].enough for other in (30, 46, 48, 48.8)]
    assert needed == sorted(needed)
    assert needed[-1] > needed[0] + 0.2
    near, count = first_of(stood_out(52, 51.5))
    assert count == 0
    assert near.enough == pytest.approx(NORMAL.inv_cdf(0.95))


def test_it_does_not_count_beside_fewer_than_three_of_the_baseline_or_some_of_another_day() -> None:
    trials = stood_out(52, 40)
    base = trials[0]
    few = base.model_copy(update={"launches": base.launches[1:]})
    old = with_launch(base, 50, hour=-48, purpose=Purpose.CONTROL)
    for changed in (few, old):
        assert first_of([changed, *trials[1:]])[1] == 0


def test_where_a_finalist_varies_far_more_than_the_baseline_only_fresh_launches_count() -> None:
    base, rival = chosen()
    wild = tuple(
        made.model_copy(update={"metrics": {OBJECTIVE: value}}) if value else made
        for made, value in zip(rival.launches, (0, 0, 0, 20.0, 90.0, 45.0), strict=True)
    )
    calm = tuple(
        made.model_copy(update={"metrics": {OBJECTIVE: 50.0 + at / 100}}) for at, made in enumerate(base.launches)
    )
    base = base.model_copy(update={"launches": calm})
    assert seen(base, rival.model_copy(update={"launches": wild}))[1] == 0
