"""Every key of the configuration is explained where people look for it, and nothing else is."""

from __future__ import annotations

from sweeper.schemas.comments import commented, head
from sweeper.schemas.keys import in_words, keys, said_of_keys


def test_every_key_has_a_meaning() -> None:
    without = [key.path for key in keys().values() if not key.meaning]
    assert without == [], "say it in a comment behind the key, in conf/"


def test_no_meaning_runs_on_into_the_next_one() -> None:
    assert [
        key.path for key in keys().values() if key.meaning.startswith("...") or key.meaning.endswith(" ...")
    ] == []


def test_the_files_explain_no_key_that_does_not_exist() -> None:
    parts = {key.partition(".")[0] for key in keys()}
    unknown = [path for path in said_of_keys() if path not in keys() and path not in parts]
    assert [path for path in unknown if not path.startswith("engine.flags.")] == []


def test_units_types_and_defaults_are_those_of_the_schema() -> None:
    start = keys()["limits.start_s"]
    assert (start.unit, start.default, in_words(start.schema)) == ("s", 120, "number, above 0, at most 10,000,000")
    assert keys()["host.ssh.destination"].required
    assert in_words(keys()["host.replace_server"].schema) == "whole number, above 0, below 65,536 or null"


def test_a_comment_ends_where_another_column_begins() -> None:
    lines = ("# about the file", "# @package x", 'a: "#1"  # first', "         # and more", "  # not this", "b:")
    text = "\n".join([*lines, "  c: 1  # third"])
    found = commented(text, "x")
    assert head(text) == "about the file"
    assert (found["x.a"].value, found["x.a"].comment) == ("#1", "first and more")
    assert found["x.b.c"].comment == "third"
