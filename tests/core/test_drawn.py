"""What is drawn from a trial is drawn once while its launches stay as they are: counted, not timed."""

from __future__ import annotations

import gc
from collections.abc import Sequence

import pytest

from sweeper.deciding.durations import Taken
from sweeper.deciding.per_trial import PerTrial
from sweeper.deciding.values import mean_of, values_of
from sweeper.garbage import no_search_for_garbage, stays
from sweeper.records import LaunchRecord, TrialRecord
from tests.fakes import launch, trial

OBJECTIVE = "output_throughput"


def night(count: int) -> list[TrialRecord]:
    return [trial(0, [50.0]), *(trial(n, [60.0 + n], n=n) for n in range(1, count))]


def again(one: TrialRecord, value: float) -> TrialRecord:
    launches = (*one.launches, launch(value, trial=one.number, number=len(one.launches)))
    return one.model_copy(update={"launches": launches})


def test_each_trial_is_drawn_from_once_and_again_when_it_was_launched_again() -> None:
    drawn: list[int] = []

    def draw(one: TrialRecord) -> int:
        drawn.append(one.number)
        return len(one.launches)

    each, trials = PerTrial(draw), night(5)
    assert each.of(trials) == each.of([*trials]) == [1] * 5
    trials[2] = again(trials[2], 70.0)
    assert each.of(trials) == [1, 1, 2, 1, 1]
    assert drawn == [0, 1, 2, 3, 4, 2]


def test_what_launches_take_is_asked_of_each_once() -> None:
    asked: list[int] = []

    def take(record: LaunchRecord) -> float:
        asked.append(record.trial_number)
        return 10.0 + record.trial_number

    taken, trials = Taken(take), night(6)
    first = taken.learned(trials, 900.0)
    trials.append(trial(6, [66.0], n=6))
    second = taken.learned(trials, 900.0)
    assert asked == list(range(7))
    assert second.by_kind == Taken(take).learned(trials, 900.0).by_kind != first.by_kind


def test_values_are_drawn_once_from_a_record_and_anew_from_its_copy() -> None:
    (one,) = night(1)
    known = values_of(one, OBJECTIVE)
    assert values_of(one, OBJECTIVE) is known
    assert [value.value for value in known] == [50.0]
    more = again(one, 52.0)
    assert [value.value for value in values_of(more, OBJECTIVE)] == [50.0, 52.0]
    assert (more.measured, one.measured) == (more.launches, one.launches)
    assert mean_of(more, OBJECTIVE) == more.mean(OBJECTIVE) == 51.0


def test_what_was_drawn_from_a_record_is_no_part_of_it() -> None:
    one, other = night(1)[0], night(1)[0]
    values_of(one, OBJECTIVE)
    assert one == other
    assert one.model_dump_json() == other.model_dump_json()
    assert TrialRecord.model_validate_json(one.model_dump_json()) == one


@pytest.mark.parametrize("purposes", [["estimated"], ["failed"], ["failed", "whole"]])
def test_the_mean_counts_what_the_record_itself_counts(purposes: Sequence[str]) -> None:
    made = {
        "estimated": launch(40.0).model_copy(update={"estimated": "hopeless"}),
        "failed": launch(None, number=1),
        "whole": launch(44.0, number=2),
    }
    one = night(1)[0].model_copy(update={"launches": tuple(made[name] for name in purposes)})
    assert mean_of(one, OBJECTIVE) == one.mean(OBJECTIVE)


@pytest.mark.parametrize("was_on", [True, False])
def test_no_garbage_is_looked_for_meanwhile_and_then_as_before(was_on: bool) -> None:
    try:
        if not was_on:
            gc.disable()
        with no_search_for_garbage():
            assert not gc.isenabled()
        assert gc.isenabled() is was_on
    finally:
        gc.enable()


def test_what_is_made_of_many_trials_is_not_searched_again() -> None:
    made = [[n] for n in range(5000)]
    before = gc.get_freeze_count()
    stays(999)
    assert gc.get_freeze_count() == before
    stays(1000)
    assert gc.get_freeze_count() - before >= len(made)
    gc.unfreeze()
