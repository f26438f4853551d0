"""What a verdict says."""

from __future__ import annotations

import enum

from sweeper.deciding.drift import Drift
from sweeper.deciding.noise import Noise
from sweeper.records import Record


class VerdictKind(enum.StrEnum):
    """`tie`: several are better than the baseline but cannot be told apart; the simplest is advised."""

    WINNER = "winner"
    TIE = "tie"
    NO_GAIN = "no gain over the baseline"


class Comparison(Record):
    """One configuration against the baseline. What needs a spread is absent when the spread is unknown.

    `low` to `high` is the two-sided 90 % interval of `speedup`; each end alone holds with 95 %, together with the
    same end of all other finalists'. `p`: how often so great a speed-up would be seen without any.
    `num_choosing`: so many of the launches by which it was chosen count a little. `estimated`: its value is one,
    its only launch was ended early.
    """

    trial_number: int
    name: str
    value: float
    speedup: float
    low: float | None
    high: float | None
    num_launches: int
    p: float | None = None
    num_choosing: int = 0
    estimated: bool = False


class Excluded(Record):
    """A configuration that may not win, though its launches so far did more than the advised one's.

    `value` is their mean. `faster`: by more than one start is expected to differ from the next; else it is as
    fast. `estimated`: a launch of it was ended early.
    """

    trial_number: int
    name: str
    value: float
    reasons: tuple[str, ...]
    num_launches: int = 1
    faster: bool = True
    estimated: bool = False


class Verdict(Record):
    """`confirmed`: drawn from fresh launches of the finalists and the baseline, made after the search.

    `advised` is the trial to run in production: 0, the baseline, when nothing is shown to be better; None
    when not even the baseline was measured. `comparisons` are sorted, fastest first. `num_baseline_launches` are
    fresh ones. `differences`: in words, how the outputs of the configurations in question differ from the
    baseline's. `cut_short`: what was left out as time or energy ran out; else empty. `scale`: in words, how the
    hosts of a shared study compare, and whose values these are.
    """

    kind: VerdictKind
    confirmed: bool
    advised: int | None
    tied: tuple[int, ...] = ()
    baseline_value: float | None = None
    comparisons: tuple[Comparison, ...] = ()
    num_baseline_launches: int = 0
    drift: Drift = Drift()
    noise: Noise = Noise()
    excluded: tuple[Excluded, ...] = ()
    differences: tuple[str, ...] = ()
    cut_short: str = ""
    scale: str = ""
    text: str
