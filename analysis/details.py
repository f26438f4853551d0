"""The last part of the report: what it cost, what failed, how to run the advice, and where numbers come from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from analysis.frames import trial_name
from analysis.markup import (
    MISSING,
    Markdown,
    count,
    fenced,
    heading,
    inline,
    moment,
    number,
    shell_words,
    table,
    trials,
)
from analysis.reading import Reading
from sweeper.metrics import METRICS
from sweeper.policy import POLICY, Fault, Policy
from sweeper.records import LaunchRecord, TrialRecord, TrialState, launch_artifact_name

MAX_EXAMPLES = 3
MAX_EVIDENCE = 12
MAX_SURPRISES = 20
MAX_RAW = 40

_FAULTS = {
    Fault.CONFIGURATION: "The configuration's fault: the search keeps away from it.",
    Fault.TOOLING: "Not held against the configuration.",
    Fault.HOST: "Not held against the configuration: it is launched again.",
}


def failures(reading: Reading) -> list[str]:
    """Every kind of failure that occurred: what it means, which trials, the lines that show it."""
    lines: list[str] = []
    for kind, policy in POLICY.items():
        failed = [n for n in reading.launches if n.failure is not None and n.failure.kind is kind]
        if failed:
            numbers = list(dict.fromkeys(launch.trial_number for launch in failed))
            lines += ["", f"### {kind.value}: {count(len(failed), 'launch')}, {trials(numbers)}", ""]
            lines.append(_meaning(policy, failed))
            if mended := [number for number in numbers if reading.by_number[number].measured]:
                lines.append(f"Measured in another launch all the same: {trials(mended)}.")
            lines += _examples(reading, failed)
    if silent := [t.number for t in reading.trials if t.state is TrialState.FAILED and not t.launches]:
        lines += [
            "",
            f"Put aside without a record, because specsweep itself died each time: {trials(silent)}.",
        ]
    return ["## Failures", *lines] if lines else []


def _meaning(policy: Policy, failed: Sequence[LaunchRecord]) -> str:
    """What such a failure says of a trial; the policy's words hold once a trial has failed so often."""
    most = max(Counter(launch.trial_number for launch in failed).values())
    if most < (policy.max_launches or 1):
        return f"A trial is given up after {policy.max_launches} such launches; none has had so many."
    return f"{policy.meaning[0].upper()}{policy.meaning[1:]}. {_FAULTS[policy.fault]}"


def _examples(reading: Reading, failed: Sequence[LaunchRecord]) -> list[str]:
    """The newest launches with different messages, each with its evidence."""
    distinct = {n.failure.message: n for n in failed if n.failure is not None}
    newest = list(distinct.values())[-MAX_EXAMPLES:][::-1]
    lines: list[str] = []
    for launch in newest:
        assert launch.failure is not None  # only failed launches come here
        name = inline(trial_name(reading.by_number[launch.trial_number], reading.base) or "")
        place = f"Trial {launch.trial_number}, launch {launch.launch_number} ({name})"
        lines += ["", f"{place}: {inline(launch.failure.message, 600)}"]
        evidence = [line for text in launch.failure.evidence for line in text.splitlines()]
        if evidence:
            lines += ["", *fenced(evidence[-MAX_EVIDENCE:])]
        if left := len(evidence[:-MAX_EVIDENCE]):
            lines += ["", f"{count(left, 'earlier line')} in the record, the rest in the launch's server.log."]
    if left := len(distinct) - len(newest):
        lines += ["", f"{count(left, 'other message')} of this kind left out."]
    return lines


def surprises(reading: Reading) -> list[str]:
    """Where a running server reported another setting than it was given."""
    found: dict[str, list[int]] = {}
    for launch in reading.launches:
        for text in launch.surprises:
            found.setdefault(text, []).append(launch.trial_number)
    measured = [launch for launch in reading.launches if launch.ok]
    if not measured and not found:
        return []
    lines = ["## Surprises", ""]
    if not found:
        silent = sum(1 for launch in measured if not launch.effective)
        if silent == len(measured):
            return [*lines, "Unknown: no server reported the settings that it runs with."]
        words = "None: what the servers report of their settings is what they were given."
        return [*lines, words + (f" {count(silent, 'launch')} reported nothing." if silent else "")]
    lines += ["A server reported another setting than it was given. Its number belongs to what it reported.", ""]
    shown = list(found.items())[:MAX_SURPRISES]
    lines += [f"- {inline(text)} ({trials(sorted(set(numbers)))})" for text, numbers in shown]
    if left := len(found) - len(shown):
        lines.append(f"- {count(left, 'other surprise')} left out")
    return lines


def command(reading: Reading) -> list[str]:
    """The command line of the advised configuration, as it was measured."""
    launch = reading.advised_launch
    if launch is None:
        return []
    trial = reading.by_number[launch.trial_number]
    name = inline(trial_name(trial, reading.base) or "")
    where = f"exactly as launch {launch.launch_number} was started on host {inline(launch.host)}"
    note = "The port and the name given to the server were made for that launch; change them as you like."
    lines = fenced(shell_words(launch.argv, trial.canonical.env), "bash", limit=100_000)
    return ["## How to run it", "", f"Trial {trial.number} ({name}), {where}. {note}", "", *lines]


def raw_data(reading: Reading) -> list[str]:
    """The single values behind the means above, and the files that hold every request."""
    shown = [0, *(row.trial_number for row in reading.verdict.comparisons)]
    launches = [n for n in reading.launches if n.ok and n.trial_number in shown]
    lines = ["## Raw data", ""]
    folder = inline(f"artifacts/{reading.name}")
    lines.append(
        f"Every measured request and every server's log is a file in {folder}, in the folder `study.dir`: "
        "trial-N-launch-M-requests.jsonl (a further workload's: -requests-WORKLOAD.jsonl) and "
        "trial-N-launch-M-server.log."
    )
    if not launches:
        return lines
    columns = {"trial": "r", "launch": "r", "why": "l", "started (UTC)": "l"}
    columns |= {
        heading(reading.objective): "r",
        f"each pass: {heading('output_throughput')}": "l",
        "file": "l",
    }
    rows = [_raw_row(reading.by_number[launch.trial_number], launch, reading.objective) for launch in launches]
    lines += ["", *table(columns, rows[:MAX_RAW])]
    return [*lines, "", f"{len(rows) - MAX_RAW} more launches left out."] if len(rows) > MAX_RAW else lines


def _raw_row(trial: TrialRecord, launch: LaunchRecord, objective: str) -> list[Markdown]:
    names = ("requests.jsonl", *(f"requests-{workload}.jsonl" for workload in launch.others))
    kept = [name for n in names if (name := launch_artifact_name(launch.launch_number, n)) in trial.artifacts]
    files = [inline(f"trial-{trial.number}-{name}") for name in kept]
    passes = ", ".join(METRICS["output_throughput"].format(value) for value in launch.repeat_throughputs[:20])
    return [
        Markdown(str(launch.trial_number)),
        Markdown(str(launch.launch_number)),
        Markdown(launch.purpose.value),
        moment(launch.started_at),
        number(objective, launch.metrics.get(objective), estimated=bool(launch.estimated)),
        Markdown(passes) if passes else MISSING,
        Markdown(", ".join(files)) if files else MISSING,
    ]
