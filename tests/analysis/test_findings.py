"""What the diagnosis finds has its place in the report, and its words are text."""

from __future__ import annotations

from dataclasses import dataclass

from analysis.page.markdown import markdown
from analysis.reading import reading_of
from analysis.report import document
from tests.analysis.builders import simplicity, won_night
from tests.analysis.large import stored
from tests.analysis.studies import section


@dataclass(frozen=True)
class Shown:
    what: str
    value: str
    trials: tuple[int, ...] = ()


@dataclass(frozen=True)
class Found:
    title: str
    text: str
    next_step: str = ""
    severity: str = "limit"
    evidence: tuple[Shown, ...] = ()


def test_findings_stand_after_the_verdict_with_their_numbers_and_say_what_to_do() -> None:
    seen = tuple(Shown(f"accept_len {n}", "2.1 | <i>", (n,)) for n in range(12))
    findings = [
        Found("The draft | is <b>the limit</b>", "accept_len is 2.1.", "Train a better one.", evidence=seen),
        Found("B", "C"),
    ]
    report = markdown(document(reading_of(stored(won_night()), simplicity), findings))
    text = section(report, "Why")
    assert report.index("## Verdict") < report.index("## Why") < report.index("## Ranking")
    assert "**Next:** Train a better one." in text
    assert "### B (limit)" in text
    assert "- accept_len 3: 2.1 &#124; &#60;i&#62; (trial 3)" in text
    assert "- 2 more" in text
    assert "<b>" not in text
    assert text.count("Next:") == 1


def test_without_findings_there_is_no_such_section() -> None:
    assert "## Why\n" not in markdown(document(reading_of(stored(won_night()), simplicity)))
