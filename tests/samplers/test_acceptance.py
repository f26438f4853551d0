"""The acceptance model, against counting by hand, simulation, and published chains."""

from __future__ import annotations

import numpy as np
import pytest

from sweeper.samplers.physics.acceptance import PRIOR_MEAN, survival_tables
from sweeper.samplers.physics.drafter_fit import Accepted, fit_drafter, prior_fit

CERTAIN = np.array([[0.8, 0.0, 0.0, 1e-9, 0.5, 0.7]])
"""Every first choice is right with the same probability."""


def sure() -> float:
    return float(1 / (1 + np.exp(-0.8)))


def expected_lengths(fit_mean: np.ndarray, steps: range) -> list[float]:
    tables = survival_tables(fit_mean[None], 1, list(steps))
    return [float(1 + tables[s][0, 1].sum()) for s in steps]


def test_a_chain_survives_by_the_product_of_its_first_choices() -> None:
    table = survival_tables(CERTAIN, 1, [3])[3]
    assert table[0, 1] == pytest.approx([sure(), sure() ** 2, sure() ** 3])


def test_one_level_of_a_tree_adds_its_siblings() -> None:
    """Two tokens beyond the root: the first choice, and the first sibling of what it leaves."""
    weights = 0.5 ** np.arange(7)
    sibling = (1 - sure()) * weights[0] / weights.sum() * 0.7
    table = survival_tables(CERTAIN, 2, [1])[1]
    assert table[0, 2, 0] == pytest.approx(sure())
    assert table[0, 3, 0] == pytest.approx(sure() + sibling)


def test_more_tokens_never_accept_less() -> None:
    tables = survival_tables(PRIOR_MEAN[None], 4, [1, 3, 6])
    for table in tables.values():
        lengths = table[0].sum(axis=1)
        assert np.all(np.diff(lengths[2:]) >= -1e-12)


def test_a_tree_of_steps_plus_one_tokens_is_at_least_the_chain() -> None:
    """With as many tokens the beam may prefer the chain, and never has to do worse."""
    for steps in (2, 4, 6):
        chain = survival_tables(PRIOR_MEAN[None], 1, [steps])[steps][0, 1].sum()
        tree = survival_tables(PRIOR_MEAN[None], 4, [steps])[steps][0, steps + 1].sum()
        assert tree >= chain - 0.02


def test_survival_never_rises_with_depth() -> None:
    table = survival_tables(PRIOR_MEAN[None], 8, [8])[8][0]
    assert np.all(np.diff(table, axis=1) <= 1e-9)
    assert np.all((table >= 0) & (table <= 1))


def test_a_published_chain_is_predicted_from_one_length() -> None:
    """vLLM, Qwen3-32B with a 1.7B draft model, accept_length at 1 to 8 steps: one of them predicts the others."""
    published = [1.80, 2.40, 2.87, 3.28, 3.53, 3.70, 3.90, 4.04]
    seen = Accepted((5, 1, 6), 1, float(np.log(published[4])), None)
    predicted = expected_lengths(fit_drafter([seen], prior_fit(None)).mean, range(1, 9))
    assert np.abs(np.log(np.array(predicted) / published)).max() < 0.06


def test_a_published_histogram_predicts_shorter_chains() -> None:
    """gpt-oss-120b with EAGLE-3, cumulative acceptance by position of one run with six steps."""
    curve = np.array([0.58, 0.31, 0.16, 0.08, 0.04, 0.02])
    seen = Accepted((6, 1, 7), 1, float(np.log1p(curve.sum())), curve)
    predicted = expected_lengths(fit_drafter([seen], prior_fit(None)).mean, range(1, 7))
    assert np.log(np.array(predicted) / (1 + np.cumsum(curve))) == pytest.approx(np.zeros(6), abs=0.04)


def test_one_tree_tells_of_other_trees() -> None:
    truth = np.array([[1.4, 0.2, 0.1, 1.0, 0.45, 0.6]])
    curve = survival_tables(truth, 4, [5])[5][0, 16]
    fit = fit_drafter([Accepted((5, 4, 16), 1, 0.0, curve)], prior_fit(None))
    for topk, steps, tokens in ((2, 3, 6), (4, 3, 8), (8, 6, 32), (1, 4, 1)):
        shape = np.vstack([truth, fit.mean])
        real, found = 1 + survival_tables(shape, topk, [steps])[steps][:, tokens].sum(axis=1)
        assert found == pytest.approx(real, rel=0.03)


def test_what_was_not_measured_stays_less_sure() -> None:
    curve = survival_tables(CERTAIN, 1, [5])[5][0, 1]
    before, after = prior_fit(None), fit_drafter([Accepted((5, 1, 6), 1, 0.0, curve)], prior_fit(None))
    chain, tree = ((before.tables(k, 6)[1][5, n], after.tables(k, 6)[1][5, n]) for k, n in ((1, 1), (8, 60)))
    shrunk = [(after_ @ after_) / (before_ @ before_) for before_, after_ in (chain, tree)]
    assert shrunk[0] < shrunk[1] < 1
