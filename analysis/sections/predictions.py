"""The part of the report on what the search expected, and how right it was."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from analysis.blocks import Block, Paragraph, Section, Table
from analysis.markup import ESTIMATES, MISSING, Markdown, count, heading, inline, number
from analysis.reading import Reading
from sweeper.forecasts import Forecast, Span
from sweeper.naming import difference_text
from sweeper.records import TrialRecord, prediction_error_pct

MAX_ROWS = 40
"""So many trials are shown, the latest ones; the sums count all of them."""


def predictions(reading: Reading) -> Section | None:
    """What was expected of each trial against what its first launch showed."""
    told = [(t, t.forecast) for t in reading.recorded if t.forecast is not None and t.launches]
    if not told:
        return None
    columns = {
        "trial": "r",
        "configuration": "l",
        f"predicted {heading(reading.objective)}": "r",
        "measured": "r",
        "error (%)": "r",
        "predicted accept_len": "r",
        "measured accept_len": "r",
        "predicted step (ms)": "r",
        "starts (%)": "r",
        "chosen because": "l",
    }
    rows = [_row(reading, trial, forecast) for trial, forecast in told[-MAX_ROWS:]]
    table = Table(Markdown("What the search expected of each trial, and what was measured"), columns, rows)
    blocks: list[Block] = [Paragraph(Markdown(_sums(reading, told))), table]
    if any(n.estimated for t, _ in told[-MAX_ROWS:] for n in t.measured[:1]):
        blocks.append(Paragraph(Markdown(f"{ESTIMATES} It is not counted above.")))
    if (left := len(told) - MAX_ROWS) > 0:
        blocks.append(Paragraph(Markdown(f"{count(left, 'earlier trial')} left out.")))
    return Section("What was predicted", blocks, folded=True)


def _sums(reading: Reading, told: Sequence[tuple[TrialRecord, Forecast]]) -> str:
    """Errors, how often the interval held, and how many servers started, each against what was expected."""
    errors = [e for t, _ in told if (e := prediction_error_pct(t, reading.objective)) is not None]
    words = "Before each launch the search wrote down what it expected."
    if errors:
        held = sum(_held(trial, forecast.throughput, reading.objective) for trial, forecast in told)
        median = statistics.median(abs(error) for error in errors)
        words += (
            f" Half of the {len(errors)} measured values differ from it by less than {median:.1f} %; {held} of "
            "them lie in the interval, which should hold nine of ten."
        )
    expected = sum(forecast.p_start for _, forecast in told)
    started = sum(bool(trial.measured) for trial, _ in told)
    words += f" {started} of {len(told)} servers could be measured; {expected:.1f} were expected to start."
    last = told[-1][1].remaining_text
    return f"{words} When the last one was chosen, {last}." if last else words


def _held(trial: TrialRecord, span: Span | None, objective: str) -> bool:
    counted = prediction_error_pct(trial, objective) is not None
    return counted and span is not None and span.holds(trial.measured[0].metrics[objective])


def _row(reading: Reading, trial: TrialRecord, forecast: Forecast) -> list[Markdown]:
    first = trial.measured[0] if trial.measured else None
    metrics = first.metrics if first else {}
    error = prediction_error_pct(trial, reading.objective)
    accept = forecast.accept_length
    return [
        Markdown(str(trial.number)),
        inline(difference_text(trial.canonical, reading.base)),
        _span(reading.objective, forecast.throughput),
        number(reading.objective, metrics.get(reading.objective), estimated=bool(first and first.estimated)),
        MISSING if error is None else Markdown(f"{error:+.1f}"),
        MISSING if accept is None else number("accept_length", accept.mean),
        number("accept_length", metrics.get("accept_length")),
        MISSING if forecast.step_ms is None else Markdown(f"{forecast.step_ms.mean:.1f}"),
        Markdown(f"{100 * forecast.p_start:.0f}"),
        inline(forecast.reason),
    ]


def _span(metric: str, span: Span | None) -> Markdown:
    if span is None:
        return MISSING
    return Markdown(f"{number(metric, span.mean)} ({number(metric, span.low)} to {number(metric, span.high)})")
