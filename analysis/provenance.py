"""The part of the report on provenance: what every number depends on, and which launches were put aside."""

from __future__ import annotations

from analysis.markup import Markdown, count, fenced, inline, shell_words, table
from analysis.reading import Reading
from sweeper.deciding.comparable import Aside
from sweeper.fingerprint import IMPORTED

MAX_ASIDE = 40


def provenance(reading: Reading) -> list[str]:
    """What every number depends on, what is not compared for its sake, and how to go on from here."""
    lines = ["## What the numbers depend on", "", *_put_aside(reading)]
    facts = [[inline(path), inline(value, 600)] for path, value in reading.fingerprint.items()]
    lines += table({"setting": "l", "value": "l"}, facts) if facts else ["Nothing has been written down yet."]
    lines += _recorded(reading)
    if IMPORTED in reading.fingerprint:
        return [
            *lines,
            "",
            "These results were imported: no sweep goes on with them, but one can learn from them",
            *_learning(reading),
        ]
    name = shell_words([f"study.name={reading.name}"], {})[0]
    again = [f"specsweep run {name}", f"specsweep run {name} budget.trials={2 * max(len(reading.recorded), 10)}"]
    return [
        *lines,
        "",
        "Add the settings of the first run (`preset=`, `study.dir=`, ...) to these. The first goes on where the",
        "sweep stopped; the second measures more configurations. Under another `study.name` all is measured anew.",
        "A run with other settings than the ones above is refused.",
        "",
        *fenced(again, "bash"),
    ]


def _learning(reading: Reading) -> list[str]:
    words = shell_words([f"study.warm_start=[{reading.name}]"], {})[0]
    return ["(on the host that they are of):", "", *fenced([f"specsweep run study.name=next {words}"], "bash")]


def _recorded(reading: Reading) -> list[str]:
    """What each launch wrote down of its own provenance; all values of a fact that is not the same for all."""
    found: dict[str, list[str]] = {}
    for launch in reading.measured:
        for name, value in launch.provenance.items():
            found.setdefault(name, []).append(value)
    rows = [
        [inline(name), Markdown("; ".join(inline(value, 600) for value in dict.fromkeys(values)))]
        for name, values in sorted(found.items())
    ]
    if not rows:
        return []
    return ["", "Written down with every measured launch:", "", *table({"fact": "l", "value": "l"}, rows)]


def _put_aside(reading: Reading) -> list[str]:
    """The launches that are not compared, each with the facts in which it differs."""
    if not reading.aside:
        return []
    lines = [
        "Not compared, because what they were measured with is not what the newest baseline was measured with:",
        "",
        *map(_aside_line, reading.aside[:MAX_ASIDE]),
    ]
    left = len(reading.aside) - MAX_ASIDE
    return [*lines, *([f"- {count(left, 'other launch')} left out"] if left > 0 else []), ""]


def _aside_line(found: Aside) -> str:
    differing = "; ".join(
        f"{inline(name)} {inline(theirs)} instead of {inline(ours)}"
        for name, (ours, theirs) in found.differing.items()
    )
    return f"- trial {found.launch.trial_number}, launch {found.launch.launch_number}: {differing}"
