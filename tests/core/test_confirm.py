"""Confirming launches: how many, in which order, and when it is clear."""

from __future__ import annotations

import datetime
import math
import random

import pytest
from scipy import stats

from sweeper.deciding.confirm import FUTILE, confirmations, is_futile
from sweeper.deciding.fresh import Before, Confirmed, before_confirming, compare
from sweeper.errors import FailureKind
from sweeper.records import Purpose, TrialRecord
from sweeper.statistics.ratios import NORMAL, Ratio
from tests.fakes import EPOCH, launch, trial

OBJECTIVE = "output_throughput"
ROUNDS = 5


def night(*values: float) -> list[TrialRecord]:
    return [trial(number, [value], m=number) for number, value in enumerate(values)]


def confirmed(trials: list[TrialRecord], rounds: int, **levels: float) -> list[TrialRecord]:
    """The trials after so many rounds as the sweep chooses them, each at its level (`t0`), with 1 % noise."""
    rng, trials, hour = random.Random(4), list(trials), 2.0
    for _ in range(rounds * len(trials)):
        pending = confirmations(trials[0], trials[1:], rounds, OBJECTIVE, Before())
        if not pending:
            break
        number, hour = pending[0], hour + 0.1
        value = levels[f"t{number}"] * (1 + rng.gauss(0, 0.01))
        trials[number] = with_launch(trials[number], value, hour)
    return trials


def with_launch(record: TrialRecord, value: float, hour: float, purpose: Purpose = Purpose.CONFIRM) -> TrialRecord:
    made = launch(value, trial=record.number, number=len(record.launches), purpose=purpose)
    made = made.model_copy(update={"started_at": EPOCH + datetime.timedelta(hours=hour)})
    return record.model_copy(update={"launches": (*record.launches, made)})


def counts(trials: list[TrialRecord]) -> list[int]:
    return [sum(x.purpose is Purpose.CONFIRM for x in record.launches) for record in trials]


def pending(trials: list[TrialRecord]) -> list[int]:
    return confirmations(trials[0], trials[1:], ROUNDS, OBJECTIVE, Before())


def test_a_clear_winner_takes_two_rounds() -> None:
    trials = confirmed(night(50, 65, 55), 2, t0=50, t1=65, t2=52)
    assert counts(trials) == [2, 2, 2]
    assert pending(trials) == []


def test_those_that_cannot_win_any_more_end_it() -> None:
    trials = confirmed(night(50, 51, 51), 2, t0=50, t1=42, t2=43)
    assert pending(trials) == []


def test_one_that_cannot_win_any_more_is_dropped_and_the_other_goes_on() -> None:
    trials = confirmed(night(50, 51, 51), 2, t0=50, t1=50.8, t2=43)
    assert set(pending(trials)) == {0, 1}


@pytest.mark.parametrize("share", [0.4, 0.6, 0.8])
def test_futile_is_whose_chance_to_be_confirmed_is_small(share: float) -> None:
    """The estimate moves on like a random walk: from t now, by what the launches to come leave open."""
    for enough in (stats.norm.isf(0.05), 0.7, 2.5):
        for tenths in range(-40, 40):
            t = tenths / 10
            beyond = (enough - t / math.sqrt(share)) / math.sqrt(1 / share - 1)
            assert is_futile(Ratio(1.0, t=t, enough=enough), share) == (stats.norm.sf(beyond) < FUTILE), t
    assert Ratio(1.0).enough == pytest.approx(NORMAL.inv_cdf(0.95))


def test_a_close_one_has_all_its_launches() -> None:
    trials = confirmed(night(50, 51), ROUNDS, t0=50, t1=50.9)
    assert counts(trials) == [5, 5]
    assert pending(trials) == []


def test_two_fast_ones_that_are_close_go_on_to_be_told_apart() -> None:
    trials = confirmed(night(50, 65, 65), 2, t0=50, t1=65, t2=65)
    assert set(pending(trials)) == {0, 1, 2}


def test_a_finalist_that_crashed_once_is_launched_on_though_another_has_won_by_then() -> None:
    base = trial(0, [50], confirm=[50.0, 50.2])
    winner = trial(1, [70], confirm=[70.2, 69.9], m=1)
    shaky = with_launch(trial(2, [90], m=2), 90.5, 2.0)
    crash = launch(None, trial=2, number=2, purpose=Purpose.CONFIRM, failure=FailureKind.SERVER_CRASH)
    shaky = shaky.model_copy(update={"launches": (*shaky.launches, crash)})
    assert 2 in pending([base, winner, shaky])


def test_a_larger_number_of_rounds_goes_on() -> None:
    trials = confirmed(night(50, 51), 2, t0=50, t1=50.6)
    assert confirmations(trials[0], trials[1:], 2, OBJECTIVE, Before()) == []
    assert confirmations(trials[0], trials[1:], 3, OBJECTIVE, Before()) == [0, 1]


def test_the_finalist_that_led_is_judged_less_strictly_than_the_other() -> None:
    """Both did the same in the confirmation; one was chosen as the best of those launched several times."""
    made = [52.0, 53.0, 52.5]
    base = trial(0, [50], confirm=[50.0, 50.5, 51.0])
    leader, other = trial(1, [56, 56], confirm=made, m=1), trial(2, [55, 55], confirm=made, m=2)
    found = confirmation(base, leader, other)
    assert found.ratios[1].value == found.ratios[2].value
    assert low(found, 1) > low(found, 2)
    single = confirmation(base, trial(1, [56], confirm=made, m=1), trial(2, [55], confirm=made, m=2))
    assert low(single, 1) == pytest.approx(low(single, 2))


def test_one_far_behind_takes_next_to_nothing_of_the_error_from_the_leader() -> None:
    """By one launch each: what noise can tell apart needs no second one."""
    made = [52.0, 53.0, 52.5]
    base, leader = trial(0, [50], confirm=[50.0, 50.5, 51.0]), trial(1, [56], confirm=made, m=1)
    alone = confirmation(base, leader, trial(2, [45], m=2))
    near, far, farther = (
        confirmation(base, leader, trial(2, [value], confirm=made, m=2)) for value in (55, 45, 30)
    )
    assert low(near, 1) < low(far, 1) < low(alone, 1) + 0.01
    assert low(far, 1) == low(farther, 1)
    assert low(far, 1) > low(far, 2)


def test_a_finalist_that_crashes_each_time_leaves_its_part_of_the_error_to_the_others() -> None:
    made = [52.0, 53.0, 52.5]
    base, other = trial(0, [50], confirm=[50.0, 50.5, 51.0]), trial(2, [55, 55], confirm=made, m=2)
    leader = trial(1, [56, 56], m=1)
    crash = launch(None, trial=1, number=2, purpose=Purpose.CONFIRM, failure=FailureKind.SERVER_CRASH)
    crashed = leader.model_copy(update={"launches": (*leader.launches, crash, crash, crash)})
    beside = confirmation(base, trial(1, [56, 56], confirm=made, m=1), other)
    left = confirmation(base, crashed, other)
    assert set(left.ratios) == {2}
    assert left.ratios[2].enough == pytest.approx(NORMAL.inv_cdf(0.95))
    assert low(left, 2) > low(beside, 2)


def test_a_gain_that_is_plain_to_see_wins_though_the_finalist_was_far_behind() -> None:
    base, leader = trial(0, [50], confirm=[50, 50.2, 50.1]), trial(1, [90], confirm=[51, 50, 50.4], m=1)
    found = confirmation(base, leader, trial(2, [65], confirm=[65, 65.3, 64.8], m=2))
    assert not found.ratios[1].above_one
    assert found.ratios[2].above_one


def test_the_one_that_led_as_of_the_same_time_is_the_leader() -> None:
    """The host became slower: 50 tok/s late is more than 51 early."""
    made = [52.0, 53.0, 52.5]
    base, early, late = trial(0), trial(1, m=1), trial(2, m=2)
    for hour, value in enumerate((50.0, 47.5, 45.1, 42.9, 40.7)):
        base = with_launch(base, value, float(hour), Purpose.CONTROL)
    for when in (0.0, 0.5):
        early = with_launch(early, 51.0, 0.2 + when, Purpose.SEARCH)
        late = with_launch(late, 50.0, 3.0 + when, Purpose.SEARCH)
    for turn, value in enumerate(made):
        base = with_launch(base, (50.0, 50.5, 51.0)[turn], 6.0 + turn)
        early, late = (with_launch(one, value, 6.2 + turn) for one in (early, late))
    found = confirmation(base, early, late)
    assert low(found, 2) > low(found, 1)


def confirmation(base: TrialRecord, *rivals: TrialRecord) -> Confirmed:
    found = compare(base, rivals, OBJECTIVE, before_confirming([base, *rivals], OBJECTIVE))
    assert found is not None
    return found


def low(found: Confirmed, number: int) -> float:
    return found.ratios[number].low or 0.0


def test_a_single_fresh_launch_says_nothing() -> None:
    base, rival = trial(0, [50], confirm=[50]), trial(1, [60], confirm=[60], m=1)
    assert compare(base, [rival], OBJECTIVE, Before()) is None


def test_who_was_dropped_stays_out_when_a_later_start_asks_for_more_launches() -> None:
    base = trial(0, [50], confirm=[50, 50.6, 49.6, 50.3, 49.7])
    close = trial(1, [51], confirm=[50.9, 50.3, 50.6, 49.9, 50.8], m=1)
    dropped = trial(2, [51], confirm=[49.7, 50], m=2)
    assert confirmations(base, [close, dropped], 5, OBJECTIVE, Before()) == []
    assert set(confirmations(base, [close, dropped], 7, OBJECTIVE, Before())) == {0, 1}


def test_what_starts_differ_by_is_learnt_from_all_that_were_launched_again() -> None:
    trials = [trial(0, [50], confirm=[50.0, 50.5]), trial(1, [52, 52.4], m=1), trial(2, [51], m=2), trial(3, m=3)]
    known = before_confirming(trials, OBJECTIVE)
    assert known.repeated == {1: (52, 52.4)}
    assert known.num_tried == 2
    rival = trial(1, [52, 52.4], confirm=[51.5, 52.0], m=1)
    more = Before({1: (52, 52.4), 2: (40, 40.3), 3: (60, 60.5)})
    unsure, sure = (compare(trials[0], [rival], OBJECTIVE, known) for known in (Before(), more))
    assert unsure is not None
    assert sure is not None
    assert (sure.ratios[1].low or 0) > (unsure.ratios[1].low or 0)


def test_a_drift_is_no_spread() -> None:
    """The host became 20 % slower: what was launched early and late did not vary by that."""
    base = trial(0, [50.0])
    for hour, value in ((2, 47.5), (4, 45.0), (6, 42.5), (8, 40.0)):
        base = with_launch(base, value, hour, Purpose.CONTROL)
    rival = with_launch(trial(1, [60.0], m=1), 48.0, 8, Purpose.RECHECK)
    early, late = before_confirming([base, rival], OBJECTIVE).repeated[1]
    assert late == pytest.approx(early, rel=0.01)
