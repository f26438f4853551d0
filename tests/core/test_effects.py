"""What single parameters do, and which work together, found in values whose causes are known."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping

import pytest

from sweeper.statistics.effects import NOT_SET, Effects, effects_of
from sweeper.statistics.importances import importances

Settings = list[dict[str, bool | int | float | str]]


def made(
    num: int, factor: Callable[[Mapping[str, object]], float], seed: int = 1, noise: float = 0.01
) -> tuple[Settings, list[float]]:
    """Random settings of three parameters, and values of 80 times `factor`, times noise."""
    chance = random.Random(seed)
    settings: Settings = [
        {"steps": chance.choice([1, 2, 3, 5]), "graph": chance.random() < 0.5, "backend": chance.choice("abc")}
        for _ in range(num)
    ]
    return settings, [80 * factor(s) * math.exp(chance.gauss(0, noise)) for s in settings]


def pct(found: Effects, parameter: str, level: str) -> tuple[float, float, float]:
    each = next(e for e in found.effects if (e.parameter, e.level) == (parameter, level))
    assert each.pct is not None
    assert each.low is not None
    assert each.high is not None
    return each.pct, each.low, each.high


def test_an_effect_is_found_with_an_interval_that_holds_it() -> None:
    settings, values = made(60, lambda s: 1.3 if s["graph"] else 1.0)
    found = effects_of(settings, values)
    reference = next(e for e in found.effects if e.parameter == "graph" and e.reference)
    other = "false" if reference.level == "true" else "true"
    truth = 30.0 if other == "true" else 100 * (1 / 1.3 - 1)
    value, low, high = pct(found, "graph", other)
    assert low < truth < high
    assert abs(value - truth) < 2
    assert found.left_pct == pytest.approx(1.0, abs=0.3)


def test_what_does_nothing_is_mostly_not_called_an_effect() -> None:
    wrong = total = 0
    for seed in range(40):
        found = effects_of(*made(40, lambda _: 1.0, seed))
        ends = [(e.low, e.high) for e in found.effects if e.low is not None and e.high is not None]
        total += len(ends)
        wrong += sum(low > 0 or high < 0 for low, high in ends)
    assert wrong / total < 0.16  # nine of ten intervals hold the truth


def test_parameters_that_were_always_changed_together_are_not_told_apart() -> None:
    settings, values = made(60, lambda s: 1.2 if s["graph"] else 1.0)
    twins = [{**s, "twin": "on" if s["graph"] else "off"} for s in settings]
    found = effects_of(twins, values)
    assert [e.pct for e in found.effects if e.parameter in ("graph", "twin")] == [None] * 4
    assert any(e.pct is not None for e in found.effects if e.parameter == "steps")


def test_a_pair_that_works_together_is_found_and_described() -> None:
    settings, values = made(120, lambda s: 1.15 if s["steps"] == 5 and s["backend"] == "a" else 1.0)
    found = effects_of(settings, values)
    best = found.interactions[0]
    assert set(best.parameters) == {"steps", "backend"}
    assert set(best.levels) == {"5", "a"}
    assert best.p < 0.001
    assert best.pct > 2


def test_pairs_without_effect_are_rarely_named() -> None:
    named = sum(bool(effects_of(*made(80, lambda _: 1.0, seed)).interactions) for seed in range(60))
    assert named <= 8  # 5 % of them are expected to be


def test_with_few_trials_only_the_counts_are_given() -> None:
    found = effects_of(*made(6, lambda _: 1.0))
    assert found.left_pct is None
    assert {e.pct for e in found.effects} == {None}
    assert sum(e.num_trials for e in found.effects if e.parameter == "graph") == 6


def test_a_parameter_that_some_trials_lack_has_a_level_for_that() -> None:
    settings, values = made(40, lambda s: 1.1 if s["steps"] == 1 else 1.0)
    for each in settings[::2]:
        each["extra"] = 4
    found = effects_of(settings, values)
    assert {e.level for e in found.effects if e.parameter == "extra"} == {NOT_SET, "4"}


def test_many_numbers_become_ranges_and_many_words_become_others() -> None:
    settings, values = made(60, lambda _: 1.0)
    for at, each in enumerate(settings):
        each["mem"] = 0.5 + at / 200
        each["word"] = f"w{at % 15}"
    found = effects_of(settings, values)
    assert len([e for e in found.effects if e.parameter == "mem"]) == 4
    assert any(e.level == "others" for e in found.effects if e.parameter == "word")


def test_nothing_varied_gives_nothing() -> None:
    assert effects_of([{"a": 1}] * 5, [1.0] * 5).effects == ()
    assert effects_of([], []) == Effects((), (), 0)


def test_importances_name_what_the_best_have_in_common() -> None:
    settings, values = made(200, lambda s: 1.3 if s["backend"] == "b" else 1.0)
    shares = importances(settings, values)
    assert next(iter(shares)) == "backend"
    assert shares["backend"] > 0.6
    assert sum(shares.values()) == pytest.approx(1.0)


def test_importances_say_nothing_of_too_few_or_equal_trials() -> None:
    settings, values = made(9, lambda _: 1.0)
    assert importances(settings, values) == {}
    assert importances([{"a": n} for n in range(20)], [5.0] * 20) == {}
    assert importances([{"a": 1}] * 20, list(map(float, range(1, 21)))) == {}


def test_importances_take_parameters_that_some_trials_lack() -> None:
    settings, values = made(60, lambda s: 1.3 if s.get("backend") == "b" else 1.0)
    for each in settings[::3]:
        del each["steps"]
    assert "backend" in importances(settings, values)
