"""What the tests of the report share: studies at their end, and ways to look at a report."""

from __future__ import annotations

import datetime
import re

from analysis.blocks import Section
from analysis.diagnosis import findings_of
from analysis.page.markdown import markdown as as_markdown
from analysis.page.markdown import section_lines
from analysis.reading import read
from analysis.report import document
from sweeper.deciding.verdict import Simplicity, decide
from sweeper.records import LaunchRecord, Purpose, TrialRecord
from sweeper.storing.storage import StudyStore
from tests.analysis.builders import OBJECTIVE, Night, fill, measured, ngram, plain_config, simplicity, trial


def finish(store: StudyStore) -> StudyStore:
    """Give the verdict, as a sweep does at its end."""
    verdict = decide(store.trials(), OBJECTIVE, simplicity)
    store.set_fact("verdict", verdict.model_dump(mode="json"))
    return store


def markdown(store: StudyStore, simplicity: Simplicity) -> str:
    """The report of what is stored."""
    reading = read(store, simplicity)
    return as_markdown(document(reading, findings_of(reading)))


def report_of(store: StudyStore, trials: list[TrialRecord]) -> str:
    return markdown(finish(fill(store, trials)), simplicity)


def text_of(found: Section | None) -> str:
    """A section as Markdown; empty for none."""
    return "\n".join(section_lines(found)) if found else ""


def section(report: str, name: str) -> str:
    """The text under a heading of second rank."""
    return next(part for part in re.split(r"(?m)^## ", report) if part.startswith(name))


def confirmed(night: Night, number: int, values: tuple[float, float]) -> TrialRecord:
    """A trial with one launch of the search and two fresh ones."""
    first = measured(night, values[0], Purpose.SEARCH if number else Purpose.BASELINE)
    fresh = [later(measured(night, value, Purpose.CONFIRM)) for value in values]
    return trial(number, ngram(3, number) if number else plain_config(), [first, *fresh])


def later(launch: LaunchRecord) -> LaunchRecord:
    """The launch an hour later: after the search of every trial."""
    hour = datetime.timedelta(hours=1)
    return changed(launch, started_at=launch.started_at + hour, ended_at=launch.ended_at + hour)


def changed(launch: LaunchRecord, **update: object) -> LaunchRecord:
    return launch.model_copy(update=update)
