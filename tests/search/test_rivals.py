"""The methods in the comparison do what their names say, on a small server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from tests.bench.search import by_hand
from tests.bench.search.harness import run_on
from tests.bench.search.launching import Launches, as_params, fitted
from tests.bench.search.methods import METHODS, study_of
from tests.bench.search.results import Run, RunKey
from tests.bench.search.simulator import Surface
from tests.bench.search.simulator.configurations import (
    DRAFT_TOKENS,
    FLAGS,
    TOPK,
    Config,
    baseline,
    key,
    speculative,
)
from tests.bench.search.simulator.starts import Failure


def launched(server: Surface, name: str, count: int) -> list[Config]:
    """The servers that a method starts."""
    method = METHODS[name]
    study = study_of(method, server, seed=1)
    launches = Launches(server, 0, flat=method.flat, as_value=method.as_value)
    for _ in range(count):
        launches.next(study)
    return [fitted(trial.params) for trial in study.get_trials(deepcopy=False)]


def test_a_configuration_survives_being_enqueued() -> None:
    for config in (baseline(NCCL_PROTO="LL"), speculative("draft-1", 5, 1, 6), speculative("draft-0", 3, 4, 9)):
        assert fitted(as_params(config)) == config
        assert fitted(as_params(config, flat=True, drafter="draft-0")) == config


def test_more_tokens_than_a_tree_holds_are_cut() -> None:
    params = {**as_params(speculative("draft-0", 1, 2, 3)), DRAFT_TOKENS: 40}
    assert fitted(params)[DRAFT_TOKENS] == 3


@pytest.mark.parametrize("name", ["random", "grid", "tpe", "tpe_constraints", "one_factor"])
def test_rivals_begin_with_the_baseline_and_the_usual_chain(server: Surface, name: str) -> None:
    first, second, *_ = launched(server, name, 4)
    assert first == baseline()
    assert second == speculative("draft-0", 3, 1, 4)


@pytest.mark.parametrize(
    ("name", "count"), [("tpe_constraints", 16), ("one_factor", 30), ("grid", 30), ("ours", 8)]
)
def test_nothing_is_launched_twice(server: Surface, name: str, count: int) -> None:
    keys = [key(config) for config in launched(server, name, count)]
    assert len(set(keys)) == len(keys)


def test_the_grid_leaves_the_flags_alone(server: Surface) -> None:
    grid = launched(server, "grid", 30)
    assert all(config[name] == values[0] for config in grid for name, values in FLAGS.items())
    assert [(config[TOPK], config[DRAFT_TOKENS]) for config in grid[2:6]] == [(1, 2), (2, 2), (4, 2), (4, 4)]


def test_a_careful_person_changes_one_flag_at_a_time_and_keeps_what_helps(server: Surface) -> None:
    study = study_of(METHODS["one_factor"], server, seed=0)
    launches = Launches(server, 0)
    for _ in range(30):
        before = launches.named()
        launches.next(study)
        finished = [trial for trial in study.trials if trial.state.is_finished()]
        latest = fitted(finished[-1].params)
        if before and len(finished) > 2 + len(server.drafters) + len(by_hand.FIRST_SHAPES):
            assert sum(latest.get(name) != value for name, value in before.items()) <= 3
            assert sum(latest[name] != before[name] for name in FLAGS) <= 1


def test_a_failed_start_is_told_as_a_violated_constraint_or_as_a_low_value(server: Surface) -> None:
    class Failing:
        drafters = server.drafters

        def evaluate(self, config: Mapping[str, Any], repeat: int) -> object:
            outcome = server.evaluate(config, repeat)
            return outcome if config == baseline() else replace(outcome, failure=Failure.CRASH, throughputs=())

    for as_value in (False, True):
        study = study_of(METHODS["random"], server, seed=1)
        launches = Launches(Failing(), 0, as_value=as_value)  # type: ignore[arg-type]
        launches.next(study)
        launches.next(study)
        good, bad = study.trials
        assert good.value is not None
        if as_value:
            assert bad.value == pytest.approx(0.8 * good.value)
        else:
            assert bad.constraints["starts"] > 0 >= good.constraints["starts"]
        assert launches.named() == baseline()
        assert launches.num_failures == 1


@pytest.mark.parametrize("name", ["random", "ours"])
def test_the_same_run_is_the_same_again(server: Surface, name: str) -> None:
    def once() -> Run:
        return run_on(server, RunKey(name, 0.0, 2, 0), budget=5)

    first = once()
    assert first == once()
    assert len(first.shares) == 5
    assert all(0 <= share <= 1 for share in first.shares)
