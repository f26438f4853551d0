"""The part of the report on doubts: what makes numbers worth a second look, grouped, and what to do about it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from analysis.blocks import Bullets, Noted, Paragraph, Section
from analysis.markup import Markdown, count, inline
from analysis.reading import Reading
from sweeper.records import LaunchRecord

ADVICE = (
    (
        "warming up",
        (
            "a larger `workload.repeats` gives the first pass less weight; `workload.warmup_max_requests` and "
            "`workload.warmup_max_s` help only where warm-up ended at that limit, not where it counted as settled"
        ),
    ),
    ("warm-up ended at its limit", "raise `workload.warmup_max_requests` or `workload.warmup_max_s`"),
    ("may flatter", "measure each text once: `workload.repeats=1 workload.max_repeats=0`, and add prompts"),
    ("was over", "raise `workload.max_measure_s`, or shorten the workload"),
    ("passes:", "add prompts: each text is sent once to a server that remembers it"),
    ("the client's time is", "look at the network, and at what else this machine does meanwhile"),
    ("own client used", "fewer streams (`concurrency`), or a host with faster cores"),
    ("after they were due", "a lower `request_rate`, or a host with idle cores"),
    (
        "slowdown",
        "cooling and power supply; clocks locked below the limit (`nvidia-smi -lgc`) repeat better",
    ),
    ("of its highest clock", "look at that GPU's cooling, power limit and locked clocks"),
)
"""Words of a doubt, and what to do about it; the first that fit."""

MAX_GROUPS = 20
MAX_PLACES = 12


def doubts(reading: Reading) -> Section | None:
    """Each doubt once, its numbers aside, with the launches that have it; those of most launches first."""
    groups: dict[str, list[tuple[LaunchRecord, str]]] = {}
    for launch in reading.measured:
        for text in _texts(launch):
            groups.setdefault(re.sub(r"\d+(?:[.,]\d+)*", "#", text), []).append((launch, text))
    if not groups:
        nothing = "Imported results were looked at from outside: what a launch would show is not known."
        words = nothing if reading.imported else "None: no launch showed a reason to look twice."
        none = Paragraph(Markdown(words))
        return Section("Doubts", [none]) if reading.measured else None
    touched = {(n.trial_number, n.launch_number) for found in groups.values() for n, _ in found}
    words = (
        f"{len(touched)} of {count(len(reading.measured), 'measured launch')} show a reason to look twice. "
        "Where one touches the verdict, "
        + (
            "measure again."
            if reading.imported
            else "launch again: a larger `budget.confirm_launches` does so for the best."
        )
    )
    order = sorted(groups.values(), key=lambda found: -len(found))
    items = [_item(found) for found in order[:MAX_GROUPS]]
    if left := len(order[MAX_GROUPS:]):
        items.append(Markdown(f"{count(left, 'other doubt')} left out"))
    return Section("Doubts", [Paragraph(Markdown(words)), Bullets(items)])


def advice_on(doubt: str) -> str:
    """What to do about a doubt; empty when its own words must do."""
    return next((advice for words, advice in ADVICE if words in doubt), "")


def _texts(launch: LaunchRecord) -> Iterator[str]:
    """The doubts of a launch, those of a further workload under its name."""
    yield from launch.doubts
    for name, result in launch.others.items():
        yield from (f"{name}: {text}" for text in result.doubts)


def _item(found: Sequence[tuple[LaunchRecord, str]]) -> Markdown | Noted:
    """A doubt and, where something is to be done about it, the advice."""
    advice = advice_on(found[-1][1])
    return Noted(_line(found), Markdown(advice)) if advice else _line(found)


def _line(found: Sequence[tuple[LaunchRecord, str]]) -> Markdown:
    """The newest launch's words, and all launches that say so: those of a trial together."""
    launches: dict[int, list[int]] = {}
    for launch, _ in found:
        launches.setdefault(launch.trial_number, []).append(launch.launch_number)
    shown = [
        f"trial {trial} launch{'es' if len(numbers) > 1 else ''} {', '.join(map(str, sorted(set(numbers))))}"
        for trial, numbers in sorted(launches.items())
    ]
    more = f" and {len(shown) - MAX_PLACES} more trials" if len(shown) > MAX_PLACES else ""
    return Markdown(f"{inline(found[-1][1], 600)} ({'; '.join(shown[:MAX_PLACES])}{more})")
