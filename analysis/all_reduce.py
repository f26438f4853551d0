"""The part of the report on the settings of NCCL that were timed without a server."""

from __future__ import annotations

from analysis.markup import MISSING, Markdown, count, duration, inline, table
from analysis.reading import Reading
from sweeper.probing.findings import Findings, Timing, restart_s

MAX_ROWS = 30
"""So many settings are shown: those that failed, then the fastest ones."""

_SHOWN_TOKENS = (1, 8, 64)


def all_reduce(reading: Reading) -> list[str]:
    """What each setting took, which of them failed, and what it all cost."""
    found = reading.all_reduce
    if found is None or not (found.timings or found.given_up):
        return []
    lines = ["## All-reduces without a server", "", _words(reading, found)]
    if found.given_up:
        return lines
    columns = {"setting of NCCL": "l", **{f"{count(n, 'token')} (us)": "r" for n in _SHOWN_TOKENS}, "ended": "l"}
    ordered = sorted(found.timings, key=_slowness)
    lines += ["", *table(columns, [_row(timing) for timing in ordered[:MAX_ROWS]])]
    left = len(ordered) - MAX_ROWS
    return [*lines, "", f"{count(left, 'slower setting')} left out."] if left > 0 else lines


def _words(reading: Reading, found: Findings) -> str:
    """How it was done, what it cost, and what came of it."""
    cost = f"{found.cost_text(restart_s(reading.recorded))} ({inline(found.program)}, {found.num_ranks} GPUs, "
    cost += f"{found.hidden_size} numbers of 2 bytes per token)."
    if found.given_up:
        return f"{cost} The timing itself failed and was given up: {inline(found.given_up)}"
    use = "The search expects more of the faster ones; the verdict does not know of this."
    failed = ", ".join(inline(timing.name) for timing in found.failed)
    return f"{cost} {use} " + (f"Hung or died, and not proposed: {failed}." if failed else "None hung or died.")


def _slowness(timing: Timing) -> tuple[bool, float]:
    """Sort key: what failed first, then by the sum over all sizes."""
    return bool(timing.microseconds), sum(us for _, us in timing.microseconds)


def _row(timing: Timing) -> list[Markdown]:
    times = dict(timing.microseconds)
    name = f"{timing.name} (the baseline's)" if timing.is_default else timing.name
    cells = [Markdown(f"{times[n]:.1f}") if n in times else MISSING for n in _SHOWN_TOKENS]
    ended = inline(timing.failure) if timing.failure else Markdown(f"well, after {duration(timing.took_s)}")
    return [inline(name), *cells, ended]
