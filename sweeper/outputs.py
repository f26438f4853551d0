"""Whether a configuration writes what the baseline writes: the lossless gate's comparison. Pure.

Speculation that verifies exactly keeps the greedy text, but for one thing: verifying several tokens at once sums
in another order than decoding one by one, and where two tokens are nearly equally likely that decides. On GPUs
such flips are common (of 80 greedy outputs only 50 were equal), on llama.cpp rarer; an engine may even differ from
itself from start to start. So a difference alone excludes nothing. Two questions are answered instead:

- `beyond_own`: does the configuration differ from the baseline more often than the baseline from itself? A flag.
  One launch is set against one: the more launches, the more of their texts differ somewhere.
- `corrupt`: do most of its texts differ from the first words on? No near-tie does that; a wrong tree mask, a wrong
  all-reduce, wrong weights or another template do. That configuration serves something else. Where a short answer
  ends ("Yes" or "Yes.") is not its first words; that a long one ends after its first words is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sweeper.records import TrialRecord
from sweeper.statistics.stats import fisher_greater
from sweeper.text_marks import are_marks, divergence, is_same, length_of

_FIRST = 16
"""Characters within which texts part at once. An answer that is no longer is one near-tie from any other."""

EARLY = 64
"""Characters (some fifteen tokens) within which no near-tie is to be expected in most texts."""

SIGNIFICANCE = 0.05
ENOUGH = 10
"""A baseline that has repeated so many texts without one difference is taken to repeat itself always."""

_LEAST = 3
"""Of fewer compared texts all must differ, each within its first few characters: one near-tie may come early.

A short answer is no evidence then: its first word may be the near-tie, and there is none that follows.
"""

_AT_ITS_END = 8
"""A text that ends within this part of the other, which is so many times as long, has not ended as texts do."""


@dataclass(frozen=True)
class OutputComparison:
    """A trial's texts against the baseline's, and the baseline's from launch to launch. A text: one request.

    `num_different`: those of which some launch wrote something that no launch of the baseline did.
    `own_different`: those that the baseline's launches did not all write alike. `first_difference`: how many
    characters are surely equal before the earliest difference. `text`: in words; empty when nothing differs.
    """

    num_compared: int = 0
    num_different: int = 0
    own_compared: int = 0
    own_different: int = 0
    first_difference: int | None = None
    beyond_own: bool = False
    corrupt: bool = False
    text: str = ""


def compare_outputs(trial: TrialRecord, baseline: TrialRecord) -> OutputComparison:
    """`BaselineOutputs.compare`, for a single trial."""
    return BaselineOutputs(baseline).compare(trial)


class BaselineOutputs:
    """The texts that the baseline wrote, read once: any number of trials can be compared with them.

    Texts of further workloads count like those of the first. Of a workload with a temperature above 0 texts are
    drawn, so records hold none and nothing is compared.
    """

    def __init__(self, baseline: TrialRecord) -> None:
        self._number = baseline.number
        self._texts = _texts(baseline)
        self._distinct = {key: tuple(dict.fromkeys(found)) for key, found in self._texts.items()}
        repeated = [found for found in self._texts.values() if len(found) > 1]
        own = [_apart(found[1:], found[:1]) for found in repeated]
        self._own_compared = len(own)
        self._own_apart = [apart for apart in own if apart is not None]
        self._own_at_once = sum(not is_same(found[1], found[0]) for found in repeated)

    def compare(self, trial: TrialRecord) -> OutputComparison:
        """The texts of all measured launches of `trial` against the baseline's, request by request.

        `beyond_own` is the one-sided exact test of Fisher at 5 %: the first launch of the trial against the
        baseline's first, as the baseline's second against its first. Where the baseline never differed from itself
        in ten texts or more, one difference is enough: that engine repeats itself.
        """
        ours = {} if trial.number == self._number else _texts(trial)
        known = {key: found for key, found in ours.items() if key in self._texts}
        every = [_apart(found, self._distinct[key]) for key, found in known.items()]
        apart = [where for where in every if where is not None]
        at_once = sum(not is_same(found[0], self._texts[key][0]) for key, found in known.items())
        counts = OutputComparison(
            num_compared=len(every),
            num_different=len(apart),
            own_compared=self._own_compared,
            own_different=len(self._own_apart),
            first_difference=min((one.low for one in apart), default=None),
            beyond_own=bool(apart) and self._is_beyond_own(at_once, len(every)),
            corrupt=self._is_corrupt(apart, len(every)),
        )
        return replace(counts, text=_words(counts))

    @property
    def basis(self) -> tuple[object, ...]:
        """What `corrupts` depends on: while this is equal, the same trial gets the same answer."""
        return self._number, self._distinct, self._own_repeats

    def corrupts(self, trial: TrialRecord) -> bool:
        """`compare(trial).corrupt` alone: for who asks of every trial after each launch."""
        ours = {} if trial.number == self._number else _texts(trial)
        every = [_apart(found, self._distinct[key]) for key, found in ours.items() if key in self._distinct]
        return self._is_corrupt([where for where in every if where is not None], len(every))

    @property
    def _own_repeats(self) -> bool:
        """Whether the baseline's own texts hardly ever part in their first words."""
        return 4 * _early(self._own_apart) <= self._own_compared

    def _is_corrupt(self, apart: Sequence[_Apart], compared: int) -> bool:
        if compared < _LEAST:
            return 0 < compared == sum(one.is_at_once for one in apart) and self._own_repeats
        return 2 * _early(apart) > compared and self._own_repeats

    def _is_beyond_own(self, different: int, compared: int) -> bool:
        if not different or not self._own_compared:
            return False
        if not self._own_apart and self._own_compared >= ENOUGH:
            return True
        return fisher_greater(different, compared, self._own_at_once, self._own_compared) < SIGNIFICANCE


def _texts(trial: TrialRecord) -> Mapping[str, list[str]]:
    """Request (of any workload) to the marks of each launch, oldest first; what cannot be read is left out."""
    found: dict[str, list[str]] = {}
    for launch in trial.measured:
        named = [("", launch.outputs), *((f"{name}: ", other.outputs) for name, other in launch.others.items())]
        for workload, outputs in named:
            for key, text in outputs.items():
                if are_marks(text):
                    found.setdefault(workload + key, []).append(text)
    return found


@dataclass(frozen=True, order=True)
class _Apart:
    """Two texts part after `low` <= n < `high` equal characters; they have `shorter` and `longer` characters."""

    low: int
    high: int
    shorter: int
    longer: int

    @property
    def is_early(self) -> bool:
        """Whether in the first words; the end of a short answer is none of these, that of a long one may be."""
        in_first_half = 2 * self.low < self.shorter or _AT_ITS_END * self.low < self.longer
        return self.high <= EARLY and in_first_half

    @property
    def is_at_once(self) -> bool:
        """Whether within the first few characters of an answer that has more of them."""
        return self.is_early and self.high <= _FIRST < self.longer


def _apart(texts: Sequence[str], known: Sequence[str]) -> _Apart | None:
    """Where texts that are not among `known` part from the most similar one, at the earliest; None: all are."""
    found = (_nearest(text, known) for text in texts if text not in known)
    return min((apart for apart in found if apart is not None), default=None)


def _nearest(text: str, known: Sequence[str]) -> _Apart | None:
    """None: it is one of them, whose marks an earlier version made."""
    found = [(divergence(text, other), sorted((length_of(text), length_of(other)))) for other in known]
    if any(at is None for at, _ in found):
        return None
    return max(_Apart(*at, *lengths) for at, lengths in found if at is not None)


def _early(apart: Sequence[_Apart]) -> int:
    return sum(one.is_early for one in apart)


def _words(counts: OutputComparison) -> str:
    """The comparison as a sentence; empty when nothing differs, or nothing could be compared."""
    if not counts.num_different:
        return ""
    texts = f"{counts.num_different} of {counts.num_compared} greedy outputs differ from the baseline's"
    where = f"the earliest after {counts.first_difference} characters or a few more"
    own = f"the baseline differs from itself in {counts.own_different} of {counts.own_compared}"
    if not counts.own_compared:
        own = "the baseline has not been launched twice yet"
    elif not counts.own_different:
        own = f"the baseline repeated itself in all of {counts.own_compared}"
    judged = ""
    if counts.corrupt:
        judged = (
            ": most differ from their first words on, so this is no rounding: the server writes something else"
        )
    elif counts.beyond_own:
        judged = ": more than by chance; near-ties that rounding decides do that, and so may a fault"
    return f"{texts}, {where}; {own}{judged}"
