"""When a server counts as warm."""

from __future__ import annotations

import random

import pytest

from sweeper.measuring.warmup import settled, unsettled_doubt

LIMIT = 12


def num_requests(rates: list[float]) -> int | None:
    """After how many requests the speed has settled; None: not within the limit."""
    return next((n for n in range(1, LIMIT + 1) if settled(rates[:n])), None)


@pytest.mark.parametrize(
    ("rates", "expected"),
    [
        ([100.0] * 12, 3),
        ([30.0] + [100.0] * 11, 4),  # one cold request
        ([1187.0, 7653.0] + [10996.0] * 10, 6),
        ([50.0] * 2 + [100.0] * 10, 6),  # a step; the newest five are told apart from what lies before them
        ([200.0] + [100.0] * 11, 3),  # a lucky first one
        ([100.0, 98.0, 96.0] * 4, 3),  # growing slower is not warming up
    ],
)
def test_a_server_is_warm_when_its_speed_no_longer_rises(rates: list[float], expected: int) -> None:
    assert num_requests(rates) == expected


def test_two_requests_show_nothing() -> None:
    assert not settled([])
    assert not settled([100.0, 100.0])


@pytest.mark.parametrize("per_request", [1.02, 1.05, 1.3])
def test_a_slow_drift_does_not_pass_for_a_plateau(per_request: float) -> None:
    assert num_requests([100 * per_request**n for n in range(LIMIT)]) is None


def test_noise_does_not_keep_it_going_for_ever() -> None:
    needed = []
    for seed in range(300):
        draw = random.Random(seed)
        needed.append(num_requests([draw.uniform(95, 105) for _ in range(LIMIT)]))
    assert None not in needed
    assert sum(n for n in needed if n) / len(needed) < 4


def test_a_drift_is_followed_through_noise() -> None:
    needed = []
    for seed in range(300):
        draw = random.Random(seed)
        needed.append(num_requests([100 * (1 + 0.02 * n) * draw.gauss(1, 0.01) for n in range(LIMIT)]))
    assert needed.count(None) > 150
    assert sum(n or LIMIT for n in needed) / len(needed) > 10


def test_the_doubt_shows_the_rates_and_is_silent_when_they_settled() -> None:
    assert unsettled_doubt([]) == unsettled_doubt([10.0] * 3) == ""
    assert unsettled_doubt([10.0, 20.0, 40.0]).endswith(
        "after 3 requests, before the speed was seen to settle: 10, 20, 40 tok/s"
    )
    assert "after 1 request," in unsettled_doubt([10.0])
