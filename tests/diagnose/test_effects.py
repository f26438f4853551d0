"""What single settings bring, on servers of known truth: told, silent, and silent under noise."""

from __future__ import annotations

import pytest

from analysis.diagnose import Severity
from tests.diagnose.asking import CHAINS, interval, measured, told
from tests.diagnose.planted import Night, Server, chain, plain, with_env

GRAPHS = [plain(), *(chain(n, disable_cuda_graph=off) for n in (2, 3) for off in (False, True))]


def test_cuda_graphs_bring_what_was_planted() -> None:
    found = told(measured(Server(slower={"disable_cuda_graph=True": 1.4}), GRAPHS))
    _, low, high = interval(found["cuda_graphs"].title)
    assert low <= 40 <= high
    assert "launch_bound" in found


@pytest.mark.parametrize(("factor", "noise_pct"), [(1.0, 0.5), (1.02, 6.0)])
def test_graphs_that_bring_nothing_or_less_than_noise_are_not_claimed(factor: float, noise_pct: float) -> None:
    found = told(measured(Server(slower={"disable_cuda_graph=True": factor}), GRAPHS, noise_pct))
    assert "no difference" in found["cuda_graphs"].title
    assert found["cuda_graphs"].severity is Severity.NOTE
    assert "launch_bound" not in found


def test_without_a_server_without_graphs_nothing_is_said_of_them() -> None:
    assert "cuda_graphs" not in told(measured(Server(), CHAINS))


def test_what_changed_along_with_graphs_is_named() -> None:
    trials = measured(
        Server(slower={"disable_cuda_graph=True": 1.4}), [plain(), chain(2, disable_cuda_graph=True), chain(3)]
    )
    finding = told(trials)["cuda_graphs"]
    assert "speculative_num_steps (3 against 2)" in finding.title
    assert finding.severity is Severity.NOTE
    assert "launch_bound" not in told(trials)


NCCL = [plain(), *(with_env(chain(n), NCCL_PROTO=proto) for n in (2, 3) for proto in ("LL", "Simple"))]


def test_a_variable_of_nccl_that_brings_much_is_told() -> None:
    found = told(measured(Server(slower={"NCCL_PROTO=Simple": 1.1}), NCCL))
    assert "NCCL_PROTO=LL against Simple" in found["nccl"].title
    _, low, high = interval(found["nccl"].title)
    assert low <= 10 <= high
    assert "communication_bound" in found


@pytest.mark.parametrize(("factor", "noise_pct"), [(1.0, 0.5), (1.03, 6.0)])
def test_a_variable_of_nccl_that_brings_nothing_is_not(factor: float, noise_pct: float) -> None:
    found = told(measured(Server(slower={"NCCL_PROTO=Simple": factor}), NCCL, noise_pct))
    assert "no setting makes a difference" in found["nccl"].title
    assert "communication_bound" not in found


def test_settings_that_never_vary_alone_are_told_by_a_model_that_says_so() -> None:
    """Of three settings two always change together, so that no two trials differ in one alone."""
    halves = [(False, "triton", "LL"), (False, "fa3", "Simple"), (True, "triton", "Simple"), (True, "fa3", "LL")]
    configs = [
        with_env(chain(steps, disable_cuda_graph=off, attention_backend=backend), NCCL_PROTO=proto)
        for steps in (2, 3)
        for off, backend, proto in halves
    ]
    slower = {"disable_cuda_graph=True": 1.4, "attention_backend=triton": 1.1}
    found = told(measured(Server(slower=slower), [plain(), *configs]))
    for rule, planted in (("cuda_graphs", 40), ("other_settings", 10)):
        _, low, high = interval(found[rule].title)
        assert low <= planted <= high, rule
        assert "by the model" in found[rule].evidence[0].value
    assert "no setting makes a difference" in found["nccl"].title


def test_steps_that_differ_are_told_and_steps_that_do_not_are_not() -> None:
    deep = told(measured(Server(forward_ms=4.0, falls=0.5), [plain(), chain(2), chain(6)]))["num_steps"]
    assert "6 against 2 steps: -" in deep.title
    same = told(measured(Server(forward_ms=1.0), [plain(), chain(3), chain(4)], noise_pct=4.0))["num_steps"]
    assert "cannot be told apart" in same.title
    assert same.next_step.startswith("Keep the smaller")


def test_draft_tokens_are_compared_where_all_else_is_equal() -> None:
    finding = told(measured(Server(token_ms=0.5), [plain(), chain(3, 4, 8), chain(3, 4, 32)]))["draft_tokens"]
    assert "32 against 8 draft tokens: -" in finding.title


def test_other_settings_that_bring_something_are_told() -> None:
    configs = [plain(), chain(3), chain(3, attention_backend="triton"), chain(3, attention_backend="fa3")]
    found = told(measured(Server(slower={"attention_backend=triton": 1.08}), configs))
    assert "attention_backend=fa3 against triton" in found["other_settings"].title
    calm = told(measured(Server(), configs))
    assert "other_settings" not in calm


def test_equals_are_named_with_the_simplest() -> None:
    finding = told(measured(Server(), [plain(), chain(3), chain(3, attention_backend="fa3")], noise_pct=1.0))[
        "equals"
    ]
    assert "these 2: choose the simplest, trial 1" in finding.title
    apart = told(
        measured(
            Server(slower={"attention_backend=fa3": 1.3}), [plain(), chain(3), chain(3, attention_backend="fa3")]
        )
    )
    assert "equals" not in apart


def test_single_launches_are_called_uncertain() -> None:
    once = Night(Server(), launches=1).measure(CHAINS)
    assert told(once)["unknown_noise"].severity is Severity.WARNING
    assert "unknown_noise" not in told(measured(Server(), CHAINS))
