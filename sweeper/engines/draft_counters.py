"""The totals of drafting on a page for Prometheus: llama.cpp and vLLM count alike. The page is untrusted."""

from __future__ import annotations

import math
from collections import Counter

from prometheus_client.parser import text_string_to_metric_families

from sweeper.engines.base import Counters

MAX_POSITIONS = 1024
"""More than any draft is long."""


def parse_counters(text: str, server: str) -> Counters:
    """The totals of `SERVER:spec_decode_num_*`, over all engines of the server; empty when the page is not one."""
    prefix = f"{server}:spec_decode_num_"
    totals: Counter[str] = Counter()
    positions: Counter[int] = Counter()
    try:
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                if not sample.name.startswith(prefix) or not (0 <= sample.value < math.inf):
                    continue
                name = sample.name.removeprefix(prefix)
                if name == "accepted_tokens_per_pos_total":
                    positions[int(sample.labels["position"])] += int(sample.value)
                else:
                    totals[name] += int(sample.value)
    except (ValueError, KeyError, IndexError, TypeError):  # what the parser raises on text that is not its format
        return Counters()
    longest = max((position for position in positions if 0 <= position < MAX_POSITIONS), default=-1)
    return Counters(
        num_drafts=totals.get("drafts_total"),
        num_draft_tokens=totals.get("draft_tokens_total"),
        num_accepted_tokens=totals.get("accepted_tokens_total"),
        accepted_per_position=tuple(positions[position] for position in range(longest + 1)),
    )
