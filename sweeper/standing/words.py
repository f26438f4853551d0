"""A `Standing` for people, as labelled lines. Pure."""

from __future__ import annotations

import datetime
from collections.abc import Iterator

from launchers.clock import SystemClock
from sweeper.deadline import shown_end
from sweeper.metrics import METRICS
from sweeper.records import Purpose
from sweeper.standing.eta import Eta, until
from sweeper.standing.model import Best, Left, Now, Standing
from sweeper.standing.spark import sparkline
from sweeper.storing.damage import MOST_TOLD
from sweeper.tally import luck_text, spent
from sweeper.text import plain

Line = tuple[str, str]
"""A label and what it says; a line that goes on has an empty label."""

LABEL = 8
"""Characters that labels take, the space behind them included."""

_MOST_BARS = 60


def lines(standing: Standing, width: int, *, ascii_only: bool = False) -> list[Line]:
    """What is worth saying, most important first, for a screen of so many columns."""
    return [
        ("study", f"{plain(standing.study)}: {progress_text(standing)}"),
        *_now(standing),
        *([("left", text)] if (text := _left(standing)) else []),
        ("best", _best(standing)),
        *_course(standing, width, ascii_only=ascii_only),
        *(("failed" if i == 0 else "", text) for i, text in enumerate(_failures(standing))),
        *([("mlflow", text)] if (text := _mlflow(standing)) else []),
        *([("verdict", plain(standing.verdict, 2000))] if standing.verdict else []),
        *(("damaged" if i == 0 else "", text) for i, text in enumerate(_damaged(standing))),
    ]


def progress_text(standing: Standing) -> str:
    """`14 of 30 trials done (12 complete, 2 infeasible); 17 launches: 1 baseline, 13 search, 3 control`."""
    done = sum(count for state, count in standing.trials.items() if state != "running")
    total = f" of {standing.left.trials_total}" if standing.left else ""
    states = ", ".join(f"{n} {state}" for state, n in standing.trials.items() if n)
    order = [purpose.value for purpose in Purpose]
    made = sorted(((p, n) for p, n in standing.launches.items() if n), key=lambda pair: order.index(pair[0]))
    purposes = ", ".join(f"{n} {purpose}" for purpose, n in made)
    count = sum(standing.launches.values())
    text = f"{done}{total} trials done" + (f" ({states})" if states else "")
    return f"{text}; {count} launch{'es' if count != 1 else ''}" + (f": {purposes}" if purposes else "")


def _now(standing: Standing) -> Iterator[Line]:
    for index, now in enumerate(standing.now):
        yield ("now" if index == 0 else "", _doing(now, standing.at))
    if not standing.now:
        begun = ", ".join(map(str, standing.running))
        yield ("now", "no sweep runs here" + (f"; begun and not ended: trial {begun}" if begun else ""))


def _doing(now: Now, at: datetime.datetime) -> str:
    who = f"{plain(now.worker)} (pid {now.pid} on {plain(now.host)})"
    if now.is_alive is None:
        who += f", not to be seen from here; wrote this {spent((at - now.written_at).total_seconds())} ago"
    if not now.phase:
        return f"nothing for this study: {who}"
    began = now.phase_began_at or now.written_at
    phase = f"{plain(now.phase)}, {phase_text((at - began).total_seconds(), now.expected_s)}"
    return f"{plain(now.title)}: {phase}; {who}" if now.title else f"{phase}; {who}"


def phase_text(elapsed_s: float, expected_s: float | None) -> str:
    """`42 s of about 90 s`; without an expectation what has passed."""
    passed = spent(max(0.0, elapsed_s))
    return passed if expected_s is None else f"{passed} of about {spent(expected_s)}"


def _left(standing: Standing) -> str:
    """Launches and time to go, with its interval, and against the deadline; empty when nothing says."""
    left = standing.left
    if left is None or not left.launches:
        return ""
    text = f"up to {left.launches} launch{'es' if left.launches != 1 else ''}"
    eta = _eta(left, standing.at if standing.now else left.at)
    if eta is None:
        return text
    text += f", {eta_text(eta)}"
    if left.deadline_at is None:
        return text
    remaining_s = until(left.deadline_at, standing.at)
    when = shown_end(left.deadline_at, standing.at, SystemClock().zone())
    return f"{text}; deadline {when} in {spent(max(0.0, remaining_s))}: {eta.against(remaining_s)}"


def _eta(left: Left, at: datetime.datetime) -> Eta | None:
    """The time to the end as of `at`: less what has passed, but of the present launch only."""
    if left.eta_s is None or left.low_s is None or left.high_s is None:
        return None
    passed_s = min((at - left.at).total_seconds(), left.eta_s / left.launches)
    return Eta(*(max(0.0, seconds - passed_s) for seconds in (left.eta_s, left.low_s, left.high_s)))


def eta_text(eta: Eta) -> str:
    """`about 2 h 10 min (1 h 50 min to 2 h 30 min)`."""
    low, high = spent(eta.low_s), spent(eta.high_s)
    return f"about {spent(eta.mean_s)}" + (f" ({low} to {high})" if low != high else "")


def _best(standing: Standing) -> str:
    metric = METRICS[standing.objective]
    if standing.baseline is None:
        is_damaged = any(text.startswith("trial 0") for text in standing.damaged)
        return "what the baseline did cannot be read" if is_damaged else "the baseline has not been measured yet"
    base = f"baseline {metric.format(standing.baseline)} {metric.unit}".rstrip()
    best = standing.best
    if best is None:
        return base
    about = "≈ " if best.estimated else ""
    value = f"{about}{metric.format(best.value)} {metric.unit}".rstrip()
    return f"trial {best.trial}: {plain(best.name)}: {value}, {_ratio(best)}; {base}"


def _ratio(best: Best) -> str:
    if best.ratio is None:
        return ""
    return ", ".join(filter(None, [f"{best.ratio:.2f} x", luck_text(best.ratio, best.luck_pct)]))


def _course(standing: Standing, width: int, *, ascii_only: bool) -> Iterator[Line]:
    if len(standing.course) > 1:
        metric = METRICS[standing.objective]
        ends = [metric.format(value) for value in (standing.course[0], standing.course[-1])]
        room = width - LABEL - sum(map(len, ends)) - 2
        bars = sparkline(standing.course, min(_MOST_BARS, room), ascii_only=ascii_only)
        yield ("course", f"{ends[0]} {bars} {ends[1]}")


def _failures(standing: Standing) -> Iterator[str]:
    for failed in standing.failures:
        yield f"trial {failed.trial}: {failed.kind}: {plain(failed.message, 160)}"


def _mlflow(standing: Standing) -> str:
    lag = standing.mlflow
    if lag is None or not (lag.behind or lag.error):
        return ""
    text = f"{lag.behind} trial{'s' if lag.behind != 1 else ''} behind"
    since = f"{spent((standing.at - lag.at).total_seconds())} ago"
    return f"{text} {since}" + (f": {plain(lag.error)}" if lag.error else "")


def _damaged(standing: Standing) -> Iterator[str]:
    shown = standing.damaged[:MOST_TOLD]
    yield from (f"left out: {plain(text, 400)}" for text in shown)
    if left := len(standing.damaged) - len(shown):
        yield f"and {left} more; `specsweep report` looks at all"
