"""When a server is warm: its speed no longer rises. Pure.

A count does not do: one server gave 1,187, 7,653 and 10,996 tok/s in its first three requests, another is at its
speed from the first on. All warm-ups send the same prompt, so that their rates can be compared.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from itertools import combinations

MAX_TOKENS = 64
"""A warm-up's answer is no longer: it shall touch every path of the server, not measure it."""

MIN_REQUESTS = 3
"""Fewer rates show no trend."""

WINDOW = 5
"""So many of the newest rates are looked at: what lies before them is a colder server."""

RISE_PER_REQUEST = 0.01
"""A trend of more than 1 % from one request to the next is a server that still warms up.

Simulated (1,000 runs each): rates of +-5 % about a constant are settled after 3.6 requests on average, and never
reach 12; a drift of 2 % a request is followed for 11 requests under 1 % of noise and for 6 under +-5 %; one cold
request costs one or two more.
"""


def settled(rates: Sequence[float]) -> bool:
    """Whether the speed (one rate per request, oldest first) no longer rises.

    Neither does the median slope of the newest rates exceed RISE_PER_REQUEST (medians: one cold or lucky request
    decides nothing), nor do the newest three rise one after the other by more than that.
    """
    if len(rates) < MIN_REQUESTS:
        return False
    newest = rates[-WINDOW:]
    slopes = [(newest[j] - newest[i]) / (j - i) for i, j in combinations(range(len(newest)), 2)]
    if statistics.median_low(slopes) > RISE_PER_REQUEST * statistics.median(newest):
        return False
    first, second, third = rates[-3:]
    return not (first < second < third and third > first * (1 + RISE_PER_REQUEST))


def unsettled_doubt(rates: Sequence[float]) -> str:
    """What to say of warm-ups that ended at their limit; empty when they had settled, or there were none."""
    if not rates or settled(rates):
        return ""
    shown = ", ".join(f"{rate:.4g}" for rate in rates[-WINDOW:])
    count = f"{len(rates)} requests" if len(rates) > 1 else "1 request"
    return f"the warm-up ended at its limit, after {count}, before the speed was seen to settle: {shown} tok/s"
