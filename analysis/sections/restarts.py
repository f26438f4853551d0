"""The part of the report on restarts: how each was proved, how the starts went, what was silently rewritten."""

from __future__ import annotations

import statistics
from collections.abc import Iterable

from analysis.blocks import Block, Bullets, Paragraph, Section, Table
from analysis.markup import Markdown, count, duration, inline, trials
from analysis.reading import Reading
from sweeper.records import LaunchRecord, TrialRecord

MAX_REWRITES = 30
_START = "start: "


def proofs(reading: Reading) -> Section | None:
    """What shows that every number was measured on its own server, and that each of them is gone."""
    measured = [launch for launch in reading.launches if launch.ok and launch.proof.port_owned is not None]
    if not measured:
        return None
    proved = [launch for launch in measured if launch.proof.complete]
    words = (
        f"{len(proved)} of {count(len(measured), 'measured launch')} with every proof: the port free before, held "
        "by our own processes while measuring, our nonce and model answering, a real decode, and afterwards no "
        "process left and the port free again."
    )
    blocks = [Paragraph(Markdown(words)), *_gpu_words(measured), *_start_table(measured), *_exceptions(measured)]
    return Section("Restarts", blocks, folded=len(proved) == len(measured))


def _gpu_words(launches: list[LaunchRecord]) -> list[Block]:
    """GPU memory before and after; nothing where no GPU was seen."""
    before = [launch.proof.gpu_mib_before for launch in launches if launch.proof.gpu_mib_before]
    if not before:
        return []
    after = [launch.proof.gpu_mib_after for launch in launches if launch.proof.gpu_mib_after]
    most = max(max(levels) for levels in before)
    text = f"GPU memory: at most {most} MiB in use on any of {len(before[0])} GPUs before a launch"
    text += f", at most {max(max(levels) for levels in after)} MiB after one." if after else "."
    return [Paragraph(Markdown(text))]


def _start_table(launches: list[LaunchRecord]) -> list[Block]:
    """The phases of the start, in the order in which they were first seen."""
    times: dict[str, list[float]] = {}
    for launch in launches:
        for phase in launch.phases:
            if phase.name.startswith(_START):
                times.setdefault(phase.name.removeprefix(_START), []).append(phase.duration_s)
    rows = [
        [inline(name), duration(statistics.median(spent)), duration(max(spent)), Markdown(str(len(spent)))]
        for name, spent in times.items()
    ]
    columns = {"phase of the start": "l", "median": "r", "longest": "r", "seen": "r"}
    return [Table(Markdown("How long the phases of a start took"), columns, rows)] if rows else []


def _exceptions(launches: list[LaunchRecord]) -> list[Block]:
    """Launches with something missing in their proof, and servers that had to be killed."""
    lines = [
        Markdown(
            f"trial {launch.trial_number}, launch {launch.launch_number}: "
            f"{inline('; '.join(_missing(launch)), 600)}"
        )
        for launch in launches
        if not launch.proof.complete
    ]
    if killed := sorted({launch.trial_number for launch in launches if "KILL" in launch.proof.stop_signals}):
        lines.append(Markdown(f"SIGTERM was not enough: SIGKILL followed ({trials(killed)})"))
    return [Bullets(lines)] if lines else []


def _missing(launch: LaunchRecord) -> Iterable[str]:
    proof = launch.proof
    if not proof.port_free_before:
        yield "whether the port was free before is not known"
    if not proof.port_owned:
        yield "the port's owner is not known"
    if not proof.num_probe_tokens:
        yield "no decode was seen before the measurement"
    if proof.port_free_after is None:
        yield "the stop was not seen (specsweep died in it)"
    elif not proof.port_free_after:
        yield "the port was still taken after the stop"
    if proof.not_clean_after:
        yield f"afterwards: {proof.not_clean_after}"


def rewrites(reading: Reading) -> Section | None:
    """What the engine's rules say it silently makes of what was asked for: those configurations are one trial."""
    found: dict[str, list[int]] = {}
    for trial in reading.trials:
        for text in _changes(trial):
            found.setdefault(text, []).append(trial.number)
    blocks = _avoided(reading)
    if not found:
        return Section("Silent rewrites", blocks) if blocks else None
    shown = list(found.items())[:MAX_REWRITES]
    items = [Markdown(f"{inline(text)} ({trials(sorted(set(numbers)))})") for text, numbers in shown]
    if left := len(found) - len(shown):
        items.append(Markdown(f"{count(left, 'other rewrite')} left out"))
    words = "Asked for, and what the server makes of it, as its rules foresee."
    return Section("Silent rewrites", [*blocks, Paragraph(Markdown(words)), Bullets(items)])


def _avoided(reading: Reading) -> list[Block]:
    """How many combinations cost no restart, because the server would have refused them or made others of them."""
    if reading.space is None or reading.space[0] == reading.space[1]:
        return []
    combinations, distinct = reading.space
    words = (
        f"Of {combinations:,} combinations of the space {distinct:,} are legal and distinct. The other "
        f"{combinations - distinct:,} would have been refused or a repetition, and cost no restart."
    )
    return [Paragraph(Markdown(words))]


def _changes(trial: TrialRecord) -> Iterable[str]:
    asked, made = trial.requested, trial.canonical
    for name, value in asked.flags.items():
        if name in made.flags and made.flags[name] != value:
            yield f"{name}: {value} becomes {made.flags[name]}"
    for name, text in asked.env.items():
        if name in made.env and made.env[name] != text:
            yield f"{name}: {text} becomes {made.env[name]}"
