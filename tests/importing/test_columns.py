"""What columns mean, and which values are numbers."""

from __future__ import annotations

import pytest

from sweeper.errors import ConfigError
from sweeper.importing.columns import BY_NAME, ROLES, assigned, flag, number, yes
from sweeper.metrics import METRICS


def test_columns_are_known_by_the_names_that_people_give_them() -> None:
    roles, ignored = assigned(["Tok/s", "accept len", "K", "bs", "mood"], {}, ())
    assert roles == {"throughput": "Tok/s", "accept_length": "accept len", "num_steps": "K", "concurrency": "bs"}
    assert ignored == ["mood"]


def test_what_is_asked_for_comes_before_names() -> None:
    roles, ignored = assigned(["tok_s", "total"], {"throughput": "total"}, ())
    assert roles == {"throughput": "total"}
    assert ignored == ["tok_s"]


def test_a_column_that_is_kept_as_a_flag_has_no_role() -> None:
    roles, ignored = assigned(["throughput", "method"], {}, ("method",))
    assert roles == {"throughput": "throughput"}
    assert ignored == []


def test_unknown_roles_and_columns_are_all_told() -> None:
    with pytest.raises(ConfigError) as caught:
        assigned(["a"], {"speed": "a", "throughput": "b"}, ("c",))
    assert len(caught.value.mistakes) == 3
    assert "'speed' is no role" in caught.value.mistakes[0]
    assert caught.value.mistakes[0].endswith("(did you mean throughput?)")
    assert "no column 'b'; the file has a" in caught.value.mistakes[1]


@pytest.mark.parametrize(
    ("cell", "value"),
    [("90", 90.0), ("1,071.3", 1071.3), (" 90 tok/s ", 90.0), (".5", 0.5), ("1e3", 1000.0), (7, 7.0)],
)
def test_numbers_are_read(cell: object, value: float) -> None:
    found = number(cell)
    assert found is not None
    assert found.value == value
    assert not found.about


@pytest.mark.parametrize("cell", ["2.0-2.4", "2.0–2.4", "2.0 to 2.4", "2.0..2.4"])
def test_a_range_has_two_ends_and_no_value(cell: str) -> None:
    found = number(cell)
    assert found is not None
    assert (found.value, found.low, found.high) == (None, 2.0, 2.4)


def test_an_approximate_number_is_marked() -> None:
    found = number("~1.9")
    assert found is not None
    assert (found.value, found.about) == (1.9, True)


@pytest.mark.parametrize("cell", ["", "-", "n/a", "NaN", "null"])
def test_an_empty_cell_is_absent_and_never_0(cell: str) -> None:
    assert number(cell) is None


@pytest.mark.parametrize(
    "cell", ["fast", "12 ms", "90%", "2.4-2.0", "1,07", float("inf"), 10**400, True, "1.2.3", "-5"]
)
def test_what_is_no_number_is_refused(cell: object) -> None:
    with pytest.raises(ValueError, match=r"no number|no range"):
        number(cell)


def test_flags_keep_their_kind() -> None:
    assert [flag(c) for c in ("3", "0.5", "true", "False", "fa3", "", "n/a", 3.0)] == [
        3, 0.5, True, False, "fa3", None, None, 3,
    ]  # fmt: skip


def test_yes_and_no_are_told_apart_from_everything_else() -> None:
    assert [yes(c) for c in ("on", "Off", "1", "0", "", True)] == [True, False, True, False, None, True]
    with pytest.raises(ValueError, match="neither yes nor no"):
        yes("perhaps")


def test_every_role_that_holds_a_number_holds_a_metric() -> None:
    assert {role.metric for role in ROLES if role.metric} <= METRICS.keys()
    aliases = [alias for role in ROLES for alias in (role.name, *role.also)]
    assert len(aliases) == len(set(aliases))
    assert BY_NAME["ttft_s"].factor == 1000
