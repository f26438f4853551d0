"""The part of the report on the settings of NCCL that were timed without a server."""

from __future__ import annotations

from analysis.blocks import Block, Paragraph, Section, Table
from analysis.markup import MISSING, Markdown, count, duration, inline
from analysis.reading import Reading
from sweeper.probing.findings import Findings, Timing, restart_s

MAX_ROWS = 30
"""So many settings are shown: those that failed, then the fastest ones."""

_SHOWN_TOKENS = (1, 8, 64)


def all_reduce(reading: Reading) -> Section | None:
    """What each setting took, which of them failed, and what it all cost."""
    found = reading.all_reduce
    if found is None or not (found.timings or found.given_up):
        return None
    blocks: list[Block] = [Paragraph(_words(reading, found))]
    if not found.given_up:
        ordered = sorted(found.timings, key=_slowness)
        columns = {
            "setting of NCCL": "l",
            **{f"{count(n, 'token')} (us)": "r" for n in _SHOWN_TOKENS},
            "ended": "l",
        }
        caption = Markdown("Time of an all-reduce under each setting, by the number of tokens")
        blocks.append(Table(caption, columns, [_row(timing) for timing in ordered[:MAX_ROWS]]))
        if (left := len(ordered) - MAX_ROWS) > 0:
            blocks.append(Paragraph(Markdown(f"{count(left, 'slower setting')} left out.")))
    return Section("All-reduces without a server", blocks, folded=True)


def _words(reading: Reading, found: Findings) -> Markdown:
    """How it was done, what it cost, and what came of it."""
    cost = f"{found.cost_text(restart_s(reading.recorded))} ({inline(found.program)}, {found.num_ranks} GPUs, "
    cost += f"{found.hidden_size} numbers of 2 bytes per token)."
    if found.given_up:
        return Markdown(f"{cost} The timing itself failed and was given up: {inline(found.given_up)}")
    use = "The search expects more of the faster ones; the verdict does not know of this."
    failed = ", ".join(inline(timing.name) for timing in found.failed)
    ended = f"Hung or died, and not proposed: {failed}." if failed else "None hung or died."
    return Markdown(f"{cost} {use} {ended}")


def _slowness(timing: Timing) -> tuple[bool, float]:
    """Sort key: what failed first, then by the sum over all sizes."""
    return bool(timing.microseconds), sum(us for _, us in timing.microseconds)


def _row(timing: Timing) -> list[Markdown]:
    times = dict(timing.microseconds)
    name = f"{timing.name} (the baseline's)" if timing.is_default else timing.name
    cells = [Markdown(f"{times[n]:.1f}") if n in times else MISSING for n in _SHOWN_TOKENS]
    ended = inline(timing.failure) if timing.failure else Markdown(f"well, after {duration(timing.took_s)}")
    return [inline(name), *cells, ended]
