"""The page: the same as the Markdown, and nothing from outside becomes part of it."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markupsafe import Markup

from analysis.blocks import Block, Bullets, Code, Document, Figure, Folded, Paragraph, Section, Table
from analysis.markup import Markdown, inline
from analysis.page.html import html, plain_text, rich
from analysis.page.markdown import markdown
from analysis.reading import reading_of
from analysis.report import document
from sweeper.errors import FailureKind
from sweeper.records import TrialRecord, TrialState
from sweeper.text import plain
from tests.analysis.builders import failed, measured, new_night, ngram, plain_config, simplicity, trial, won_night
from tests.analysis.eventful import eventful_night
from tests.analysis.large import large_night, stored
from tests.analysis.studies import changed

HOSTILE = '"><script>x()</script><img src=x onerror=x()> **b** `c` [l](#x) </title></style></svg>'


class Reader(HTMLParser):
    """What a browser would make of a page: its elements, their attributes, its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.text += data


def hostile_document() -> Document:
    night = new_night()
    odd = changed(
        measured(night, 50.0), surprises=(HOSTILE,), host=HOSTILE, prompt_throughputs={HOSTILE: 50.0},
        provenance={HOSTILE: HOSTILE}, doubts=(HOSTILE,),
    )  # fmt: skip
    first = changed(measured(night, 40.0), prompt_throughputs={HOSTILE: 40.0}, provenance={HOSTILE: "other"})
    broken = failed(night, FailureKind.SERVER_CRASH, HOSTILE, [HOSTILE])
    trials = [
        trial(0, plain_config(), [first]),
        trial(1, ngram(3, 4, draft=HOSTILE), [changed(odd, provenance={})]),
        trial(2, ngram(3, 5, draft="/m/" + HOSTILE), [changed(odd, provenance={})]),
        trial(3, ngram(3, 6), [broken], TrialState.INFEASIBLE),
    ]
    return document(reading_of(stored(trials, HOSTILE, **{HOSTILE: HOSTILE}), simplicity))


def test_text_from_outside_stays_text_everywhere_on_the_page() -> None:
    page = Reader(html(hostile_document()))
    assert not {"script", "img", "iframe", "object", "form"} & set(page.tags)
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    assert "<script>x()</script>" in page.text  # it was there, and is shown as it is
    assert page.tags.count("style") == 1


def test_the_page_asks_for_nothing() -> None:
    page = Reader(html(document(reading_of(stored(eventful_night()), simplicity))))
    links = [value or "" for name, value in page.attributes if name in ("href", "src", "action", "data")]
    assert links
    assert all(link.startswith("#") or link == "data:," for link in links)
    assert "script" not in page.tags


def test_every_link_leads_somewhere() -> None:
    page = Reader(html(document(reading_of(stored(won_night()), simplicity))))
    names = {value for name, value in page.attributes if name == "id"}
    targets = {value[1:] for name, value in page.attributes if name == "href" and value and value.startswith("#")}
    assert targets <= names
    assert len(names) == sum(name == "id" for name, _ in page.attributes)


@pytest.mark.parametrize("trials", [won_night(), eventful_night(), large_night(40)], ids=["won", "eventful", "40"])
def test_all_that_markdown_says_is_on_the_page(trials: list[TrialRecord]) -> None:
    report = document(reading_of(stored(trials), simplicity))
    shown = " ".join(Reader(html(report)).text.split())
    for line in markdown(report).splitlines():
        for part in re.split(r"\*\*: | \| ", line.strip("|# ").removeprefix("- ")):
            words = plain_text(part.removeprefix("**") if part.count("**") == 1 else part)
            if not re.fullmatch(r"[-: |`a-z]*|.* left out\.", words):
                assert " ".join(words.split()) in shown, line


@settings(max_examples=80, deadline=None)
@given(st.text(max_size=120))
def test_a_line_shows_what_it_was_given(text: str) -> None:
    shown = rich(f"**x:** {inline(text)} `y`")
    assert set(re.findall(r"<(\w+)", shown)) <= {"strong", "code"}
    assert Reader(str(shown)).text == f"x: {plain(text) or '–'} y"


def test_our_own_marks_become_elements() -> None:
    assert rich("**a `b`** [c](#d-1) e") == ('<strong>a <code>b</code></strong> <a href="#d-1">c</a> e')
    assert rich("a [b](http://x) <i>") == "a [b](http://x) &lt;i&gt;"


def test_sections_of_one_title_have_names_of_their_own() -> None:
    page = html(Document(Markdown("T"), Bullets([]), [Section("Same", []), Section("Same", [])]))
    assert '<section id="same"' in page
    assert '<section id="same-2"' in page
    assert '<a href="#same-2">' in page


def test_figures_side_by_side_code_and_lists_are_written() -> None:
    figures = [Figure(Markdown(f"F{n}"), Markdown("w"), Markup("<svg></svg>")) for n in range(2)]
    folded = Folded(Markdown("2"), [Markdown("launch 0"), Markdown("launch 1")])
    table = Table(Markdown("Cap"), {"a": "r", "b": "l"}, [[Markdown("1"), folded]], anchors=["trial-1"], total=3)
    blocks: list[Block] = [
        Paragraph(Markdown("p")),
        *figures,
        Code(["<x> \x1b[31m& y"]),
        Bullets([Markdown("i")]),
        table,
    ]
    page = html(Document(Markdown("T"), Bullets([]), [Section("A title", blocks)]))
    assert page.count('<div class="figures">') == 1
    assert "&lt;x&gt; &amp; y" in page
    assert '<tr id="trial-1">' in page
    assert "<summary>2</summary><ul><li>launch 0</li><li>launch 1</li></ul>" in page
    assert '<th scope="col" class="r">a</th>' in page
    assert "2 rows left out." in page
