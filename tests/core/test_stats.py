from __future__ import annotations

import random

import pytest
from scipy import stats

from sweeper.statistics.stats import (
    pooled_variance,
    spread_pct,
    t_quantile,
    trend,
)


def test_a_trend_has_a_slope_and_how_likely_noise_is() -> None:
    found = trend([0, 1, 2, 3], [0.0, 1.1, 1.9, 3.0])
    assert found is not None
    assert found.slope == pytest.approx(0.98)
    assert found.p < 0.01
    assert trend([0, 1], [0, 1]) is None
    assert trend([1, 1, 1], [0, 1, 2]) is None
    level = trend([0, 1, 2], [5, 5, 5])
    assert level is not None
    assert level.p == 1


def test_a_trend_is_the_line_that_scipy_finds() -> None:
    rng = random.Random(0)
    for count in range(3, 30):
        hours = sorted(rng.uniform(0, 12) for _ in range(count))
        values = [rng.gauss(4.0, 0.01) + 0.001 * hour for hour in hours]
        found, line = trend(hours, values), stats.linregress(hours, values)
        assert found is not None
        assert (found.slope, found.intercept, found.p) == (line.slope, line.intercept, line.pvalue)
    perfect = trend([0, 1, 2], [0.0, 0.1, 0.2])
    assert perfect is not None
    assert perfect.p < 1e-9


def test_a_pooled_variance_ignores_that_means_differ() -> None:
    assert pooled_variance([[1, 3], [11, 13], [7]]) == (2.0, 2)
    assert pooled_variance([[1], []]) == (0.0, 0)


def test_spread_of_one_value_is_unknown_not_zero() -> None:
    assert spread_pct([5.0]) is None
    assert spread_pct([9.0, 11.0]) == pytest.approx(20)


def test_quantiles_are_students() -> None:
    assert t_quantile(0.975, 3) == pytest.approx(3.182, abs=1e-3)
    assert all(t_quantile(p, n) == stats.t.ppf(p, n) for p in (0.1, 0.95, 0.9999) for n in (1, 2.5, 7, 400))
