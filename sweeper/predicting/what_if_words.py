"""What a study answers about a configuration, in lines to print and as data for scripts. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from sweeper.kept_search import KeptSearch
from sweeper.metrics import METRICS, Metric
from sweeper.naming import difference_text
from sweeper.predicting.what_if import Answer
from sweeper.samplers.physics import Estimate
from sweeper.spec import FlagValue, ServerConfig


def as_data(kept: KeptSearch, answer: Answer) -> dict[str, object]:
    """The answer for scripts: spans have `mean`, `low` and `high`, nine of ten lie between the last two."""
    forecast, measured = answer.forecast, answer.measured
    spans = {
        kept.objective: forecast.throughput,
        "accept_length": forecast.accept_length,
        "step_time_ms": forecast.step_time_ms,
    }
    return {
        "flags": dict(answer.config.flags),
        "env": dict(answer.config.env),
        "rest_of_trial": answer.rest_of.number,
        "fitted": dict(answer.fitted),
        "predicted": {name: _span(span) for name, span in spans.items() if span is not None},
        "p_start": forecast.p_start,
        "measured_trial": measured.number if measured else None,
        "measured": measured.mean(kept.objective) if measured else None,
        "needed_accept_length": {
            str(trial.number): {"mean": span.value, "low": span.low, "high": span.high}
            for trial, span in answer.needed
        },
        "outside": {each.name: {"value": each.value, "measured": list(each.measured)} for each in answer.outside},
    }


def _span(span: Estimate) -> dict[str, float]:
    return {"mean": span.mean, "low": span.low, "high": span.high}


def words(kept: KeptSearch, answer: Answer, baseline: ServerConfig) -> list[str]:
    """The answer as lines to print: the configuration, a small table, and what would have to be better."""
    trial = answer.measured
    lines = [
        difference_text(answer.config, baseline),
        f"What was not asked for is as in trial {answer.rest_of.number}{_but(answer.fitted)}.",
        "",
        _line("", "predicted", "9 of 10 between", "measured" if trial else ""),
        *_span_lines(METRICS[kept.objective], answer),
        _line("starts", f"{100 * answer.forecast.p_start:.0f} %"),
        "",
    ]
    if trial:
        lines.append(f"Trial {trial.number} is this very configuration; the prediction knows it.")
    lines += [f"{each.text}: the model goes on from there, and may be wrong by more." for each in answer.outside]
    for rival, span in answer.needed:
        name = "the baseline" if rival.is_baseline else f"trial {rival.number}, the best so far,"
        needs = f"{span.value:.2f} (95 %: {span.low:.2f} to {span.high:.2f})"
        lines.append(f"As fast as {name} it would be at an accept_len of {needs}.")
    return lines


def _but(fitted: Mapping[str, FlagValue]) -> str:
    if not fitted:
        return ""
    return f", but {', '.join(f'{name}={value}' for name, value in fitted.items())}: its own does not fit"


def _span_lines(metric: Metric, answer: Answer) -> list[str]:
    forecast, trial = answer.forecast, answer.measured
    rows = (
        (metric.label, metric.unit, metric.digits, forecast.throughput, metric.name),
        ("accept_len", "tok", 2, forecast.accept_length, "accept_length"),
        ("step time", "ms", 2, forecast.step_time_ms, ""),
    )
    lines = []
    for label, unit, digits, span, name in rows:
        seen = trial.mean(name) if trial else None
        if span is not None:
            between = f"{span.low:,.{digits}f} and {span.high:,.{digits}f}"
            shown = "" if seen is None else f"{seen:,.{digits}f}"
            lines.append(_line(label, f"{span.mean:,.{digits}f} {unit}", between, shown))
    return lines


def _line(label: str, predicted: str, between: str = "", measured: str = "") -> str:
    return f"{label:<12}{predicted:>14}  {between:>20}  {measured:>10}".rstrip()
