"""Whether a configuration writes what the baseline writes: the lossless gate's comparison. Pure.

Speculation that verifies exactly keeps the greedy text, but for one thing: verifying several tokens at once sums
in another order than decoding one by one, and where two tokens are nearly equally likely that decides. On GPUs
such flips are common (of 80 greedy outputs only 50 were equal), on llama.cpp rarer; an engine may even differ from
itself from start to start. So a difference alone excludes nothing. Two questions are answered instead:

- `beyond_own`: does the configuration differ from the baseline more often than the baseline from itself? A flag.
- `corrupt`: do most of its texts differ from the first words on? No near-tie does that; a wrong tree mask, wrong
  weights or another template do. That configuration serves something else.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sweeper.records import TrialRecord
from sweeper.stats import fisher_greater

_FIRST = 16
_MARKS = re.compile(r"(\d{1,12}):((?:[0-9a-f]{8})+)")
EARLY = 64
"""Characters (some fifteen tokens) within which no near-tie is to be expected in most texts."""

SIGNIFICANCE = 0.05
ENOUGH = 10
"""A baseline that has repeated so many texts without one difference is taken to repeat itself always."""

_LEAST = 3
"""Fewer compared texts than this show no corruption."""


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


def marks(text: str) -> str:
    """What is kept of a text for comparing it: its length, digests of its beginnings (16, 32, 64, ...) and of all.

    `LENGTH:DIGESTS` of 8 hex digits each; 80 characters for a text of 4,000.
    """
    hasher, done, found = hashlib.sha256(), 0, []
    for length in _lengths(len(text)):
        hasher.update(text[done:length].encode("utf-8", "surrogatepass"))
        found.append(hasher.hexdigest()[:8])
        done = length
    return f"{len(text)}:{''.join(found)}"


def _lengths(total: int) -> list[int]:
    """The lengths of the beginnings that are digested: powers of two below `total`, and `total`."""
    lengths, length = [], _FIRST
    while length < total:
        lengths.append(length)
        length *= 2
    return [*lengths, total]


def divergence(a: str, b: str) -> tuple[int, int] | None:
    """Between how many equal characters (low <= n < high) two texts part, from their marks; None: they are equal.

    A text that ends where the other goes on parts from it there. Raises ValueError for what are no marks.
    """
    (len_a, digests_a), (len_b, digests_b) = _read(a), _read(b)
    if len_a == len_b and digests_a[len_a] == digests_b[len_b]:
        return None
    low, high = 0, min(len_a, len_b) + (len_a != len_b)
    for length in sorted(digests_a.keys() & digests_b.keys()):
        if digests_a[length] != digests_b[length]:
            return low, min(high, length)
        low = length
    return low, high


def _read(text: str) -> tuple[int, dict[int, str]]:
    """Length of the text, and digests by the length of the beginning."""
    found = _MARKS.fullmatch(text)
    lengths = _lengths(int(found[1])) if found else []
    if found is None or len(found[2]) != 8 * len(lengths):
        raise ValueError(f"no marks of a text: {text[:80]!r}")
    digests = found[2]
    return int(found[1]), {length: digests[8 * i : 8 * i + 8] for i, length in enumerate(lengths)}


def compare_outputs(trial: TrialRecord, baseline: TrialRecord, greedy: bool = True) -> OutputComparison:
    """The texts of all measured launches of `trial` against those of `baseline`, request by request.

    Not `greedy` (the temperature is above 0): texts are drawn, and nothing is compared. Texts of further workloads
    count like those of the first.

    `beyond_own` is the one-sided exact test of Fisher at 5 %, each request counted once however often it was
    launched: launches of one configuration repeat each other. Where the baseline never differed from itself in ten
    texts or more, one difference is enough: that engine repeats itself, and the difference is the configuration's.
    """
    if not greedy:
        return OutputComparison()
    theirs, ours = _texts(baseline), _texts(trial) if trial.number != baseline.number else {}
    own = [_apart(found[1:], found[:1]) for found in theirs.values() if len(found) > 1]
    found_apart = [_apart(found, theirs[key]) for key, found in ours.items() if key in theirs]
    different = [apart for apart in found_apart if apart is not None]
    own_different = [apart for apart in own if apart is not None]
    counts = OutputComparison(
        num_compared=len(found_apart),
        num_different=len(different),
        own_compared=len(own),
        own_different=len(own_different),
        first_difference=min((low for low, _ in different), default=None),
        beyond_own=_beyond_own(len(different), len(found_apart), len(own_different), len(own)),
        corrupt=len(found_apart) >= _LEAST
        and 2 * _early(different) > len(found_apart)
        and 4 * _early(own_different) <= len(own),
    )
    return replace(counts, text=_words(counts))


def _texts(trial: TrialRecord) -> Mapping[str, list[str]]:
    """Request (of any workload) to the marks of each launch, oldest first; what cannot be read is left out."""
    found: dict[str, list[str]] = {}
    for launch in trial.measured:
        named = [("", launch.outputs), *((f"{name}: ", other.outputs) for name, other in launch.others.items())]
        for workload, outputs in named:
            for key, text in outputs.items():
                if _MARKS.fullmatch(text):
                    found.setdefault(workload + key, []).append(text)
    return found


def _apart(texts: Sequence[str], known: Sequence[str]) -> tuple[int, int] | None:
    """Where texts that are not among `known` part from the most similar one, at the earliest; None: all are."""
    found = [_nearest(text, known) for text in texts if text not in known]
    return min(found, default=None)


def _nearest(text: str, known: Sequence[str]) -> tuple[int, int]:
    return max(apart for other in known if (apart := divergence(text, other)) is not None)


def _early(apart: Sequence[tuple[int, int]]) -> int:
    return sum(high <= EARLY for _, high in apart)


def _beyond_own(different: int, compared: int, own_different: int, own_compared: int) -> bool:
    if not different or not own_compared:
        return False
    if not own_different and own_compared >= ENOUGH:
        return True
    return fisher_greater(different, compared, own_different, own_compared) < SIGNIFICANCE


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
