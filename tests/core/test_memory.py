"""What is held once says the same as what is held by itself."""

from __future__ import annotations

import json
from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from sweeper.records import LaunchRecord
from sweeper.spec import FlagValue
from sweeper.storing.lean_storage import _value
from sweeper.storing.memory import Alike, alike, sharing
from tests.fakes import launch

VALUES = st.one_of(st.sampled_from([0, 1, 2, True, False, 0.0, -0.0, 1.0, "1", "", "x"]), st.floats(-2, 2))
SETTINGS = st.dictionaries(st.sampled_from([f"flag{n}" for n in range(8)]), VALUES)


def written(settings: Mapping[str, FlagValue]) -> str:
    return json.dumps({name: settings[name] for name in sorted(settings)})


@given(SETTINGS, SETTINGS, SETTINGS)
def test_settings_held_by_how_they_differ_are_the_same_settings(
    first: dict[str, FlagValue], second: dict[str, FlagValue], third: dict[str, FlagValue]
) -> None:
    known: Mapping[str, FlagValue] = first
    for ours in (second, {**first, "flag0": 1}, third, {**second, "flag1": True}):
        known = alike(ours, known)
        assert (known, len(known), written(known)) == (ours, len(ours), written(ours))
        assert all(name in known for name in ours)
        assert known.get("flag9") is None


def test_little_that_differs_is_held_alone() -> None:
    most: dict[str, FlagValue] = {f"flag{n}": n for n in range(40)}
    ours = {**most, "flag3": True, "flag4": 4.0, "new": "x"}
    del ours["flag5"]
    held = alike(ours, most)
    assert isinstance(held, Alike)
    assert held.most is most
    assert alike({**ours, "flag6": 0}, held).most is most  # type: ignore[attr-defined]
    assert alike({"a": 1}, held) == {"a": 1}


def test_a_record_that_shares_is_written_as_it_was() -> None:
    ours, other = (
        launch(value).model_copy(
            update={
                "effective": {**{f"flag{n}": n for n in range(20)}, "rate": value, "on": value > 50},
                "outputs": {"p#0": "16:00000000", "p#1": f"{value:.0f}:11111111"},
            }
        )
        for value in (51.0, 50.0)
    )
    held = sharing(ours, other)
    assert held == ours
    assert held.model_dump(mode="json") == ours.model_dump(mode="json")
    assert LaunchRecord.model_validate_json(held.model_dump_json()) == ours
    assert held.model_copy(update={"host": "b"}).model_dump() == {**ours.model_dump(), "host": "b"}
    assert held.provenance is other.provenance


def test_an_attribute_is_read_as_json_reads_it() -> None:
    for value in ({"a": [1, 1.5, None, True, "x" * 100]}, "\ud800", 10**30, -0.0, float("inf"), {}):
        text = json.dumps(value)
        assert (_value(text), repr(_value(text))) == (json.loads(text), repr(json.loads(text)))
