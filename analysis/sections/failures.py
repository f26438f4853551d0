"""The parts of the report on what went wrong: failures by kind, and servers that run with other settings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from analysis.blocks import Block, Bullets, Code, Heading, Paragraph, Section
from analysis.frames import trial_name
from analysis.markup import Markdown, count, inline, trials
from analysis.reading import Reading
from sweeper.policy import POLICY, Fault, Policy
from sweeper.records import LaunchRecord, TrialState

MAX_EXAMPLES = 3
MAX_EVIDENCE = 12
MAX_SURPRISES = 20

_FAULTS = {
    Fault.CONFIGURATION: "The configuration's fault: the search keeps away from it.",
    Fault.TOOLING: "Not held against the configuration.",
    Fault.HOST: "Not held against the configuration: it is launched again.",
}


def failures(reading: Reading) -> Section | None:
    """Every kind of failure that occurred: what it means, which trials, the lines that show it."""
    blocks: list[Block] = []
    for kind, policy in POLICY.items():
        failed = [n for n in reading.launches if n.failure is not None and n.failure.kind is kind]
        if failed:
            numbers = list(dict.fromkeys(launch.trial_number for launch in failed))
            title = f"{kind.value}: {count(len(failed), 'launch')}, {trials(numbers)}"
            words = _meaning(policy, failed)
            if mended := [number for number in numbers if reading.by_number[number].measured]:
                words += f" Measured in another launch all the same: {trials(mended)}."
            blocks += [Heading(Markdown(title)), Paragraph(Markdown(words)), *_examples(reading, failed)]
    if silent := [t.number for t in reading.trials if t.state is TrialState.FAILED and not t.launches]:
        words = f"Put aside without a record, because specsweep itself died each time: {trials(silent)}."
        blocks.append(Paragraph(Markdown(words)))
    return Section("Failures", blocks) if blocks else None


def _meaning(policy: Policy, failed: Sequence[LaunchRecord]) -> str:
    """What such a failure says of a trial; the policy's words hold once a trial has failed so often."""
    most = max(Counter(launch.trial_number for launch in failed).values())
    if most < (policy.max_launches or 1):
        return f"A trial is given up after {policy.max_launches} such launches; none has had so many."
    return f"{policy.meaning[0].upper()}{policy.meaning[1:]}. {_FAULTS[policy.fault]}"


def _examples(reading: Reading, failed: Sequence[LaunchRecord]) -> list[Block]:
    """The newest launches with different messages, each with its evidence."""
    distinct = {n.failure.message: n for n in failed if n.failure is not None}
    newest = list(distinct.values())[-MAX_EXAMPLES:][::-1]
    blocks: list[Block] = []
    for launch in newest:
        assert launch.failure is not None  # only failed launches come here
        name = inline(trial_name(reading.by_number[launch.trial_number], reading.base) or "")
        place = f"Trial {launch.trial_number}, launch {launch.launch_number} ({name})"
        blocks.append(Paragraph(Markdown(f"{place}: {inline(launch.failure.message, 600)}")))
        evidence = [line for text in launch.failure.evidence for line in text.splitlines()]
        if evidence:
            blocks.append(Code(evidence[-MAX_EVIDENCE:]))
        if left := len(evidence[:-MAX_EVIDENCE]):
            words = f"{count(left, 'earlier line')} in the record, the rest in the launch's server.log."
            blocks.append(Paragraph(Markdown(words)))
    if left := len(distinct) - len(newest):
        blocks.append(Paragraph(Markdown(f"{count(left, 'other message')} of this kind left out.")))
    return blocks


def surprises(reading: Reading) -> Section | None:
    """Where a running server reported another setting than it was given."""
    found: dict[str, list[int]] = {}
    for launch in reading.launches:
        for text in launch.surprises:
            found.setdefault(text, []).append(launch.trial_number)
    measured = [launch for launch in reading.launches if launch.ok]
    if not found:
        return Section("Surprises", [_no_surprise(measured)], folded=True) if measured else None
    words = "A server reported another setting than it was given. Its number belongs to what it reported."
    shown = list(found.items())[:MAX_SURPRISES]
    items = [Markdown(f"{inline(text)} ({trials(sorted(set(numbers)))})") for text, numbers in shown]
    if left := len(found) - len(shown):
        items.append(Markdown(f"{count(left, 'other surprise')} left out"))
    return Section("Surprises", [Paragraph(Markdown(words)), Bullets(items)])


def _no_surprise(measured: Sequence[LaunchRecord]) -> Paragraph:
    """That nothing differs, or that nothing was reported."""
    silent = sum(1 for launch in measured if not launch.effective)
    if silent == len(measured):
        return Paragraph(Markdown("Unknown: no server reported the settings that it runs with."))
    words = "None: what the servers report of their settings is what they were given."
    return Paragraph(Markdown(words + (f" {count(silent, 'launch')} reported nothing." if silent else "")))
