"""llama.cpp's flags as tables: limits, defaults, which of them have an effect, and what became of old ones.

Run on the wheel xllamacpp 2026.10.11549; tests/engines/test_llamacpp_real.py runs it again on the installed one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

DRAFT_FLAGS = ("spec_draft_n_max", "spec_draft_n_min", "spec_draft_p_min")

TYPES: Mapping[str, tuple[str, ...]] = {
    # In the order in which the server tries them (common/speculative.cpp, common_speculative_init): a list's own
    # order is ignored. Each with the numeric flags that change what it does.
    "ngram-simple": ("spec_ngram_simple_size_n", "spec_ngram_simple_size_m"),
    "ngram-map-k": ("spec_ngram_map_k_size_n", "spec_ngram_map_k_size_m"),
    "ngram-map-k4v": (
        "spec_ngram_map_k4v_size_n",
        "spec_ngram_map_k4v_size_m",
        "spec_ngram_map_k4v_min_hits",
    ),
    # Its pool outlives a request, so repeats of a prompt get faster (49.7 -> 69.1 tok/s over three repeats): it
    # looks better than it is on a workload that repeats prompts. It does help such a load, so it is not refused.
    "ngram-mod": ("spec_ngram_mod_n_match", "spec_ngram_mod_n_min", "spec_ngram_mod_n_max"),
    "ngram-cache": (),
    "draft-simple": DRAFT_FLAGS,
    "draft-eagle3": DRAFT_FLAGS,
    "draft-mtp": DRAFT_FLAGS,
    "draft-dflash": DRAFT_FLAGS,
    "draft-dspark": DRAFT_FLAGS,
}

OWN_HEADS = frozenset({"draft-mtp"})
"""Draft types that need no second model: they use heads of the target."""

NO_EFFECT = frozenset({"spec_draft_p_split", "spec_ngram_simple_min_hits", "spec_ngram_map_k_min_hits"})
"""Accepted by the server and read by no drafter: 0.0 and 0.99, 1 and 100 gave the same drafts."""


@dataclass(frozen=True)
class NumberRule:
    """A numeric flag: its type, its limits (both legal) and the server's default. `why`: what lies beyond them."""

    kind: type[int] | type[float]
    low: float
    high: float
    default: int | float
    why: str = "the server refuses it"


_SIZE_N = NumberRule(int, 1, 1024, 12)
_SIZE_M = NumberRule(int, 1, 1024, 48)
_HITS = NumberRule(int, 1, 2**31 - 1, 1)

NUMBERS: Mapping[str, NumberRule] = {
    "spec_draft_n_max": NumberRule(int, 1, 2**31 - 1, 3, "with 0 the server aborts on its first request"),
    "spec_draft_n_min": NumberRule(int, 0, 2**31 - 1, 0),
    "spec_draft_p_min": NumberRule(float, 0, 1, 0.0, "above 1 nothing is ever drafted"),
    "spec_draft_p_split": NumberRule(float, 0, 1, 0.1, "it is a probability"),
    "spec_ngram_simple_size_n": _SIZE_N,
    "spec_ngram_simple_size_m": _SIZE_M,
    "spec_ngram_simple_min_hits": _HITS,
    "spec_ngram_map_k_size_n": _SIZE_N,
    "spec_ngram_map_k_size_m": _SIZE_M,
    "spec_ngram_map_k_min_hits": _HITS,
    "spec_ngram_map_k4v_size_n": _SIZE_N,
    "spec_ngram_map_k4v_size_m": _SIZE_M,
    "spec_ngram_map_k4v_min_hits": _HITS,
    "spec_ngram_mod_n_match": NumberRule(int, 1, 1024, 24),
    "spec_ngram_mod_n_min": NumberRule(int, 0, 1024, 48),
    "spec_ngram_mod_n_max": NumberRule(int, 1, 1024, 64, "with 0 nothing is ever drafted"),
    "ctx_size": NumberRule(int, 0, 2**31 - 1, 0),
    "parallel": NumberRule(int, 1, 2**31 - 1, 1),
    "threads": NumberRule(int, -1, 2**31 - 1, -1),
    "threads_batch": NumberRule(int, -1, 2**31 - 1, -1),
    "batch_size": NumberRule(int, 1, 2**31 - 1, 2048),
    "ubatch_size": NumberRule(int, 1, 2**31 - 1, 512),
}

PLACED = frozenset({"model", "alias", "host", "port", "metrics"})
"""Flags that a launch sets itself."""

_DRAFT_MAX = "spec_draft_n_max or spec_ngram_mod_n_max"
_DRAFT_MIN = "spec_draft_n_min or spec_ngram_mod_n_min"
RENAMED: Mapping[str, str] = {
    # Removed from llama-server: it exits with "the argument has been removed".
    "draft": _DRAFT_MAX,
    "draft_n": _DRAFT_MAX,
    "draft_max": _DRAFT_MAX,
    "draft_min": _DRAFT_MIN,
    "draft_n_min": _DRAFT_MIN,
    "spec_ngram_size_n": "spec_ngram_simple_size_n (or map_k, map_k4v), or spec_ngram_mod_n_match",
    "spec_ngram_size_m": "spec_ngram_simple_size_m (or map_k, map_k4v)",
    "spec_ngram_min_hits": "spec_ngram_map_k4v_min_hits",
    # Other spellings that a native llama-server accepts. One each, so that equal configurations are equal.
    "draft_p_min": "spec_draft_p_min",
    "draft_p_split": "spec_draft_p_split",
    "model_draft": "spec_draft_model",
    "md": "spec_draft_model",
    "m": "model",
    "a": "alias",
    "c": "ctx_size",
    "np": "parallel",
    "t": "threads",
    "tb": "threads_batch",
    "b": "batch_size",
    "ub": "ubatch_size",
    "fa": "flash_attn",
}
