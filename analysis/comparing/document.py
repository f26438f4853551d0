"""The comparison of several studies as a document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from analysis.blocks import Bullets, Document
from analysis.comparing.numbers import Side
from analysis.comparing.sections import outcome, same_configurations, side_by_side, what_differs
from analysis.markup import Markdown, count, inline, moment
from analysis.reading import Reading
from analysis.sections.definitions import definitions
from sweeper.errors import ConfigError


def comparison(readings: Sequence[Reading]) -> Document:
    """Studies beside one another: the later ones against the first. At least two.

    Raises ConfigError where they are not ranked by the same number.
    """
    asked = {reading.objective_text for reading in readings}
    if len(asked) > 1:
        raise ConfigError(
            [f"objective: the studies are ranked by {' and by '.join(sorted(asked))}; one is needed"]
        )
    sides = [Side(label, reading) for label, reading in zip(_labels(readings), readings, strict=True)]
    first, *later = sides
    found = [
        outcome(sides),
        what_differs(sides),
        side_by_side(sides),
        *(same_configurations(first, side, f"matched-{place}") for place, side in enumerate(later)),
    ]
    sections = [section for section in found if section is not None]
    meaning = definitions(sections)
    title = Markdown(" against ".join(inline(side.label) for side in reversed(sides)))
    return Document(title, _lead(sides), [*sections, *([meaning] if meaning else [])])


def _labels(readings: Sequence[Reading]) -> list[str]:
    """The studies' names; where two have the same, with their hosts, else with their places in the list."""
    names = [reading.name for reading in readings]
    if len(set(names)) == len(names):
        return names
    hosted = [f"{r.name} on {r.launches[0].host}" if r.launches else r.name for r in readings]
    if len(set(hosted)) == len(hosted):
        return hosted
    times = Counter(hosted)
    return [f"{name} ({place})" if times[name] > 1 else name for place, name in enumerate(hosted, start=1)]


def _lead(sides: Sequence[Side]) -> Bullets:
    items = []
    for side in sides:
        reading = side.reading
        when = f", {moment(reading.span[0])} to {moment(reading.span[1])} UTC" if reading.span else ""
        state = "finished" if reading.is_over else "not finished"
        words = f"{count(len(reading.recorded), 'trial')}, {count(len(reading.launches), 'launch')}, {state}{when}"
        items.append(Markdown(f"**{inline(side.label)}:** {words}"))
    return Bullets(items)
