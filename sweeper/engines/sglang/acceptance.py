"""What SGLang's answers say of acceptance, in each version. All of it is untrusted.

Read in tokenizer_manager.py (_calculate_spec_decoding_metrics) and in what counts for it, of each version named:

| version | accepted drafts (without bonus token) | proposed drafts | histogram |
|---|---|---|---|
| before 0.5.8 (refused by the engine) | - | - | - |
| 0.5.8 | spec_accept_token_num | spec_draft_token_num | - |
| 0.5.10 | the same | the same | spec_accept_histogram |
| 0.5.15, 0.5.20 | spec_num_correct_drafts (and spec_accepted_drafts) | spec_num_proposed_drafts | both names |
| 0.5.23 | spec_num_correct_drafts | spec_num_proposed_drafts | spec_correct_drafts_histogram |

Every version counts a draft as accepted when the target verified it, even if the answer ended before it: a run
that max_tokens or an end-of-sequence token cuts short counts whole. The first token is the prefill's and no verify
step's. So `1 + accepted / steps` is exactly what verification kept per step; `spec_accept_length` of the server
itself (completion tokens / steps, in every version) counts the prefill's token and leaves out what was cut off.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sweeper.text import plain

CORRECT_DRAFTS = "1 + correct drafts / verify steps, per request"
TWO_OWN = "2 + correct drafts / verify steps, per request: this algorithm adds two tokens of its own to each step"
FALLBACK = "(completion tokens - 1) / verify steps, per request: this version does not count correct drafts"

MAX_COUNT = 10**9
"""No answer has more tokens: a larger count is nonsense, and would spoil every sum it enters."""

MAX_HISTOGRAM = 1024

# Newest name first.
_CORRECT = ("spec_num_correct_drafts", "spec_accepted_drafts", "spec_accept_token_num")
_PROPOSED = ("spec_num_proposed_drafts", "spec_proposed_drafts", "spec_draft_token_num")
_HISTOGRAM = ("spec_correct_drafts_histogram", "spec_accept_histogram")


@dataclass(frozen=True)
class Acceptance:
    """What one answer says of its drafts; None where it does not.

    `1 + num_accepted / num_steps` is accept_length. `source`: what that is, in words; empty without steps.
    """

    num_steps: int | None
    num_accepted: int | None
    num_drafted: int | None
    histogram: tuple[int, ...]
    source: str


def acceptance(meta: Mapping[str, Any]) -> Acceptance:
    """The acceptance in an answer's meta_info. Raises ValueError when a figure is no count.

    Where accepted drafts are not counted, those are filled in that give (completion tokens - 1) / steps. That is
    too low by the drafts that were cut off at the end / steps, and never too high.
    """
    steps, correct = count(meta, "spec_verify_ct"), _first_count(meta, _CORRECT)
    drafted = _first_count(meta, _PROPOSED)
    source = ""
    accepted = correct
    if steps and correct is None:
        tokens = count(meta, "completion_tokens")
        accepted, source = None if tokens is None else max(0, tokens - 1 - steps), FALLBACK
    elif steps and correct is not None:
        two = _adds_two(meta, steps, correct)
        accepted, source = correct + steps * two, TWO_OWN if two else CORRECT_DRAFTS
    if accepted is not None and drafted is not None and accepted > drafted:
        drafted = None  # under speculative_adaptive it is computed from a draft length that is not the real one
    return Acceptance(steps, accepted, drafted, _histogram(meta, steps, correct), source)


def _adds_two(meta: Mapping[str, Any], steps: int, correct: int) -> bool:
    """Whether each step added two tokens that are no accepted drafts: UNO's do (num_non_draft_tokens_per_req).

    Any other algorithm's add one, less what was cut off at the end; a request that was taken back and begun anew
    has one more each time. So more than half a token above one per step is told apart, in all but short answers.
    """
    tokens, again = count(meta, "completion_tokens") or 0, count(meta, "num_retractions") or 0
    return 2 * (tokens - 1 - correct - again) > 3 * steps


def _histogram(meta: Mapping[str, Any], steps: int | None, correct: int | None) -> tuple[int, ...]:
    """Verify steps by accepted drafts; empty when it is missing or contradicts the counts."""
    found: list[int] = next((meta[name] for name in _HISTOGRAM if isinstance(meta.get(name), list)), [])
    if len(found) > MAX_HISTOGRAM or not all(_is_count(value) for value in found):
        return ()
    if sum(found) != steps or sum(n * value for n, value in enumerate(found)) != correct:
        return ()
    return tuple(found)


def count(meta: Mapping[str, Any], name: str) -> int | None:
    """A count, None when absent. Raises ValueError when it is not one."""
    value = meta.get(name)
    if value is None:
        return None
    if not _is_count(value):
        raise ValueError(f"{name} is {plain(json.dumps(value))!r}, not a count")
    return int(value)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_COUNT


def _first_count(meta: Mapping[str, Any], names: Sequence[str]) -> int | None:
    """The count under the first of `names` that is there."""
    return next((count(meta, name) for name in names if meta.get(name) is not None), None)
