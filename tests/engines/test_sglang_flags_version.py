"""SGLang's versions: found in what a command prints, ordered, and refused when too old."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeper.engines.sglang.version import parse_version, version_notice, version_of


def test_versions_are_ordered_as_releases_are() -> None:
    texts = [
        "0.5.9",
        "0.5.10.dev3+gabc",
        "0.5.10rc0",
        "0.5.10",
        "0.5.10.post1",
        "0.5.11",
        "0.5.15rc0",
        "0.5.23",
        "0.6.0",
        "1.0.0",
    ]
    versions = [version_of(text) for text in texts]
    assert versions == sorted(versions)
    assert len(set(versions)) == len(texts)


@pytest.mark.parametrize("text", ["0.5.12.dev123+gabc", "0.5.12rc1", "0.5.12", "0.5.12.post1"])
def test_preview_follows_the_rules_of_its_release(text: str) -> None:
    assert version_of(text).since(0, 5, 12)
    assert not version_of(text).since(0, 5, 13)


@pytest.mark.parametrize(
    ("output", "version"),
    [
        ("0.5.10.post1\n", "0.5.10.post1"),
        ("some warning about torch 2.9.1\n0.5.23\n", "0.5.23"),
        ("0.5.15rc0\r\n", "0.5.15rc0"),
        ("sglang 0.5.12.dev123+g1a2b3c4\n", "0.5.12.dev123+g1a2b3c4"),
        ("v0.6.0\n", "0.6.0"),
    ],
)
def test_version_is_found_in_what_a_command_prints(output: str, version: str) -> None:
    assert parse_version(output) == version


@pytest.mark.parametrize("output", ["", "ModuleNotFoundError: No module named 'sglang'", "2.9", "x 0.5.10 y"])
def test_output_without_a_version_is_told(output: str) -> None:
    with pytest.raises(ValueError) as told:
        parse_version(output)
    assert "no line with a version" in str(told.value)


@pytest.mark.parametrize("output", ["0.4.6.post5", "0.5.7", "0.5.3.post3"])
def test_version_older_than_the_rules_is_refused(output: str) -> None:
    with pytest.raises(ValueError) as told:
        parse_version(output)
    assert "from 0.5.8 on" in str(told.value)


def test_version_without_rules_of_its_own_is_noticed() -> None:
    assert "newer than the rules" in version_notice("0.5.24")
    assert "preview" in version_notice("0.5.23rc1")
    assert "unknown" in version_notice("main")
    assert version_notice("0.5.10.post1") == ""
    assert version_notice("0.5.23") == ""


@given(st.text(max_size=200))
def test_any_text_is_a_version_or_told(text: str) -> None:
    version_of(text)
    version_notice(text)
    try:
        parse_version(text)
    except ValueError:
        return
