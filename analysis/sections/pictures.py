"""The parts of the report that are drawings first: drafts against step time, and the best so far."""

from __future__ import annotations

from analysis.blocks import Block, Section, Table
from analysis.frames import trial_name
from analysis.markup import Markdown, duration, heading, inline, number
from analysis.plots.acceptance import acceptance
from analysis.plots.progress import events_of, progress
from analysis.reading import Reading
from sweeper.fingerprint import IMPORTED

MAX_IMPROVEMENTS = 20


def drafts(reading: Reading) -> Section | None:
    """Throughput against accept_length."""
    figures = acceptance(reading)
    return Section("Drafts and step time", figures) if figures else None


def best_so_far(reading: Reading) -> Section | None:
    """How the night went, launch by launch and by the clock."""
    figures = [] if IMPORTED in reading.fingerprint else progress(reading)
    return Section("The night", [*figures, *_improvements(reading)]) if figures else None


def _improvements(reading: Reading) -> list[Block]:
    """The launches that did more than all before them."""
    events = events_of(reading)
    before = [None, *(event.best for event in events)]
    better = [event for event, best in zip(events, before, strict=False) if event.best != best]
    rows = [
        [
            Markdown(str(event.place)),
            duration(event.ended_s),
            Markdown(str(event.launch.trial_number)),
            inline(trial_name(reading.by_number[event.launch.trial_number], reading.base) or ""),
            number(reading.objective, event.best),
        ]
        for event in better[-MAX_IMPROVEMENTS:]
    ]
    columns = {"launch": "r", "after": "r", "trial": "r", "configuration": "l", heading(reading.objective): "r"}
    caption = Markdown("When the best single value so far was reached")
    return [Table(caption, columns, rows, total=len(better), noun="earlier one", folded=True)]
