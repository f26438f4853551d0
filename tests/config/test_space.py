"""Conditions, grids and counts, on spaces written by hand and on random ones."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from functools import partial
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeper.config.conditions import BuiltSpace, build_space
from sweeper.space import (
    active,
    contains,
    describe,
    domain_values,
    grid,
    num_combinations,
    samples,
    to_config,
    walk,
)
from sweeper.spec import Choice, Domain, FlagValue, Interval, IntRange, Parameter, ServerConfig, SpaceSpec

KIND = Parameter(name="kind", domain=Choice(values=("a", "b")))
SIZE = Parameter(name="size", domain=IntRange(low=1, high=5, step=2), when={"kind": ("a",)})
HITS = Parameter(name="hits", domain=Choice(values=(1, 2)), when={"size": (3, 5)})
SPACE = SpaceSpec(parameters=(KIND, SIZE, HITS))


def names(parameters: tuple[Parameter, ...]) -> list[str]:
    return [parameter.name for parameter in parameters]


def _value_of(chosen: Mapping[str, FlagValue], parameter: Parameter) -> FlagValue:
    return chosen[parameter.name]


def built(source: Mapping[str, object], flags: Mapping[str, FlagValue] | None = None) -> BuiltSpace:
    return build_space(source, source, flags or {}, lambda text: text)


def test_only_parameters_whose_conditions_hold_are_active() -> None:
    assert names(active(SPACE.parameters, {"kind": "b"})) == ["kind"]
    assert names(active(SPACE.parameters, {"kind": "a"})) == ["kind", "size"]
    assert names(active(SPACE.parameters, {"kind": "a", "size": 3})) == ["kind", "size", "hits"]


def test_a_value_of_an_inactive_parameter_makes_nothing_active() -> None:
    assert names(active(SPACE.parameters, {"kind": "b", "size": 3})) == ["kind"]


def test_walking_asks_for_active_parameters_only() -> None:
    asked: list[str] = []

    def choose(parameter: Parameter) -> FlagValue:
        asked.append(parameter.name)
        return "a" if parameter.name == "kind" else 1

    assert walk(SPACE, choose) == {"kind": "a", "size": 1}
    assert asked == ["kind", "size"]


def test_the_grid_holds_every_combination_once() -> None:
    assert list(grid(SPACE)) == [
        {"kind": "a", "size": 1},
        {"kind": "a", "size": 3, "hits": 1},
        {"kind": "a", "size": 3, "hits": 2},
        {"kind": "a", "size": 5, "hits": 1},
        {"kind": "a", "size": 5, "hits": 2},
        {"kind": "b"},
    ]
    assert num_combinations(SPACE) == 6


def test_a_continuous_space_has_no_grid_and_no_count() -> None:
    space = SpaceSpec(parameters=(KIND, Parameter(name="p", domain=Interval(low=0, high=1))))
    assert num_combinations(space) is None
    with pytest.raises(ValueError, match="p is an interval"):
        grid(space)


def test_counting_a_huge_space_makes_no_list() -> None:
    wide = tuple(Parameter(name=f"p{i}", domain=IntRange(low=1, high=10**9)) for i in range(30))
    last = Parameter(name="last", domain=Choice(values=(1, 2, 3)), when={"p0": (7,), "p29": (8, 9)})
    assert num_combinations(SpaceSpec(parameters=(*wide, last))) == 10**270 + 2 * 2 * 10**252


def test_counting_forgets_what_no_later_condition_asks_for() -> None:
    pairs = [
        (
            Parameter(name=f"kind{i}", domain=Choice(values=(1, 2))),
            Parameter(name=f"size{i}", domain=Choice(values=(1, 2)), when={f"kind{i}": (1,)}),
        )
        for i in range(60)
    ]
    assert num_combinations(SpaceSpec(parameters=tuple(itertools.chain(*pairs)))) == 3**60


def test_false_leaves_a_flag_away_and_variables_go_to_the_environment() -> None:
    space = SpaceSpec(
        parameters=(
            Parameter(name="mlock", domain=Choice(values=(True, False))),
            Parameter(name="OMP_NUM_THREADS", domain=Choice(values=(1, 2)), is_env=True),
        )
    )
    base = ServerConfig(flags={"ctx_size": 8, "mlock": True}, env={"A": "b"})
    assert to_config(base, {"mlock": False, "OMP_NUM_THREADS": 2}, space) == ServerConfig(
        flags={"ctx_size": 8}, env={"A": "b", "OMP_NUM_THREADS": "2"}
    )
    assert to_config(base, {"mlock": True}, space) == base


def test_a_value_for_an_unknown_parameter_is_refused() -> None:
    with pytest.raises(ValueError, match="'nope' is not a parameter of the space; it has kind, size, hits"):
        to_config(ServerConfig(), {"nope": 1}, SPACE)


def test_domains_read_as_a_person_writes_them() -> None:
    assert describe(Choice(values=("a", 2))) == "a, 2"
    assert describe(IntRange(low=1, high=7)) == "1 to 7"
    assert describe(IntRange(low=1, high=7, step=2)) == "1 to 7, step 2"
    assert describe(Interval(low=0.001, high=1, log=True)) == "0.001 to 1 (log)"


def test_parameters_are_sorted_so_that_conditions_look_back() -> None:
    source = {"c": [1, 2], "b": [1, 2], "a": [1, 2], "d": [1], "when": {"c": {"a": 1}, "b": {"c": [1, 2]}}}
    space = built(source)
    assert space.mistakes == []
    assert list(space.parameters) == ["a", "c", "b", "d"]
    assert SpaceSpec(parameters=tuple(space.parameters.values()))


def test_a_circle_is_shown_as_one() -> None:
    source = {
        "x": [1],
        "a": [1],
        "b": [1],
        "c": [1],
        "when": {"x": {"a": 1}, "a": {"b": 1}, "b": {"c": 1}, "c": {"a": 1}},
    }
    assert built(source).mistakes == ["space.when: the conditions go in a circle: a needs b needs c needs a"]


def test_what_depends_on_something_left_away_is_left_away() -> None:
    source = {"a": [1, 2], "b": [1, 2], "c": [1, 2], "when": {"a": {"kind": "x"}, "b": {"a": 1}}}
    space = built(source, {"kind": "y"})
    assert list(space.parameters) == ["c"]
    assert space.asked == {"kind": ("x",)}


def test_a_condition_that_a_fixed_flag_fulfils_is_no_condition() -> None:
    space = built({"a": [1, 2], "when": {"a": {"kind": "x"}}}, {"kind": "x"})
    assert space.parameters["a"].when == {}


def test_the_space_decides_over_a_fixed_flag_of_the_same_name() -> None:
    space = built({"kind": ["x", "y"], "a": [1], "when": {"a": {"kind": "x"}}}, {"kind": "z"})
    assert space.parameters["a"].when == {"kind": ("x",)}


@pytest.mark.parametrize(
    "parameters",
    [
        (SIZE, KIND),
        (KIND, KIND),
        (Parameter(name="x", domain=Choice(values=(1,)), when={"x": (1,)}),),
    ],
)
def test_a_space_out_of_order_cannot_be_made(parameters: tuple[Parameter, ...]) -> None:
    with pytest.raises(ValueError, match=r"does not come before it|appears again"):
        SpaceSpec(parameters=parameters)


def _choice(values: list[int]) -> Domain:
    return Choice(values=tuple(values))


def _range(numbers: tuple[int, int]) -> Domain:
    low, step = numbers
    return IntRange(low=low, high=low + 2 * step, step=step)


DOMAINS = st.one_of(
    st.lists(st.integers(0, 5), min_size=1, max_size=3, unique=True).map(_choice),
    st.tuples(st.integers(-3, 3), st.integers(1, 3)).map(_range),
)


@st.composite
def spaces(draw: st.DrawFn) -> SpaceSpec:
    parameters: list[Parameter] = []
    for index in range(draw(st.integers(1, 5))):
        earlier = [parameter.name for parameter in parameters]
        others = draw(st.lists(st.sampled_from(earlier), max_size=2, unique=True)) if earlier else []
        when = {other: tuple(draw(st.sets(st.integers(-3, 5), min_size=1, max_size=3))) for other in others}
        parameters.append(Parameter(name=f"p{index}", domain=draw(DOMAINS), when=when))
    return SpaceSpec(parameters=tuple(parameters))


@settings(deadline=None)
@given(spaces())
def test_grid_count_and_conditions_agree(space: SpaceSpec) -> None:
    combinations = list(grid(space))
    assert num_combinations(space) == len(combinations)
    assert len({tuple(sorted(combination.items())) for combination in combinations}) == len(combinations)
    for chosen in combinations:
        assert names(active(space.parameters, chosen)) == list(chosen)
        assert walk(space, partial(_value_of, chosen)) == chosen


@settings(deadline=None)
@given(spaces())
def test_the_grid_is_what_conditions_leave_of_the_full_product(space: SpaceSpec) -> None:
    listed = [list(domain_values(parameter.domain) or ()) for parameter in space.parameters]
    full = [dict(zip(names(space.parameters), values, strict=True)) for values in itertools.product(*listed)]
    left = {
        tuple((parameter.name, values[parameter.name]) for parameter in active(space.parameters, values))
        for values in full
    }
    assert left == {tuple(combination.items()) for combination in grid(space)}


@settings(deadline=None)
@given(spaces(), st.randoms(use_true_random=False))
def test_a_walk_stays_within_the_bounds(space: SpaceSpec, random: Random) -> None:
    domains = {parameter.name: parameter.domain for parameter in space.parameters}
    chosen = walk(space, lambda parameter: random.choice(list(domain_values(parameter.domain) or ())))
    assert all(contains(domains[name], value) for name, value in chosen.items())
    assert chosen in list(grid(space))


@settings(deadline=None)
@given(spaces())
def test_a_space_survives_json(space: SpaceSpec) -> None:
    assert SpaceSpec.model_validate_json(space.model_dump_json()) == space


def test_samples_are_walks_of_the_space_and_the_same_each_time() -> None:
    kind = Parameter(name="kind", domain=Choice(values=("a", "b")))
    only_a = Parameter(name="only_a", domain=Interval(low=0.5, high=2.0), when={"kind": ("a",)})
    space = SpaceSpec(parameters=(kind, only_a, Parameter(name="n", domain=IntRange(low=1, high=9))))
    drawn = list(samples(space, 60))
    assert drawn == list(samples(space, 60))
    assert {values["kind"] for values in drawn} == {"a", "b"}
    assert {values["only_a"] for values in drawn if values["kind"] == "a"} == {0.5, 2.0}
    assert all("only_a" not in values for values in drawn if values["kind"] == "b")
