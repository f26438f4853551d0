"""The part of the report on launches: why each was made, how many each configuration got, what they cost."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from analysis.blocks import Block, Paragraph, Section, Table
from analysis.frames import trial_name
from analysis.markup import MISSING, Markdown, count, duration, inline
from analysis.plots.night import night
from analysis.reading import Reading
from sweeper.fingerprint import IMPORTED
from sweeper.records import LaunchRecord, Purpose, TrialRecord, duration_s

MAX_TRIALS = 30

_WHY = {
    Purpose.BASELINE: "the configuration without speculation, first of all",
    Purpose.SEARCH: "a configuration's first launch",
    Purpose.CONTROL: "the baseline again, to see whether the host drifts",
    Purpose.RECHECK: "too close to the best to be told apart by one launch",
    Purpose.CONFIRM: "a finalist or the baseline in turn, for the verdict",
}
_PHASES = {
    "benchmark": "measured requests (useful)",
    "warmup": "warm-up requests",
    "start": "start until ready",
    "stop": "stop",
}
_RESTART = ("start", "stop")


def purposes(reading: Reading) -> Section | None:
    """How many launches were made for what, and which configurations had more than one."""
    if not reading.launches or IMPORTED in reading.fingerprint:
        return None
    made = {why: [n for n in reading.launches if n.purpose is why] for why in _WHY}
    rows = [
        [
            Markdown(why.value),
            Markdown(str(len(found))),
            Markdown(str(sum(1 for n in found if not n.ok))),
            Markdown(str(sum(1 for n in found if n.estimated))),
            duration(sum(map(_length, found))),
            Markdown(_WHY[why]),
        ]
        for why, found in made.items()
        if found
    ]
    columns = {"why": "l", "launches": "r", "failed": "r", "stopped early": "r", "time": "r", "meaning": "l"}
    table = Table(Markdown("Launches by what they were made for"), columns, rows)
    return Section("Why launches were made", [table, *_several(reading)], folded=True)


def _several(reading: Reading) -> list[Block]:
    """A row per trial that was launched more than once: how often for what."""
    found = [trial for trial in reading.recorded if len(trial.launches) > 1]
    if not found:
        return []
    whys = [why for why in _WHY if any(n.purpose is why for trial in found for n in trial.launches)]
    columns = {"trial": "r", "configuration": "l", **{why.value: "r" for why in whys}, "launches": "r"}
    rows = [_several_row(reading, trial, whys) for trial in found[:MAX_TRIALS]]
    caption = Markdown("Configurations that were launched more than once")
    blocks: list[Block] = [Paragraph(Markdown("Launched more than once:")), Table(caption, columns, rows)]
    if (left := len(found) - MAX_TRIALS) > 0:
        blocks.append(Paragraph(Markdown(f"{count(left, 'more trial')} left out.")))
    return blocks


def _several_row(reading: Reading, trial: TrialRecord, whys: Sequence[Purpose]) -> list[Markdown]:
    name = "baseline" if trial.is_baseline else trial_name(trial, reading.base) or ""
    counts = [Markdown(str(sum(1 for n in trial.launches if n.purpose is why))) for why in whys]
    return [Markdown(str(trial.number)), inline(name), *counts, Markdown(str(len(trial.launches)))]


def costs(reading: Reading) -> Section | None:
    """Where the time of all launches went; nobody knows it of imported ones."""
    if not reading.launches or IMPORTED in reading.fingerprint:
        return None
    whole = sum(_length(launch) for launch in reading.launches)
    good = [launch for launch in reading.launches if launch.ok]
    phases = {name: [time for launch in good if (time := _phase(launch, name)) is not None] for name in _PHASES}
    failed = [_length(launch) for launch in reading.launches if not launch.ok]
    rest = sum(map(_length, good)) - sum(sum(times) for times in phases.values())
    rows = [_cost_row(_PHASES[name], times, whole) for name, times in phases.items()]
    if good and rest > 0.05:
        rows.append([Markdown("between the phases"), duration(rest), MISSING, _share(rest, whole)])
    if failed:
        rows.append(_cost_row(f"failed launches ({len(failed)})", failed, whole))
    restart = sum(sum(phases[name]) for name in _RESTART)
    words = f"{count(len(reading.launches), 'launch')} took {duration(whole)}. "
    if good:
        words += f"Measuring: {_share(sum(phases['benchmark']), whole)}. Restarts: {_share(restart, whole)}. "
    words += f"Failed launches: {_share(sum(failed), whole) if failed else 'none'}."
    idle = (reading.wall_clock_s or 0.0) - whole
    if idle >= 1:
        words += f" Between launches: {duration(idle)}."
    columns = {"phase": "l", "total": "r", "median per launch": "r", "share": "r"}
    table = Table(Markdown("Where the time of all launches went"), columns, rows)
    return Section("What the launches cost", [Paragraph(Markdown(words)), *night(reading), table])


def _cost_row(label: str, times: Sequence[float], whole: float) -> list[Markdown]:
    if not times:
        return [Markdown(label), MISSING, MISSING, MISSING]
    total = sum(times)
    return [Markdown(label), duration(total), duration(statistics.median(times)), _share(total, whole)]


def _share(part: float, whole: float) -> Markdown:
    return Markdown(f"{100 * part / whole:.1f} %") if whole > 0 else MISSING


def _length(launch: LaunchRecord) -> float:
    return duration_s(launch.started_at, launch.ended_at)


def _phase(launch: LaunchRecord, name: str) -> float | None:
    times = [phase.duration_s for phase in launch.phases if phase.name == name]
    return sum(times) if times else None
