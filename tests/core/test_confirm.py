"""Confirming launches: how many, in which order, and when it is clear."""

from __future__ import annotations

import datetime
import math
import random

import pytest
from scipy import stats

from sweeper.deciding.confirm import FUTILE, confirmations, is_futile
from sweeper.deciding.fresh import compare, repeated
from sweeper.records import LaunchRecord, Purpose, TrialRecord
from sweeper.stats import Ratio
from tests.fakes import EPOCH, launch, trial

OBJECTIVE = "output_throughput"
ROUNDS = 5


def night(*values: float) -> list[TrialRecord]:
    return [trial(number, [value], m=number) for number, value in enumerate(values)]


def confirmed(trials: list[TrialRecord], rounds: int, **levels: float) -> list[TrialRecord]:
    """The trials after so many rounds as the sweep chooses them, each at its level (`t0`), with 1 % noise."""
    rng, trials, hour = random.Random(4), list(trials), 2.0
    for _ in range(rounds * len(trials)):
        pending = confirmations(trials[0], trials[1:], rounds, OBJECTIVE)
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
    return confirmations(trials[0], trials[1:], ROUNDS, OBJECTIVE)


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
    for tenths in range(-40, 40):
        t = tenths / 10
        beyond = (stats.norm.isf(0.05) - t / math.sqrt(share)) / math.sqrt(1 / share - 1)
        assert is_futile(Ratio(1.0, t=t), share) == (stats.norm.sf(beyond) < FUTILE), t


def test_a_close_one_has_all_its_launches() -> None:
    trials = confirmed(night(50, 51), ROUNDS, t0=50, t1=50.9)
    assert counts(trials) == [5, 5]
    assert pending(trials) == []


def test_two_fast_ones_that_are_close_go_on_to_be_told_apart() -> None:
    trials = confirmed(night(50, 65, 65), 2, t0=50, t1=65, t2=65)
    assert set(pending(trials)) == {0, 1, 2}


def test_a_larger_number_of_rounds_goes_on() -> None:
    trials = confirmed(night(50, 51), 2, t0=50, t1=50.6)
    assert confirmations(trials[0], trials[1:], 2, OBJECTIVE) == []
    assert confirmations(trials[0], trials[1:], 3, OBJECTIVE) == [0, 1]


def steady(drift_per_hour: float, *, jump: float = 1.0) -> list[TrialRecord]:
    """Six launches of the baseline in the search, then three rounds; the finalist is 5 % faster."""
    rng = random.Random(2)
    base, rival = trial(0), trial(1, m=1)

    def speed(hour: float) -> float:
        return 50 * (1 + drift_per_hour * hour) * (1 + rng.gauss(0, 0.002))

    for hour in range(6):
        purpose = Purpose.CONTROL if hour else Purpose.BASELINE
        base = with_launch(base, speed(hour), hour, purpose)
    rival = with_launch(rival, speed(5.5), 5.5, Purpose.SEARCH)
    for when in (6.0, 6.2, 6.4):
        base = with_launch(base, speed(when) * jump, when)
        rival = with_launch(rival, 1.05 * speed(when + 0.1) * jump, when + 0.1)
    return [base, rival]


DAY = datetime.timedelta(hours=24)


def in_order(record: TrialRecord) -> tuple[LaunchRecord, ...]:
    return tuple(sorted(record.launches, key=lambda made: made.started_at))


def contest(trials: list[TrialRecord]) -> tuple[TrialRecord, list[TrialRecord]]:
    return trials[0], trials[1:]


def test_earlier_launches_of_the_baseline_count_with_a_steady_drift_taken_out() -> None:
    for drift in (0.0, -0.02, 0.02):
        base, rival = steady(drift)
        found = compare(base, [rival], OBJECTIVE)
        assert found is not None
        assert found.num_earlier == 6
        assert found.ratios[1].value == pytest.approx(1.05, rel=0.005)


def test_they_do_not_count_when_the_host_has_changed_its_speed_at_once() -> None:
    base, rival = steady(0.0, jump=0.9)
    found = compare(base, [rival], OBJECTIVE)
    assert found is not None
    assert found.num_earlier == 0
    assert found.ratios[1].value == pytest.approx(1.05, rel=0.005)
    assert found.baseline_value == pytest.approx(45, rel=0.005)


def test_only_the_last_six_of_them_count() -> None:
    base, rival = steady(0.0)
    long_ago = with_launch(base, 70.0, -3.0, Purpose.CONTROL)
    found = compare(long_ago.model_copy(update={"launches": in_order(long_ago)}), [rival], OBJECTIVE)
    assert found is not None
    assert found.num_earlier == 6
    assert found.baseline_value == pytest.approx(50, rel=0.005)


def test_two_of_them_are_too_few() -> None:
    base, rival = steady(0.0)
    few = base.model_copy(update={"launches": base.launches[4:]})
    found = compare(few, [rival], OBJECTIVE)
    assert found is not None
    assert found.num_earlier == 0


def test_those_of_the_day_before_do_not_count() -> None:
    base, rival = steady(0.0)
    old = tuple(
        x if x.purpose is Purpose.CONFIRM else x.model_copy(update={"started_at": x.started_at - DAY})
        for x in base.launches
    )
    found = compare(base.model_copy(update={"launches": old}), [rival], OBJECTIVE)
    assert found is not None
    assert found.num_earlier == 0


def test_where_they_do_not_fit_a_gain_must_be_surer() -> None:
    """A jump of the host: the fresh launches alone decide, at half the error, as if nothing had been before."""
    jumped = compare(*contest(steady(0.0, jump=0.9)), OBJECTIVE)
    base, rival = steady(0.0, jump=0.9)
    alone = compare(base.model_copy(update={"launches": base.launches[6:]}), [rival], OBJECTIVE)
    assert jumped is not None
    assert alone is not None
    assert jumped.ratios[1].value == alone.ratios[1].value
    assert jumped.ratios[1].low is not None
    assert alone.ratios[1].low is not None
    assert jumped.ratios[1].low < alone.ratios[1].low


def test_the_finalist_that_led_is_judged_less_strictly_than_the_other() -> None:
    """Both did the same in the confirmation; one was chosen as the best of those launched several times."""
    made = [52.0, 53.0, 52.5]
    base = trial(0, [50], confirm=[50.0, 50.5, 51.0])
    leader, other = trial(1, [56, 56], confirm=made, m=1), trial(2, [55, 55], confirm=made, m=2)
    found = compare(base, [leader, other], OBJECTIVE)
    assert found is not None
    assert found.ratios[1].value == found.ratios[2].value
    assert (found.ratios[1].low or 0) > (found.ratios[2].low or 0)
    single = compare(base, [trial(1, [56], confirm=made, m=1), trial(2, [55], confirm=made, m=2)], OBJECTIVE)
    assert single is not None
    assert single.ratios[1].low == pytest.approx(single.ratios[2].low)


def test_what_starts_differ_by_is_learnt_from_all_that_were_launched_again() -> None:
    trials = [trial(0, [50], confirm=[50.0, 50.5]), trial(1, [52, 52.4], m=1), trial(2, [51], m=2)]
    assert repeated(trials, OBJECTIVE) == ((52, 52.4),)
    rival = trial(1, [52, 52.4], confirm=[51.5, 52.0], m=1)
    unsure, sure = (
        compare(trials[0], [rival], OBJECTIVE, others) for others in ((), ((52, 52.4), (40, 40.3), (60, 60.5)))
    )
    assert unsure is not None
    assert sure is not None
    assert (sure.ratios[1].low or 0) > (unsure.ratios[1].low or 0)


def test_a_drift_is_no_spread() -> None:
    """The host became 20 % slower: what was launched early and late did not vary by that."""
    base = trial(0, [50.0])
    for hour, value in ((2, 47.5), (4, 45.0), (6, 42.5), (8, 40.0)):
        base = with_launch(base, value, hour, Purpose.CONTROL)
    rival = with_launch(trial(1, [60.0], m=1), 48.0, 8, Purpose.RECHECK)
    early, late = repeated([base, rival], OBJECTIVE)[0]
    assert late == pytest.approx(early, rel=0.01)


def test_they_do_not_count_from_another_version_of_the_server() -> None:
    base, rival = steady(0.0)
    old = tuple(
        x if x.purpose is Purpose.CONFIRM else x.model_copy(update={"provenance": {"engine": "old"}})
        for x in base.launches
    )
    found = compare(base.model_copy(update={"launches": old}), [rival], OBJECTIVE)
    assert found is not None
    assert found.num_earlier == 0


def test_a_single_fresh_launch_says_nothing() -> None:
    base, rival = trial(0, [50], confirm=[50]), trial(1, [60], confirm=[60], m=1)
    assert compare(base, [rival], OBJECTIVE) is None
