"""What changed between two starts of a study is told in the words in which a space is written."""

from __future__ import annotations

import pytest

from sweeper.config import load
from sweeper.engines.base import HostFacts
from sweeper.errors import StudyMismatch
from sweeper.fingerprint import fingerprint, require_same

pytestmark = pytest.mark.compose


def settings(*overrides: str) -> dict[str, str]:
    """What a study with these overrides must keep."""
    return fingerprint(load(overrides).spec, HostFacts())


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("choice(1,2,on)", "choice(1, 2, on)"),
        ("choice('4',4.5,true,false,'true','a b','')", "choice('4', 4.5, true, false, 'true', 'a b', '')"),
        ("range(1,8)", "range(1, 8)"),
        ("range(0,10,step=2)", "range(0, 9, step=2)"),
        ("int(interval(1,8))", "range(1, 9)"),
        ("interval(0.123456789,1)", "interval(0.123456789, 1.0)"),
        ("tag(log,interval(0.5,1))", "tag(log, interval(0.5, 1.0))"),
    ],
)
def test_a_parameter_is_told_as_it_could_be_written(written: str, told: str) -> None:
    assert settings(f"space.some_flag={written}")["space.some_flag"] == told


def test_text_that_looks_like_a_number_differs_from_the_number() -> None:
    one, other = (settings(f"space.some_flag={values}") for values in ("choice('4',5)", "choice(4,5)"))
    assert one["space.some_flag"] != other["space.some_flag"]


def test_a_mismatch_names_values_and_condition_in_the_users_own_syntax() -> None:
    condition = "space.when.spec_ngram_simple_size_n.spec_type=[ngram-simple,ngram-map-k]"
    with pytest.raises(StudyMismatch) as caught:
        require_same("mine", settings(), settings("space.spec_ngram_simple_size_n=range(2,4)", condition))
    assert (
        "  space.spec_ngram_simple_size_n: choice(2, 3, 4) when spec_type is ngram-simple then, "
        "range(2, 4) when spec_type is ngram-simple or ngram-map-k now"
    ) in str(caught.value)
