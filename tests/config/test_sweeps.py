"""Hydra's sweep syntax, read and written."""

from __future__ import annotations

import contextlib

import pytest
from hydra.core.override_parser.types import Quote, QuotedString
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeper.config.compose import read_sweep
from sweeper.config.sweeps import domain_or_value
from sweeper.space import contains, domain_values
from sweeper.spec import Choice, Domain, FlagValue, Interval, IntRange


def read(text: str) -> Domain | FlagValue:
    return domain_or_value(text, read_sweep)


@pytest.mark.parametrize(
    ("text", "domain"),
    [
        ("choice(a, b)", Choice(values=("a", "b"))),
        ("choice(0,2.5,true,auto)", Choice(values=(0, 2.5, True, "auto"))),
        ("choice('a,b','8')", Choice(values=("a,b", "8"))),
        ("a,b", Choice(values=("a", "b"))),
        ("choice(4)", Choice(values=(4,))),
        ("range(1,8)", IntRange(low=1, high=7)),
        ("range(3)", IntRange(low=0, high=2)),
        ("range(1,2)", IntRange(low=1, high=1)),
        ("range(0,9,step=2)", IntRange(low=0, high=8, step=2)),
        ("range(0,8,step=3)", IntRange(low=0, high=6, step=3)),
        ("range(0.1,0.5,0.1)", Choice(values=(0.1, 0.2, 0.3, 0.4))),
        ("interval(0.8,0.95)", Interval(low=0.8, high=0.95)),
        ("interval(1,8)", Interval(low=1, high=8)),
        ("int(interval(1,8))", IntRange(low=1, high=8)),
        ("tag(log,interval(0.001,1))", Interval(low=0.001, high=1, log=True)),
        ("tag(log, interval(0.001, 1))", Interval(low=0.001, high=1, log=True)),
    ],
)
def test_a_sweep_is_read(text: str, domain: Domain) -> None:
    found = read(text)
    assert found == domain
    assert repr(found) == repr(domain)


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        ("ngram-simple", "ngram-simple"),
        ("/models/a b.gguf", "/models/a b.gguf"),
        ("~/x", "~/x"),
        ("8", "8"),
        ("'a,b'", "a,b"),
        (8, 8),
        (0.5, 0.5),
        (True, True),
        (False, False),
    ],
)
def test_anything_else_is_a_plain_value(raw: object, value: FlagValue) -> None:
    found = domain_or_value(raw, read_sweep)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize("raw", [None, {"a": 1}, b"x", float("nan"), float("inf"), [float("nan")], [[1]]])
def test_what_no_flag_can_hold_is_refused(raw: object) -> None:
    with pytest.raises(ValueError, match=r"value|number"):
        domain_or_value(raw, read_sweep)


def written(value: FlagValue) -> str:
    """The value as Hydra's syntax writes it."""
    return QuotedString(value, Quote.single).with_quotes() if isinstance(value, str) else str(value).lower()


printable = st.text(
    st.characters(min_codepoint=32, max_codepoint=0x2FF, exclude_categories=["Cc", "Cf"]), max_size=12
)
values = st.one_of(st.integers(-(10**9), 10**9), st.booleans(), printable)


@settings(deadline=None)
@given(st.lists(values, min_size=1, max_size=6, unique=True))
def test_a_choice_survives_writing_and_reading(listed: list[FlagValue]) -> None:
    found = read(f"choice({','.join(written(value) for value in listed)})")
    assert isinstance(found, Choice)
    assert list(found.values) == listed
    assert [type(value) for value in found.values] == [type(value) for value in listed]


@settings(deadline=None)
@given(st.integers(-50, 50), st.integers(1, 100), st.integers(1, 9))
def test_a_range_has_the_values_of_pythons_range(start: int, length: int, step: int) -> None:
    found = read(f"range({start},{start + length},step={step})")
    assert isinstance(found, IntRange)
    assert list(domain_values(found) or ()) == list(range(start, start + length, step))
    assert found.high < start + length


@settings(deadline=None)
@given(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6))
def test_an_interval_holds_its_ends_or_is_refused(low: float, high: float) -> None:
    if low < high:
        found = read(f"interval({low!r},{high!r})")
        assert isinstance(found, Interval)
        assert contains(found, low)
        assert contains(found, high)
        assert not contains(found, high + 1)
    else:
        with pytest.raises(ValueError, match="low < high"):
            read(f"interval({low!r},{high!r})")


@settings(deadline=None)
@given(
    st.text(max_size=40)
    | st.from_regex(r"(choice|range|interval|tag|int|sort|glob)\([-a-z0-9,.=()' ]*\)?", fullmatch=True)
)
def test_any_text_is_a_domain_a_value_or_a_value_error(text: str) -> None:
    with contextlib.suppress(ValueError):
        assert isinstance(read(text), Choice | IntRange | Interval | str)
