"""The part of the report on several workloads: the best configurations under each of them."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence

from analysis.blocks import Block, Heading, Paragraph, Section, Table
from analysis.frames import baseline_config, trial_name
from analysis.markup import ESTIMATED, ESTIMATES, Markdown, bold, heading, inline, number
from analysis.reading import Reading
from sweeper.records import LaunchRecord, TrialRecord, WorkloadResult

_SHOWN = (
    "output_throughput",
    "decode_throughput",
    "request_throughput",
    "ttft_ms",
    "ttft_p99_ms",
    "tpot_ms",
    "itl_p99_ms",
    "e2e_latency_ms",
    "accept_length",
)

Results = Callable[[LaunchRecord], WorkloadResult | None]


def workloads(reading: Reading) -> Section | None:
    """One table per workload, if there are several: the baseline, then the best by the objective."""
    names = list(dict.fromkeys(name for launch in reading.measured for name in launch.others))
    if not names or not reading.leaders:
        return None
    first = reading.first_workload
    shown: dict[str, Results] = {first: lambda launch: launch, **{name: _other(name) for name in names}}
    tables = {name: _workload_table(reading, name, result) for name, result in shown.items()}
    words = "Means over all launches: the baseline, then the best ones."
    if any(ESTIMATED in str(cell) for table in tables.values() for row in table.rows for cell in row):
        words += f" {ESTIMATES}"
    blocks: list[Block] = [Paragraph(Markdown(words))]
    for name, table in tables.items():
        blocks += [Heading(inline(name)), table]
    return Section("Workload by workload", blocks)


def _other(name: str) -> Results:
    return lambda launch: launch.others.get(name)


def _workload_table(reading: Reading, workload: str, result: Results) -> Table:
    found = {trial.number: _results(trial, result) for trial in reading.leaders}
    shown = [name for name in _SHOWN if any(_mean(results, name) is not None for results in found.values())]
    base = _mean(found[0], "output_throughput") if 0 in found else None
    rows = [_row(reading, trial, found[trial.number], shown, base) for trial in reading.leaders]
    columns = {"trial": "r", "configuration": "l"}
    columns |= {heading(name): "r" for name in shown[:1]} | {heading("speedup"): "r"}
    caption = Markdown(f"The best configurations under the workload {inline(workload)}")
    return Table(caption, columns | {heading(name): "r" for name in shown[1:]}, rows)


def _row(
    reading: Reading,
    trial: TrialRecord,
    results: Sequence[WorkloadResult],
    shown: Sequence[str],
    base: float | None,
) -> list[Markdown]:
    guess = any(result.estimated for result in results)
    value = _mean(results, "output_throughput")
    name = trial_name(trial, baseline_config(reading.recorded)) or ""
    cells = [Markdown(str(trial.number)), inline("baseline" if trial.is_baseline else name)]
    values = [number(metric, _mean(results, metric), estimated=guess) for metric in shown]
    ratio = number("speedup", value / base if value is not None and base else None, estimated=guess)
    cells += [*values[:1], ratio, *values[1:]]
    return [bold(cell) for cell in cells] if trial.is_baseline else cells


def _results(trial: TrialRecord, result: Results) -> list[WorkloadResult]:
    return [found for launch in trial.measured if (found := result(launch)) is not None]


def _mean(results: Sequence[WorkloadResult], metric: str) -> float | None:
    values = [result.metrics[metric] for result in results if metric in result.metrics]
    return statistics.fmean(values) if values else None
