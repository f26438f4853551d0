"""Markup: whatever a server says stays text."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from analysis.blocks import Section, Table
from analysis.markup import (
    MISSING,
    Markdown,
    bold,
    duration,
    fenced,
    inline,
    listed,
    number,
    shell_words,
    trials,
)
from analysis.page.markdown import section_lines
from sweeper.text import plain

READER = MarkdownIt("gfm-like", {"linkify": False})
"""What MLflow's page and GitHub do with Markdown, near enough: tables, strikethrough, HTML let through."""

HOSTILE = [
    "<script>alert(1)</script>",
    "a | b | c",
    "a \\| b \\\\| c",
    "line\nanother\r\n\n# heading",
    "`code` ``more`` ```\nfence\n```",
    "![pixel](http://evil/x.png) [click](javascript:alert)",
    "**bold** __bold__ *it* _it_ ~~gone~~ $x$",
    "&lt;b&gt; &#60;i>",
    "<!-- open comment",
    "<https://evil>",
    "  leading and trailing  ",
]


def _page(table: Table) -> str:
    return "\n".join(section_lines(Section("Title", [table])))


def _tokens(text: str) -> list[Token]:
    return [t for token in READER.parse(text) for t in (token, *(token.children or []))]


def _cells(text: str) -> list[str]:
    tokens = _tokens(text)
    found = [tokens[i + 1] for i, token in enumerate(tokens) if token.type == "td_open"]
    return ["".join(child.content for child in token.children or []) for token in found]


@pytest.mark.parametrize("text", HOSTILE)
def test_a_cell_shows_hostile_text_as_it_is(text: str) -> None:
    page = _page(Table(Markdown("c"), {"a": "l", "b": "r"}, [[inline(text), Markdown("next")]]))
    assert _cells(page) == [" ".join(text.split()), "next"]
    assert {t.type for t in _tokens(page)}.isdisjoint(
        {"html_inline", "html_block", "link_open", "image", "em_open"}
    )


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=200))
def test_no_text_can_leave_its_cell(text: str) -> None:
    page = _page(Table(Markdown("c"), {"a": "l", "b": "l"}, [[inline(text), Markdown("next")]]))
    assert _cells(page) in ([plain(text), "next"], [MISSING, "next"])


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text(max_size=80), max_size=6))
def test_no_text_can_leave_its_fence(lines: list[str]) -> None:
    page = "\n".join([*fenced(lines), "", "after"])
    kinds = [token.type for token in READER.parse(page)]
    assert kinds == ["fence", "paragraph_open", "inline", "paragraph_close"]


def test_triple_backticks_stay_inside_the_fence() -> None:
    lines = fenced(["before", "```", "<b>", "`````"])
    assert lines[0] == "``````text"
    assert lines[-1] == "``````"


def test_terminal_codes_are_stripped() -> None:
    text = "\x1b[31mred\x1b[0m \x1b]0;title\x07shown \x9b1mbold \x1b(B\x00\x08ok\u202e"
    assert plain(text) == "red shown bold ok"
    assert fenced([text])[1] == "red shown bold ok"


def test_an_unfinished_title_code_hides_nothing() -> None:
    assert "the cause" in plain("\x1b]0;the cause")


def test_long_text_is_cut_where_one_can_see_it() -> None:
    assert plain("x" * 1000, 10) == "xxxxxxxxx…"
    assert len(fenced(["y" * 10_000])[1]) == 300


def test_names_of_flags_stay_readable_in_the_raw_file() -> None:
    assert inline("spec_ngram_simple_size_n=3 size=4") == "spec_ngram_simple_size_n=3 size=4"
    assert inline("_private_ x") == "&#95;private&#95; x"


def test_what_was_not_measured_is_a_dash_and_never_zero() -> None:
    assert number("ttft_ms", None) == MISSING
    assert number("ttft_ms", None, unit=True) == MISSING
    assert duration(None) == MISSING
    assert inline("") == MISSING
    assert bold(MISSING) == MISSING


def test_numbers_have_their_metrics_digits_and_unit() -> None:
    assert number("tpot_ms", 19.2355, unit=True) == "19.24 ms"
    assert number("output_throughput", 1234.56, unit=True) == "1,234.6 tok/s"
    assert number("accept_rate", 0.71234, unit=True) == "0.712"


@pytest.mark.parametrize(("seconds", "text"), [(3.14, "3.1 s"), (125, "2 min 05 s"), (14_640, "4 h 04 min")])
def test_durations_read_as_people_say_them(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_of_many_numbers_the_first_are_listed() -> None:
    assert listed(range(25)).endswith("18, 19 and 5 more")
    assert (trials([3]), trials([3, 4])) == ("trial 3", "trials 3, 4")


def test_a_command_survives_the_shell() -> None:
    argv = ("/opt/my server", "--model", "it's $HOME; rm *", "--flag", "-x=`id`", "a\\")
    lines = shell_words(argv, {"B": "two words", "A": "1"})
    joined = "".join(line.removesuffix("\\") for line in lines)
    assert shlex.split(joined) == ["env", "A=1", "B=two words", *argv]
    assert lines[1] == "  '/opt/my server' \\"


def test_a_command_spells_out_control_characters() -> None:
    assert shell_words(("serve", "--stop", "a\n'b\\"), {})[1] == "  --stop $'a\\x0a\\x27b\\x5c'"
