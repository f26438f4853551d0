"""Results as launches of trials: repeats gathered, prompts put together, equal configurations made one."""

from __future__ import annotations

import datetime
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sweeper.importing.files import ResultFile
from sweeper.importing.results import Result
from sweeper.records import LaunchRecord, Purpose
from sweeper.spec import ServerConfig

IMPORTED_FILE, IMPORTED_SHA256, IMPORTED_ROW = "imported_file", "imported_sha256", "imported_row"
"""Facts of an imported launch's provenance: where its numbers were read. The row is a line, from 1."""

NOT_TOLD = "not told"
"""The host of a result that names none."""

Canonical = Callable[[ServerConfig], ServerConfig]


@dataclass(frozen=True)
class Read:
    """A result and the line it stood in."""

    line: int
    result: Result


@dataclass(frozen=True)
class Imported:
    """One launch to be, not yet numbered. `drafts`: whether its server speculated."""

    drafts: bool
    record: LaunchRecord

    @property
    def source(self) -> tuple[str, str]:
        """What tells it from every other one: the file's content and the row."""
        facts = self.record.provenance
        return facts[IMPORTED_SHA256], facts[IMPORTED_ROW]


def launches_of(
    file: ResultFile, results: Sequence[Read], canonical: Canonical, engine: str
) -> tuple[list[Imported], list[str]]:
    """The launches that a file's results tell of, and a line for each row that tells one of them again.

    Rows of one configuration are repeats. Rows with a prompt belong to the repeat that they name, else to the
    first one. The same numbers of the same configuration, without a repeat or a date to tell them apart, are one
    measurement written down twice.
    """
    groups: dict[tuple[str, str], list[Read]] = {}
    for read in results:
        groups.setdefault((canonical(read.result.config).key(), read.result.repeat), []).append(read)
    found: list[Imported] = []
    notes: list[str] = []
    for group in groups.values():
        totals, twice = _distinct([read for read in group if not read.result.prompt])
        notes += [
            f"{file.where(again)}: tells the same numbers as line {first}; counted once" for first, again in twice
        ]
        prompts = [read for read in group if read.result.prompt]
        made = [[read] for read in totals] or [[]]
        made[0] = [*made[0], *prompts]
        found += [_launch(file, reads, canonical, engine) for reads in made if reads]
    return sorted(found, key=lambda one: int(one.record.provenance[IMPORTED_ROW].split(" ")[0])), notes


def _distinct(reads: Sequence[Read]) -> tuple[list[Read], list[tuple[int, int]]]:
    """The first of equal ones, and for each further one the lines of both."""
    seen: dict[tuple[object, ...], Read] = {}
    twice: list[tuple[int, int]] = []
    for read in reads:
        result = read.result
        key = (tuple(sorted(result.metrics.items())), result.ended_at)
        if key in seen:
            twice.append((seen[key].line, read.line))
        else:
            seen[key] = read
    return list(seen.values()), twice


def _launch(file: ResultFile, reads: Sequence[Read], canonical: Canonical, engine: str) -> Imported:
    """One launch of its total row, if there is one, and of its rows by prompt."""
    result = reads[0].result
    prompts = [read.result for read in reads if read.result.prompt]
    rates = _by_prompt(prompts)
    metrics = dict(result.metrics) if not result.prompt else _over_prompts(prompts)
    if rates:
        metrics["mean_prompt_throughput"] = statistics.fmean(rates.values())
    ended = result.ended_at or datetime.datetime.fromtimestamp(file.told_at_s, datetime.UTC)
    steps = metrics.get("num_verify_steps", 0.0)
    record = LaunchRecord(
        trial_number=0,
        launch_number=0,
        purpose=Purpose.SEARCH,
        requested=result.config,
        canonical=canonical(result.config),
        host=result.facts.get("host", NOT_TOLD),
        started_at=ended - datetime.timedelta(seconds=result.duration_s),
        ended_at=ended,
        metrics=metrics,
        prompt_throughputs=rates,
        first_pass_throughputs=rates,
        class_throughputs=_by_class(prompts),
        accepted_per_position=tuple(round(share * steps) for share in result.positions) if steps else (),
        accept_definition="as imported" if "accept_length" in metrics else "",
        doubts=tuple(dict.fromkeys(doubt for read in reads for doubt in read.result.doubts)),
        provenance=_provenance(file, reads, engine),
    )
    return Imported(result.drafts, record)


def _provenance(file: ResultFile, reads: Sequence[Read], engine: str) -> dict[str, str]:
    """What the file tells of the numbers' origin, and where they were read. Nothing that it does not tell."""
    lines = sorted(read.line for read in reads)
    more = f" and {len(lines) - 1} more, to {lines[-1]}" if len(lines) > 1 else ""
    facts = {**reads[0].result.facts, **reads[0].result.load}
    facts = {
        name: value for name, value in facts.items() if name in ("engine_version", "model", "gpus", "workload")
    }
    return {
        "engine": engine,
        **facts,
        IMPORTED_FILE: file.name,
        IMPORTED_SHA256: file.sha256,
        IMPORTED_ROW: f"{lines[0]}{more}",
    }


def _rate(result: Result) -> float:
    """The row's throughput, whichever it tells."""
    return next(
        result.metrics[n]
        for n in ("output_throughput", "decode_throughput", "request_throughput")
        if n in result.metrics
    )


def _by_prompt(prompts: Sequence[Result]) -> dict[str, float]:
    """Prompt to the mean of its rates."""
    rates: dict[str, list[float]] = {}
    for result in prompts:
        rates.setdefault(result.prompt, []).append(_rate(result))
    return {prompt: statistics.fmean(values) for prompt, values in rates.items()}


def _by_class(prompts: Sequence[Result]) -> dict[str, float]:
    """Class to its output tokens over its time, where all of its prompts tell both."""
    classes: dict[str, list[Result]] = {}
    for result in prompts:
        if result.prompt_class:
            classes.setdefault(result.prompt_class, []).append(result)
    found = {name: _over_prompts(members) for name, members in classes.items()}
    return {
        name: metrics["output_throughput"] for name, metrics in found.items() if "output_throughput" in metrics
    }


def _over_prompts(prompts: Sequence[Result]) -> dict[str, float]:
    """Of single prompts: all tokens over all time, where each tells both; means of what is a mean anyway."""
    metrics: dict[str, float] = {}
    tokens = _sum(prompts, "num_output_tokens")
    time_ms = _sum(prompts, "e2e_latency_ms")
    if tokens and time_ms:
        metrics |= {"output_throughput": 1000 * tokens / time_ms, "num_output_tokens": tokens}
    lengths = [result.metrics["accept_length"] for result in prompts if "accept_length" in result.metrics]
    if lengths and len(lengths) == len(prompts):
        metrics["accept_length"] = statistics.fmean(lengths)
    return metrics


def _sum(results: Sequence[Result], metric: str) -> float | None:
    values = [result.metrics.get(metric) for result in results]
    return sum(value for value in values if value is not None) if all(v is not None for v in values) else None


def facts_of(records: Sequence[LaunchRecord]) -> Mapping[str, str]:
    """The facts that all of the records tell alike."""
    found: dict[str, set[str]] = {}
    for record in records:
        for name, value in record.provenance.items():
            found.setdefault(name, set()).add(value)
    return {name: values.pop() for name, values in found.items() if len(values) == 1}
