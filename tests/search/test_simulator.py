"""The simulated servers: what they promise to samplers, and the published night that they must be able to be."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from tests.bench.search.simulator import Surface, surface
from tests.bench.search.simulator.acceptance import Drafter, histograms
from tests.bench.search.simulator.configurations import (
    DRAFT_TOKENS,
    FLAG_VALUES,
    FLAGS,
    NUM_STEPS,
    TOPK,
    TOPKS,
    Config,
    all_flags,
    baseline,
    canonical,
    capacity,
    config_of,
    key,
    speculative,
    tree_of,
    trees,
)
from tests.bench.search.simulator.draws import uniform
from tests.bench.search.simulator.interactions import Interactions
from tests.bench.search.simulator.machine import Backend, Collectives, Kernels, Machine, Path, Scheduler
from tests.bench.search.simulator.regimes import REGIMES
from tests.bench.search.simulator.step_time import StepTime
from tests.bench.search.simulator.surface import build
from tests.search.conftest import NUM_ROUNDS

CHAIN = speculative("draft-0", 3, 1, 4)
TREE = speculative("draft-0", 4, 4, 12)


def some_configs(server: Surface, count: int) -> list[Config]:
    """Random legal configurations, nearly all of them speculative."""
    rng = random.Random(1)
    shapes, flags = trees(len(server.drafters)), list(all_flags())
    return [config_of(shapes, rng.randrange(len(shapes)), rng.choice(flags)) for _ in range(count)]


def test_a_launch_repeated_shows_the_same_and_another_one_does_not(server: Surface) -> None:
    twin = build(2, num_rounds=NUM_ROUNDS)
    assert twin.evaluate(TREE, repeat=3) == server.evaluate(TREE, repeat=3)
    assert server.evaluate(TREE, repeat=4).throughputs != server.evaluate(TREE, repeat=3).throughputs
    assert server.evaluate(TREE).throughputs != surface(3, num_rounds=NUM_ROUNDS).evaluate(TREE).throughputs


def test_launches_scatter_by_about_one_percent_around_the_truth(server: Surface) -> None:
    found = [outcome.throughput for n in range(200) if (outcome := server.evaluate(TREE, n)).throughput]
    assert np.mean(found) == pytest.approx(server.true_mean(TREE), rel=0.003)
    assert 0.003 < np.std(found) / np.mean(found) < 0.02


def test_a_configuration_that_does_not_start_never_does(server: Surface) -> None:
    failing = [c for c in some_configs(server, 2000) if math.isnan(server.true_mean(c))]
    assert 0 < len(failing) < 400
    for config in failing[:20]:
        assert len({server.evaluate(config, repeat).failure for repeat in range(5)} - {None}) == 1
        assert all(server.evaluate(config, repeat).throughput is None for repeat in range(5))


def test_starts_are_flaky_once_in_a_hundred(server: Surface) -> None:
    failures = sum(server.evaluate(CHAIN, repeat).failure is not None for repeat in range(2000))
    assert 8 <= failures <= 36


def test_nothing_beats_the_best(server: Surface) -> None:
    best = server.best()
    assert server.true_mean(best.config) == pytest.approx(best.throughput)
    others = [server.true_mean(config) for config in [*some_configs(server, 300), baseline()]]
    assert max(speed for speed in others if not math.isnan(speed)) <= best.throughput


def test_a_chain_verifies_what_it_drafts_and_a_baseline_has_no_tree() -> None:
    assert canonical({**CHAIN, DRAFT_TOKENS: 9}) == CHAIN
    assert key({**baseline(), NUM_STEPS: 5}) == key(baseline())


@pytest.mark.parametrize(
    "wrong", [{TOPK: 3}, {NUM_STEPS: 9}, {DRAFT_TOKENS: capacity(4, 4) + 1}, {DRAFT_TOKENS: 1}]
)
def test_what_no_server_takes_is_refused(server: Surface, wrong: Config) -> None:
    assert canonical({**TREE, **wrong}) is None
    with pytest.raises(ValueError, match="no server starts"):
        server.evaluate({**TREE, **wrong})


def test_acceptance_depends_on_the_tree_alone_and_the_histogram_tells_it(server: Surface) -> None:
    lengths, counted = [], []
    for flags in list(all_flags())[::97]:
        outcome = server.evaluate({**TREE, **flags})
        if outcome.accept_length is not None:
            histogram = np.array(outcome.accept_histogram)
            lengths.append(outcome.accept_length)
            counted.append(1 + histogram @ np.arange(len(histogram)) / histogram.sum())
    assert len(lengths) > 10
    assert np.std(lengths) / np.mean(lengths) < 0.02
    assert lengths == pytest.approx(counted, rel=0.01)


def test_more_draft_tokens_never_lower_the_accept_length_and_always_cost_time(server: Surface) -> None:
    shapes = trees(len(server.drafters))
    lengths = server.acceptance.accept_length(shapes).mean(axis=1)
    for topk in TOPKS[1:]:
        chosen = (shapes.drafter == 0) & (shapes.num_steps == 5) & (shapes.topk == topk)
        assert (np.diff(lengths[chosen]) >= 0).all()
        assert lengths[chosen][-1] > lengths[chosen][0]
    pass_ms = server.steps.speculative(baseline(), shapes[(shapes.drafter == 0) & (shapes.num_steps == 5)])
    assert pass_ms.min() > server.steps.baseline(baseline())


def test_accept_length_is_misreported_only_where_the_physics_is_wrong() -> None:
    told = [build(2, wrong, num_rounds=NUM_ROUNDS).evaluate(CHAIN) for wrong in (0.0, 0.3, 1.0)]
    counted = [1 + np.average(np.arange(4), weights=outcome.accept_histogram) for outcome in told]
    off = [abs((outcome.accept_length or 0) / count - 1) for outcome, count in zip(told, counted, strict=True)]
    assert off[0] < 0.01
    assert off[0] < off[1] < off[2]


def test_where_the_physics_holds_flags_hardly_change_each_others_effect(server: Surface) -> None:
    """The ratio of two settings of one flag is nearly the same whatever the other flags are."""

    def spread(wrong: float) -> float:
        steps = build(2, wrong, num_rounds=NUM_ROUNDS).steps
        rest = [flags for flags in all_flags() if flags["attention_backend"] == "fa3"][::7]
        ratios = [
            steps.interactions.baseline({**flags, "attention_backend": "triton"})
            - steps.interactions.baseline(flags)
            for flags in rest
        ]
        return float(np.std(ratios))

    assert spread(0.0) < 0.03 < spread(1.0)


def test_the_best_flags_are_worth_finding() -> None:
    """On a machine without NVLink the flags that are best make the same tree faster than the default ones."""
    pcie = surface(0, num_rounds=NUM_ROUNDS)
    best = pcie.best().config
    default = {**best, **{name: values[0] for name, values in FLAGS.items()}}
    assert pcie.true_mean(default) < 0.97 * pcie.true_mean(best)


def test_all_reduce_times_tell_what_hangs_and_grow_with_the_message() -> None:
    pcie = surface(0, num_rounds=NUM_ROUNDS)
    small, large = (pcie.all_reduce({"NCCL_PROTO": "Simple"}, tokens) for tokens in (1, 64))
    assert small is not None
    assert large is not None
    assert 10 < small < large
    assert surface(2, num_rounds=NUM_ROUNDS).all_reduce({}, 8) == 0


def test_counted_draws_do_not_depend_on_their_order() -> None:
    rounds = np.arange(50)
    assert (uniform(1, rounds[::-1])[::-1] == uniform(1, rounds)).all()
    assert uniform(1, 2) != uniform(2, 1)
    assert abs(uniform(3, np.arange(20000)).mean() - 0.5) < 0.01


# A machine and a drafter inside the ranges of pcie_moe1t and of a fair drafter.
KIMI_KERNELS = Kernels(
    launch_ms=0.1043, eager_launch_ms=0.24, dense_ms=1.92, expert_ms=0.916, compute_ms=0.02, host_ms=0.4,
    speculation_host_ms=7.2, draft_ms=1.01, all_reduce_us=31.8, tile=16, expert_overlap=0.66,
    verify_attention=2.05,
)  # fmt: skip
KIMI_DRAFTER = Drafter(
    stream=1, first_logit=0.2, decay=tuple(0.12 * d**0.85 + 0.12 * (d > 0) for d in range(8)), round_spread=0.9,
    node_spread=1.3, sibling_ratio=0.52, tail_mass=0.65, calibration=0.8, bias=-0.07,
)  # fmt: skip


def kimi_steps() -> StepTime:
    """Nothing special about its collectives and its scheduler; no interactions."""
    plain = {"default": Path(1.0, 1.0)}
    collectives = Collectives(22.0, plain, plain, {"default": 1.0}, None, eager_share=0.17, graph_share_ll=0.01)
    scheduler = Scheduler(
        backends={"fa3": Backend(1.0, 1.0, 0.006)}, saved_baseline=0.4, saved_speculative=0.02,
        drafter_sizes=(1.0,), branch_ms=0.07, tree_host_ms=0.45, sampling_ms=0.006, head_ms=0.3,
        odd_share=0.0, odd_multiple=2,
    )  # fmt: skip
    nothing = np.zeros((len(FLAG_VALUES), len(FLAG_VALUES)))
    interactions = Interactions(nothing, nothing[:, :5], nothing[:, :9])
    return StepTime(Machine(REGIMES["pcie_moe1t"], KIMI_KERNELS, collectives, scheduler), interactions)


def test_a_machine_of_the_regime_is_the_published_kimi_night() -> None:
    """90 tok/s, and 53.2 / 74.9 / 82.3 / 81.7 with EAGLE-3; the trees of the night are assumed, it names none."""
    steps, accepted = kimi_steps(), histograms(KIMI_DRAFTER, 1500)
    for name in ("launch_ms", "eager_launch_ms", "dense_ms", "expert_ms", "speculation_host_ms", "draft_ms"):
        low, high = getattr(REGIMES["pcie_moe1t"], name)
        assert low <= getattr(KIMI_KERNELS, name) <= high
    assert 1000 / steps.baseline(baseline()) == pytest.approx(90, rel=0.04)
    for eager, shape, published in (
        (True, (3, 1, 4), 53.2),
        (False, (5, 4, 16), 74.9),
        (False, (3, 2, 5), 82.3),
        (False, (2, 2, 4), 81.7),
    ):
        config = speculative("draft-0", *shape, disable_cuda_graph=eager)
        num_steps, topk, draft_tokens = shape
        length = 1 + accepted[TOPKS.index(topk), num_steps, draft_tokens] @ np.arange(9)
        assert 2.0 <= length <= 2.9
        step_ms = steps.speculative(config, tree_of(config))[0]
        assert 1000 * length / step_ms == pytest.approx(published, rel=0.04)
