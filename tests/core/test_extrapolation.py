"""Whether what is asked about lies beyond everything that was measured."""

from __future__ import annotations

import pytest

from sweeper.predicting.extrapolation import outside
from sweeper.records import TrialRecord, TrialState
from sweeper.spec import Choice, FlagValue, Parameter, ServerConfig


def trial(number: int, config: ServerConfig) -> TrialRecord:
    return TrialRecord(
        number=number, key=config.key(), state=TrialState.COMPLETE, requested=config, canonical=config, launches=()
    )


def told(name: str, value: FlagValue, measured: list[FlagValue | None], *, is_env: bool = False) -> list[str]:
    """What is said of a value where these were measured; None: the flag was left away."""

    def config(each: FlagValue | None) -> ServerConfig:
        if each is None:
            return ServerConfig()
        return ServerConfig(env={name: str(each)}) if is_env else ServerConfig(flags={name: each})

    parameter = Parameter(name=name, domain=Choice(values=(1, 2)), is_env=is_env)
    trials = [trial(number, config(each)) for number, each in enumerate(measured)]
    return [found.text for found in outside([parameter], [name], config(value), trials)]


@pytest.mark.parametrize("value", [2, 3, 8])
def test_numbers_between_measured_ones_are_not_outside(value: int) -> None:
    assert told("steps", value, [2, 8]) == []


@pytest.mark.parametrize("value", [1, 9, 64])
def test_numbers_beyond_are_told_with_the_range(value: int) -> None:
    assert told("steps", value, [8, 2, 4]) == [f"steps={value} lies outside of what was measured, 2 to 8"]


def test_one_measured_number_is_no_range() -> None:
    assert told("steps", 3, [2, 2]) == ["steps=3 lies outside of what was measured, 2"]


def test_a_word_is_outside_when_nobody_has_it() -> None:
    assert told("backend", "fa3", ["triton", "fa3"]) == []
    assert told("backend", "fa3", ["triton", "flashinfer"]) == [
        "backend=fa3 was never measured, only flashinfer, triton"
    ]


def test_a_flag_that_is_left_away_counts_as_false() -> None:
    assert told("graphs", True, [None]) == ["graphs=True was never measured, only False"]
    assert told("steps", 3, [None, 2, 4]) == []


def test_a_variable_that_no_trial_sets_is_told() -> None:
    assert told("PROTO", "LL", [None], is_env=True) == ["PROTO=LL: no measured trial has any value of it"]
    assert told("PROTO", "LL", ["LL"], is_env=True) == []


def test_only_what_was_asked_for_is_looked_at() -> None:
    parameter = Parameter(name="steps", domain=Choice(values=(1, 2)))
    assert outside([parameter], [], ServerConfig(flags={"steps": 9}), [trial(1, ServerConfig())]) == ()
