"""The parts of the report that let one do it again: the advised command, and the files behind every number."""

from __future__ import annotations

from analysis.blocks import Code, Paragraph, Section, Table
from analysis.frames import trial_name
from analysis.markup import MISSING, Markdown, heading, inline, moment, number, shell_words
from analysis.reading import Reading
from sweeper.metrics import METRICS
from sweeper.records import LaunchRecord, TrialRecord, launch_artifact_name

MAX_RAW = 40


def command(reading: Reading) -> Section | None:
    """The command line of the advised configuration, as it was measured."""
    launch = reading.advised_launch
    if launch is None:
        return None
    trial = reading.by_number[launch.trial_number]
    name = inline(trial_name(trial, reading.base) or "")
    where = f"exactly as launch {launch.launch_number} was started on host {inline(launch.host)}"
    note = "The port and the name given to the server were made for that launch; change them as you like."
    words = Markdown(f"Trial {trial.number} ({name}), {where}. {note}")
    lines = Code(shell_words(launch.argv, trial.canonical.env), "bash", limit=100_000)
    return Section("How to run it", [Paragraph(words), lines])


def raw_data(reading: Reading) -> Section:
    """The single values behind the means above, and the files that hold every request."""
    shown = [0, *(row.trial_number for row in reading.verdict.comparisons)]
    launches = [n for n in reading.launches if n.ok and n.trial_number in shown]
    folder = inline(f"artifacts/{reading.name}")
    words = Paragraph(
        Markdown(
            "These results were imported: of their requests and servers' logs nothing is kept here."
            if reading.imported
            else f"Every measured request and every server's log is a file in {folder}, in the folder "
            "`study.dir`: trial-N-launch-M-requests.jsonl (a further workload's: -requests-WORKLOAD.jsonl) and "
            "trial-N-launch-M-server.log."
        )
    )
    if not launches:
        return Section("Raw data", [words], folded=True)
    columns = {"trial": "r", "launch": "r", "why": "l", "started (UTC)": "l"}
    columns |= {
        heading(reading.objective): "r",
        f"each pass: {heading('output_throughput')}": "l",
        "file": "l",
    }
    rows = [_raw_row(reading.by_number[n.trial_number], n, reading.objective) for n in launches[:MAX_RAW]]
    table = Table(Markdown("The launches that the verdict speaks of, and their files"), columns, rows)
    left = len(launches) - MAX_RAW
    more = [Paragraph(Markdown(f"{left} more launches left out."))] if left > 0 else []
    return Section("Raw data", [words, table, *more], folded=True)


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
