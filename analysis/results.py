"""The first part of the report: what the study is, the verdict, and the comparison behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from analysis.markup import (
    MISSING,
    Markdown,
    bold,
    count,
    duration,
    heading,
    inline,
    moment,
    number,
    table,
    trials,
)
from analysis.reading import Reading
from sweeper.metrics import METRICS
from sweeper.records import TrialRecord, TrialState
from sweeper.stats import CONFIDENCE
from sweeper.verdict import Comparison, VerdictKind

MAX_VALUES = 8
_CONFIDENCE = f"{100 * CONFIDENCE:.0f} %"


def title(reading: Reading) -> list[str]:
    """What this is, how far it has come, when and where."""
    lines = [f"# Sweep {inline(reading.name)}", "", f"- **State:** {_state(reading)}"]
    if reading.trials:
        counts = ", ".join(
            f"{len(found)} {word}"
            for state, word in (
                (TrialState.COMPLETE, "measured"),
                (TrialState.INFEASIBLE, "infeasible"),
                (TrialState.FAILED, "failed"),
                (TrialState.RUNNING, "unfinished"),
            )
            if (found := reading.in_state(state))
        )
        lines.append(f"- **Trials:** {len(reading.trials)} ({counts}), {count(len(reading.launches), 'launch')}")
    if reading.span:
        start, end = reading.span
        length = duration(reading.wall_clock_s)
        lines.append(f"- **Time:** {moment(start)} to {moment(end)} UTC, {length} from first start to last stop")
        hosts = ", ".join(dict.fromkeys(inline(launch.host) for launch in reading.launches))
        lines.append(f"- **Where:** host {hosts}, {_engine(reading.fingerprint)}")
    return lines


def _state(reading: Reading) -> str:
    running = reading.in_state(TrialState.RUNNING)
    if not reading.trials:
        return "nothing has been measured yet."
    if running:
        words = f"not finished. Begun and not ended ({trials(running)}): being measured now, or interrupted."
        return f"{words} This report shows what is known so far."
    if reading.settled:
        return "finished."
    if reading.last_verdict:
        return "going on. Launches were made since the last verdict; this report counts them in."
    return "not finished. This report shows what is known so far."


def _engine(fingerprint: Mapping[str, str]) -> str:
    name, version, model = (fingerprint.get(k, "") for k in ("engine.name", "engine.version", "model.name"))
    return f"engine {inline(name)} {inline(version)}, model {inline(model)}"


def verdict(reading: Reading) -> list[str]:
    """The verdict in plain words, with its interval and how far to trust it."""
    verdict = reading.verdict
    lines = ["## Verdict" if reading.settled else "## Verdict so far", "", bold(_headline(reading)), ""]
    lines.append(inline(verdict.text, 2000))
    for name, values in reading.differing.items():
        shown = ", ".join(inline(value) for value in values)
        lines += ["", f"**Careful: launches differ in {inline(name)}:** {shown}. Such numbers do not compare."]
    if reading.advised_launch is not None:
        lines += ["", "[How to run it](#how-to-run-it) has the command."]
    return lines


def _headline(reading: Reading) -> Markdown:
    verdict = reading.verdict
    if verdict.advised is None:
        return Markdown("No verdict yet.")
    if verdict.kind is VerdictKind.NO_GAIN:
        return Markdown("Run the baseline: no gain from speculation has been shown.")
    advised = next(row for row in verdict.comparisons if row.trial_number == verdict.advised)
    gain = f"{100 * (advised.speedup - 1):.1f} % faster than the baseline"
    if verdict.kind is VerdictKind.TIE:
        return Markdown(f"Run trial {advised.trial_number}, the simplest of {len(verdict.tied)} equals: {gain}.")
    return Markdown(f"Run trial {advised.trial_number}: {gain}.")


def comparison(reading: Reading) -> list[str]:
    """The configurations of the verdict against the baseline, each with the values behind its number."""
    verdict, metric = reading.verdict, reading.objective
    if verdict.baseline_value is None or not verdict.comparisons:
        return []
    columns = {
        "trial": "r",
        "configuration": "l",
        heading(metric): "r",
        heading("speedup"): "r",
        f"{_CONFIDENCE} interval": "l",
        "faster?": "l",
        f"each launch ({METRICS[metric].unit})": "l",
    }
    baseline = reading.by_number[0]
    first = [
        Markdown("0"),
        Markdown("baseline"),
        number(metric, verdict.baseline_value),
        number("speedup", 1.0),
        MISSING,
        MISSING,
        _values(reading, baseline),
    ]
    rows = [[bold(cell) for cell in first]]
    rows += [_compared_row(reading, row) for row in verdict.comparisons]
    how = (
        "Fresh launches made after the search, in turn with the baseline."
        if verdict.confirmed
        else "Launches of the search itself: enough to see who is ahead, too little to tell that from noise."
    )
    if verdict.confirmed:
        how += f" The intervals hold together with {_CONFIDENCE} confidence. One that spans 1 is not significant."
    return ["## Compared with the baseline", "", how, "", *table(columns, rows)]


def _compared_row(reading: Reading, row: Comparison) -> list[Markdown]:
    return [
        Markdown(str(row.trial_number)),
        inline(row.name),
        number(reading.objective, row.value),
        number("speedup", row.speedup),
        _interval(row),
        Markdown(_significance(row)),
        _values(reading, reading.by_number[row.trial_number]),
    ]


def _interval(row: Comparison) -> Markdown:
    if row.low is None or row.high is None:
        return MISSING
    return Markdown(f"{number('speedup', row.low)} to {number('speedup', row.high)}")


def _significance(row: Comparison) -> str:
    if row.low is None or row.high is None:
        return "unknown: not confirmed"
    if row.low > 1:
        return "yes"
    return "no: slower" if row.high < 1 else "not significant"


def _values(reading: Reading, trial: TrialRecord) -> Markdown:
    """The compared launches' values; of a single launch, its passes as well."""
    launches = reading.compared(trial)
    found = [launch.metrics[reading.objective] for launch in launches if reading.objective in launch.metrics]
    text = _numbers(reading.objective, found)
    if len(launches) == 1 and len(launches[0].repeat_throughputs) > 1 and reading.objective == "output_throughput":
        text += f" (passes: {_numbers('output_throughput', launches[0].repeat_throughputs)})"
    return Markdown(text)


def _numbers(metric: str, values: Sequence[float]) -> str:
    shown = ", ".join(number(metric, value) for value in values[:MAX_VALUES])
    return shown + (f" and {len(values) - MAX_VALUES} more" if len(values) > MAX_VALUES else "") or MISSING
