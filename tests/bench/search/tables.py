"""The tables of the comparison, from finished runs. The baseline's restart and failed ones count as any other."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence

from sweeper.samplers.physics.stopping import LITTLE
from tests.bench.search.results import Run

REFERENCE = "tpe"
"""Whom the others must not be worse than where the physics is wrong."""
CLOSE_PCT, NEAR_PCT = 2.0, 5.0
LEAST_GAINS_PCT = (0.5, 0.4, 0.3, 100 * LITTLE, 0.15)
"""Thresholds of the stopping rule. When its own one ends a night was asked of it during the run."""
NEVER = math.inf


def comparison(runs: Sequence[Run]) -> str:
    """All methods where the physics holds."""
    head = (
        "method", "runs", "restarts to 2 %: median", "p90", "reached after 10 / 20 / 40", "to 5 %: median", "p90",
        "regret % after 10 / 20 / 40", "failed starts",
    )  # fmt: skip
    return as_markdown(head, (_comparison_row(method, found) for method, found in _by_method(runs, 0.0)))


def _comparison_row(method: str, runs: Sequence[Run]) -> list[str]:
    close, near = ([restarts_to(run, limit) for run in runs] for limit in (CLOSE_PCT, NEAR_PCT))
    reached = (_share(restarts <= limit for restarts in close) for limit in (10, 20, 40))
    regret = (f"{mean_regret_pct(runs, limit):.1f}" for limit in (10, 20, 40))
    budget = len(runs[0].shares)
    failed = statistics.mean(run.num_failures / budget for run in runs)
    return [
        method,
        str(len(runs)),
        _restarts(quantile(close, 0.5), budget),
        _restarts(quantile(close, 0.9), budget),
        " / ".join(reached),
        _restarts(quantile(near, 0.5), budget),
        _restarts(quantile(near, 0.9), budget),
        " / ".join(regret),
        f"{100 * failed:.0f} %",
    ]


def wrong_physics(runs: Sequence[Run]) -> str:
    """How the methods fare where the physics does not hold, each against the reference on the same server."""
    head = (
        "how wrong", "method", "runs", "regret % after 20 / 40", f"servers where > 2 % worse than {REFERENCE}",
        "at worst",
    )  # fmt: skip
    rows = []
    for wrong in sorted({run.wrong for run in runs} - {0.0}):
        reference = regret_by_server([r for r in runs if r.wrong == wrong and r.method == REFERENCE], 40)
        for method, found in _by_method(runs, wrong):
            own = regret_by_server(found, 40)
            losses = [own[seed] - reference[seed] for seed in own if seed in reference]
            beside = ["–", "–"]
            if losses:
                beside = [f"{sum(loss > 2 for loss in losses)} of {len(losses)}", f"{max(losses):+.1f} %"]
            regret = f"{mean_regret_pct(found, 20):.1f} / {mean_regret_pct(found, 40):.1f}"
            rows.append([f"{wrong:g}", method, str(len(found)), regret, *beside])
    return as_markdown(head, rows)


def baseline_is_best(runs: Sequence[Run]) -> str:
    """The servers on which nothing speculative beats the best baseline."""
    head = ("method", "runs", "regret % after 10 / 20 / 40")
    rows = []
    for method, found in _by_method([run for run in runs if run.baseline_is_best], 0.0):
        regret = (f"{mean_regret_pct(found, limit):.1f}" for limit in (10, 20, 40))
        rows.append([method, str(len(found)), " / ".join(regret)])
    return as_markdown(head, rows)


def stopping(runs: Sequence[Run]) -> str:
    """When the stopping rule ends the night, and what that costs; a night that it never ends lasts the budget.

    With its own threshold, and with others, from the gains that were shown.
    """
    head = (
        "method", "how wrong", "least gain %", "runs", "restarts: median", "p90", "never ends", "regret %: mean",
        "> 2 % short", "> 5 % short",
    )  # fmt: skip
    rows = []
    for wrong in sorted({run.wrong for run in runs}):
        for method, found in _by_method([run for run in runs if run.gains_pct], wrong):
            rows += [[method, f"{wrong:g}", *_stopped(found, least)] for least in LEAST_GAINS_PCT]
    return as_markdown(head, rows)


def _stopped(runs: Sequence[Run], least_gain_pct: float) -> list[str]:
    is_own = least_gain_pct == 100 * LITTLE
    stops = [run.stops_after if is_own else run.stops_below(least_gain_pct) for run in runs]
    ends = [stop or len(run.shares) for run, stop in zip(runs, stops, strict=True)]
    regrets = [run.regret_pct(end) for run, end in zip(runs, ends, strict=True)]
    return [
        f"{least_gain_pct:g}",
        str(len(runs)),
        f"{quantile(ends, 0.5):.0f}",
        f"{quantile(ends, 0.9):.0f}",
        _share(stop is None for stop in stops),
        f"{statistics.mean(regrets):.2f}",
        _share(regret > CLOSE_PCT for regret in regrets),
        _share(regret > NEAR_PCT for regret in regrets),
    ]


def forecasts(runs: Sequence[Run]) -> str:
    """What the forecasts of throughput were worth; nine of ten measurements should lie in their interval."""
    head = ("method", "how wrong", "forecasts", "inside the interval", "typical miss: median of the runs", "p90")
    rows = []
    for wrong in sorted({run.wrong for run in runs}):
        for method, found in _by_method(runs, wrong):
            told = [run.foretold for run in found if run.foretold]
            if told:
                count, inside = sum(each.num_told for each in told), sum(each.num_inside for each in told)
                misses = [each.miss_pct for each in told]
                typical = (f"{quantile(misses, share):.1f} %" for share in (0.5, 0.9))
                rows.append([method, f"{wrong:g}", str(count), f"{100 * inside / count:.0f} %", *typical])
    return as_markdown(head, rows)


def restarts_to(run: Run, regret_pct: float) -> float:
    """As the run's own, NEVER for never."""
    restarts = run.restarts_to(regret_pct)
    return NEVER if restarts is None else restarts


def quantile(values: Sequence[float], share: float) -> float:
    """The smallest value that this share of all does not exceed."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


def mean_regret_pct(runs: Sequence[Run], restarts: int) -> float:
    """The mean over runs."""
    return statistics.mean(run.regret_pct(restarts) for run in runs)


def regret_by_server(runs: Sequence[Run], restarts: int) -> dict[int, float]:
    """The mean over the repeats on each server, by its seed."""
    seeds = {run.seed for run in runs}
    return {seed: mean_regret_pct([run for run in runs if run.seed == seed], restarts) for seed in seeds}


def as_markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table as the documentation has it; the first column to the left."""
    marks = ["---", *("---:" for _ in head[1:])]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, marks, *rows))


def _by_method(runs: Sequence[Run], wrong: float) -> list[tuple[str, list[Run]]]:
    """The runs of each method, in the order in which methods first appear."""
    found: dict[str, list[Run]] = {}
    for run in runs:
        if run.wrong == wrong:
            found.setdefault(run.method, []).append(run)
    return list(found.items())


def _restarts(value: float, budget: int) -> str:
    return f"> {budget}" if value == NEVER else f"{value:.0f}"


def _share(flags: Iterable[bool]) -> str:
    found = list(flags)
    return f"{100 * sum(found) / len(found):.0f} %"
