from __future__ import annotations

from sweeper.tracking.page import further_columns, searched_params
from sweeper.tracking.shelf import Shelf
from sweeper.tracking.view import owner_tags, run_view
from tests.fakes import launch, trial

OBJECTIVE = "output_throughput"
OWNER = owner_tags("night", "id")


def numbers(views: object) -> list[int]:
    return [view.trial.number for view in views]  # type: ignore[attr-defined]


def test_a_trial_is_due_when_it_has_changed_and_only_once() -> None:
    shelf, trials = Shelf(OWNER, OBJECTIVE), [trial(0, [50]), trial(1, [60], n=1)]
    shelf.put(trials)
    assert (numbers(shelf.changed()), numbers(shelf.unsure({}))) == ([], [0, 1])
    shelf.put([*trials, trial(2, [70], n=2)])
    assert (numbers(shelf.changed()), numbers(shelf.unsure({}))) == ([2], [])
    assert numbers(shelf.changed()) == []


def test_a_view_that_was_given_last_stays_due_until_the_next_is_asked_for() -> None:
    shelf = Shelf(OWNER, OBJECTIVE)
    shelf.put([trial(0, [50]), trial(1, [60], n=1)])
    next(shelf.unsure({}))  # and then time runs out
    assert numbers(shelf.unsure({})) == [0, 1]


def test_runs_that_are_missing_come_first() -> None:
    shelf = Shelf(OWNER, OBJECTIVE)
    shelf.put([trial(0, [50]), trial(1, [60], n=1), trial(2, [70], n=2)])
    assert numbers(shelf.unsure({0: "x", 1: "y"})) == [2, 0, 1]


def test_a_launch_of_the_baseline_makes_every_run_differ() -> None:
    shelf, others = Shelf(OWNER, OBJECTIVE), [trial(1, [60], n=1), trial(2, [70], n=2)]
    shelf.put([trial(0, [50]), *others])
    shown = {view.trial.number: view.digest for view in shelf.unsure({})}
    assert shelf.behind(shown, {}, "deleted") == 0
    shelf.put([trial(0, [50, 51]), *others])
    assert shelf.behind(shown, {}, "deleted") == 3
    assert numbers(shelf.changed()) == [0]
    views = list(shelf.unsure(shown))
    assert {view.trial.number for view in views if view.digest != shown[view.trial.number]} == {0, 1, 2}
    assert shelf.behind(shown, {}, "deleted") == 0


def test_the_telling_views_decide_the_columns_as_all_do() -> None:
    trials = [trial(0, [50]), *(trial(n, [60], n=n % 3, m=n % 2) for n in range(1, 10))]
    trials += [trial(n, [60], n=n % 3, k=1) for n in range(10, 20)]
    trials.append(
        trials[4].model_copy(update={"number": 20, "launches": (launch(1).model_copy(update={"doubts": ("x",)}),)})
    )
    shelf = Shelf(OWNER, OBJECTIVE)
    shelf.put(trials)
    every = [run_view(OWNER, each, trials[0], OBJECTIVE) for each in trials]
    assert len(shelf.telling) < 10
    assert searched_params(shelf.telling) == searched_params(every)
    assert further_columns(shelf.telling) == further_columns(every)


def test_a_telling_view_is_made_anew_only_when_its_trial_has_changed() -> None:
    shelf, trials = Shelf(OWNER, OBJECTIVE), [trial(0, [50]), trial(1, [60], n=1)]
    shelf.put(trials)
    first = shelf.telling
    shelf.put([trial(0, [50, 51]), trials[1]])
    changed = next(shelf.changed())
    assert shelf.telling[0] is changed is not first[0]
    assert shelf.telling[1] is first[1]


def test_what_is_kept_of_a_view_is_what_is_found_anew() -> None:
    shelf, one = Shelf(OWNER, OBJECTIVE), trial(1, [60], n=1)
    shelf.put([trial(0, [50]), one])
    list(shelf.unsure({}))
    again = trial(0, [50, 51])
    shelf.put([again, one])
    assert list(shelf.unsure({})) == [run_view(OWNER, each, again, OBJECTIVE) for each in (again, one)]
