"""The planted speed: the published points, a smooth surface between them, counts that add up."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from tests.gpu_host.site.sglang.standin import speed


def args(
    algorithm: str | None, steps: int = 0, topk: int = 0, draft_tokens: int = 0, drafter: str = "kimi-k2.5-eagle3"
) -> dict[str, Any]:
    numbers = {"num_steps": steps, "eagle_topk": topk, "num_draft_tokens": draft_tokens}
    given = {f"speculative_{name}": value for name, value in numbers.items()}
    return {**given, "speculative_algorithm": algorithm, "speculative_draft_model_path": f"/models/{drafter}"}


def planned(*given: Any, graphs: bool = True, bypassed: bool = False, **more: Any) -> speed.Plan:
    return speed.plan(args(*given, **more), {}, graphs=graphs, bypassed=bypassed)


@pytest.mark.parametrize(
    ("plan", "published"),
    [
        (planned(None), 90.0),
        (planned("EAGLE3", 3, 1, 4, graphs=False), 53.2),
        (planned("EAGLE3", 3, 1, 4, drafter="other-eagle3", graphs=False), 50.5),
        (planned("EAGLE3", 5, 4, 16), 74.9),
        (planned("EAGLE3", 3, 2, 5), 82.3),
        (planned("EAGLE3", 2, 2, 5), 81.7),
    ],
)
def test_the_published_rows_are_on_the_surface(plan: speed.Plan, published: float) -> None:
    assert plan.throughput == pytest.approx(published, rel=1e-4)


def test_accept_lengths_are_the_published_ones() -> None:
    lengths = [planned("EAGLE3", 3, 1, 4), planned("EAGLE3", 3, 2, 5), planned("EAGLE3", 5, 4, 16)]
    assert [round(plan.accept_length, 1) for plan in lengths] == [2.0, 2.1, 2.4]


def test_no_speculation_is_the_fastest_of_the_whole_space() -> None:
    space = itertools.product(range(1, 9), (1, 2, 4, 8), range(2, 65))
    legal = [(s, k, d) for s, k, d in space if (d == s + 1 if k == 1 else s < d <= s * k + 1)]
    best = max(planned("EAGLE3", *shape).throughput for shape in legal)
    assert 80 < best < 84 < planned(None).throughput


def test_a_wrong_flag_keeps_nothing_and_is_slower_than_no_speculation() -> None:
    plan = planned("EAGLE", 3, 1, 4, bypassed=True)
    assert plan.accept_length == 1.0
    assert plan.throughput < 50


def test_nccl_settings_move_the_speed_a_little() -> None:
    slow = speed.plan(args(None), {"NCCL_PROTO": "Simple"}, graphs=True, bypassed=False)
    assert 0.9 < slow.throughput / planned(None).throughput < 1


@pytest.mark.parametrize("shape", [(3, 1, 4), (5, 4, 16), (1, 1, 2), (8, 2, 12)])
def test_accepted_drafts_have_the_planned_mean_even_in_short_answers(shape: tuple[int, int, int]) -> None:
    plan = planned("EAGLE3", *shape)
    steps = list(itertools.islice(speed.accepted(plan, "a prompt"), 60))
    assert 0 <= min(steps) <= max(steps) <= plan.depth
    assert 1 + sum(steps) / len(steps) == pytest.approx(plan.accept_length, rel=0.03)


def test_accepted_drafts_repeat_exactly_and_differ_between_prompts() -> None:
    plan = planned("EAGLE3", 3, 1, 4)
    sequences = [list(itertools.islice(speed.accepted(plan, seed), 40)) for seed in ("one", "one", "two")]
    assert sequences[0] == sequences[1] != sequences[2]


def test_launches_differ_within_the_jitter() -> None:
    factors = [speed.launch_factor(number, 0.015) for number in range(1, 200)]
    assert 0.985 <= min(factors) < 0.99 < 1.01 < max(factors) <= 1.015
