"""The parts of the model: covariances, learning, expectations, risk, trust."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sweeper.samplers.physics import (
    AllReduce,
    AllReduceTime,
    FlagPrior,
    Link,
    Observation,
    Roles,
    SearchParameter,
    SearchSpace,
    Value,
    flag_priors,
)
from sweeper.samplers.physics.acquisition import expected_improvement, value_of_lessons
from sweeper.samplers.physics.batch import Batch
from sweeper.samplers.physics.choice import weigh
from sweeper.samplers.physics.encoding import Encoding
from sweeper.samplers.physics.evidence import MAX_MEASURED, gather
from sweeper.samplers.physics.expectations import Expectations
from sweeper.samplers.physics.forecast import Forecast
from sweeper.samplers.physics.gp import Sizes, condition, learn_sizes
from sweeper.samplers.physics.kernel import Kernel, Structure
from sweeper.samplers.physics.knowledge import Knowledge, Teacher
from sweeper.samplers.physics.start_risk import StartRisk
from sweeper.samplers.physics.trust import PHYSICS, PLAIN, judge
from tests.samplers.servers import PARAMETERS, ROLES, SPACE, Server, all_configs

ENCODING = Encoding(SPACE, ROLES)
KERNEL = Kernel(ENCODING.flags, [ROLES.flag_prior(flag) for flag in ENCODING.flags])
STRUCTURE = Structure(0.1, 0.2, 0.3)


def some(num: int, seed: int = 0) -> Batch:
    rng = np.random.default_rng(seed)
    heads = rng.integers(len(ENCODING.heads), size=num)
    flags = np.array([rng.integers(len(flag.values), size=num) for flag in ENCODING.flags]).T
    return ENCODING.combine(heads, flags)


def observed(server: Server, step: int) -> list[Observation]:
    return [
        Observation(config, server.throughput(config), 1 + sum(curve) if curve else None, tuple(curve) or None)
        for config in all_configs()[::step]
        if (curve := server.survival(config)) is not None
    ]


def taught(observations: list[Observation], all_reduce: AllReduce | None = None) -> Knowledge:
    return Teacher(ENCODING, all_reduce).learn(gather(ENCODING, observations))


def test_the_mixed_covariance_is_the_sum_of_its_parts() -> None:
    left, right = some(20), some(15, 1)
    sizes = KERNEL.prior(np.array([0.4, 0.7]), STRUCTURE, 0.01)
    whole = np.tensordot(sizes.variances, KERNEL.parts(left, right), 1)
    assert KERNEL.mixed(left, right, sizes.variances) == pytest.approx(whole)


def test_the_diagonal_is_that_of_the_covariance() -> None:
    batch = some(25)
    sizes = KERNEL.prior(np.array([0.4, 0.7]), STRUCTURE, 0.01)
    assert KERNEL.diagonal(batch, sizes.variances) == pytest.approx(
        np.diag(KERNEL.mixed(batch, batch, sizes.variances))
    )


def test_every_part_is_a_covariance() -> None:
    parts = KERNEL.parts(some(30), some(30))
    assert min(float(np.linalg.eigvalsh(part).min()) for part in parts) > -1e-9


def test_the_part_that_matters_grows() -> None:
    rng = np.random.default_rng(0)
    groups = rng.integers(4, size=(2, 40))
    parts = np.array([(group[:, None] == group[None]).astype(float) for group in groups])
    values = rng.normal(size=4)[groups[0]] + 0.01 * rng.normal(size=40)
    prior = Sizes(np.log(np.array([0.1, 0.1])), np.array([1.0, 1.0]), np.log(0.01))
    learnt = learn_sizes(parts, np.zeros((40, 40)), np.zeros(40), values, prior)
    assert learnt.log_sd[0] > prior.log_sd[0] + 0.5
    assert learnt.log_sd[1] < prior.log_sd[1] - 0.5


def test_a_singular_covariance_is_conditioned_all_the_same() -> None:
    posterior = condition(np.ones((3, 3)), np.array([1.0, 1.0, 1.0]))
    assert posterior.mean(np.ones((1, 3))) == pytest.approx([1.0], abs=1e-3)


def test_throughput_of_untested_configurations_is_predicted() -> None:
    server = Server()
    knowledge = taught(observed(server, 7))
    assert knowledge.physics is not None
    rest = all_configs()[4::13]
    batch, _ = ENCODING.encode(rest, np.zeros(len(rest), dtype=bool))
    predicted = knowledge.physics.predict(batch)
    missed = predicted.throughput - np.log([server.throughput(config) for config in rest])
    assert np.sqrt((missed**2).mean()) < 0.05
    assert np.mean(np.abs(missed) < 1.645 * np.sqrt(predicted.throughput_variance + knowledge.physics.noise)) > 0.8


def test_steps_are_timed_in_milliseconds() -> None:
    server = Server()
    knowledge = taught(observed(server, 7))
    assert knowledge.physics is not None
    config = all_configs()[40]
    batch, _ = ENCODING.encode([config], np.zeros(1, dtype=bool))
    time = knowledge.physics.predict(batch).time
    assert time is not None
    assert np.exp(time[0][0]) == pytest.approx(server.step_ms(config), rel=0.03)


def test_many_observations_are_thinned_and_the_best_kept() -> None:
    server = Server()
    evidence = gather(ENCODING, observed(server, 1))
    telling = evidence.most_telling()
    assert len(evidence.measured) > MAX_MEASURED >= len(telling.measured)
    assert telling.log_throughput.max() == evidence.log_throughput.max()


def test_observations_of_unknown_drafters_and_flags_are_no_obstacle() -> None:
    known: dict[str, Value] = {"algorithm": "EAGLE3", "num_steps": 3, "topk": 1}
    observations = [Observation({**known, "algorithm": "NGRAM"}, 10.0), Observation(known, 20.0, 2.0)]
    assert len(gather(ENCODING, observations).batch) == 1


def test_what_started_is_innocent_and_what_failed_twice_is_suspect() -> None:
    batch = some(60)
    failed = batch.flags[:, 0] == 1
    risk = StartRisk(batch, failed)
    new = some(200, 5)
    guilty = new.flags[:, 0] == 1
    assert risk.chance(new)[guilty].max() < 0.3
    assert risk.chance(new)[~guilty].min() > 0.9


def test_a_pair_of_values_can_be_at_fault() -> None:
    batch = some(250)
    failed = (batch.flags[:, 0] == 1) & (batch.flags[:, 1] == 2)
    risk = StartRisk(batch, failed)
    new = some(300, 7)
    guilty = (new.flags[:, 0] == 1) & (new.flags[:, 1] == 2)
    assert risk.chance(new)[guilty].max() < 0.3
    assert risk.chance(new)[~guilty].min() > 0.9


def test_timed_all_reduces_foretell_the_flags() -> None:
    """A step of 10 ms with 50 layers: 100 all-reduces, 20 microseconds each less, are 2 ms."""
    times = [AllReduceTime({"protocol": p}, n, us) for p, us in (("default", 40.0), ("LL", 20.0)) for n in (1, 64)]
    all_reduce = AllReduce((*times, AllReduceTime({"protocol": "Simple"}, 1, None)), num_layers=50)
    baseline = {"algorithm": "none", "attention_backend": "a", "protocol": "default"}
    knowledge = taught([Observation(baseline, 100.0)], all_reduce)
    assert knowledge.physics is not None
    configs = [{**baseline, "protocol": protocol} for protocol in ("default", "LL", "Simple")]
    batch, _ = ENCODING.encode(configs, np.zeros(3, dtype=bool))
    throughput = np.exp(knowledge.physics.predict(batch).throughput)
    assert throughput[1] / throughput[0] == pytest.approx(10 / 8, rel=0.02)
    assert knowledge.chance(batch)[2] < 0.1


def test_a_measured_table_covers_all_combinations() -> None:
    parameters = (PARAMETERS[4], PARAMETERS[5])
    all_reduce = AllReduce.measure(
        parameters, 10, lambda config, n: None if config["protocol"] == "LL" else 5.0 * n
    )
    hung = [time for time in all_reduce.times if time.microseconds is None]
    assert len(hung) == 3
    assert len(all_reduce.times) == 3 + 6 * 6


def test_flags_known_to_be_slow_are_expected_to_be() -> None:
    parameters = (SearchParameter("cuda_graph", (True, False)), SearchParameter("other", (1, 2)))
    roles = Roles((), "num_steps", speculates=lambda config: False, flags={"other": FlagPrior(0.05, {2: 0.2})})
    encoding = Encoding(SearchSpace(parameters), roles)
    knowledge = Teacher(encoding).learn(gather(encoding, [Observation({"cuda_graph": True, "other": 1}, 100.0)]))
    configs = [{"cuda_graph": False, "other": 1}, {"cuda_graph": True, "other": 2}]
    batch, _ = encoding.encode(configs, np.zeros(2, dtype=bool))
    for model in (knowledge.physics, knowledge.plain):
        assert model is not None
        assert np.log(100) - model.predict(batch).throughput == pytest.approx([0.45, 0.2], abs=0.03)


def told(physics: float, plain: float, seen: float = 0.0) -> tuple[Forecast, float]:
    by_model = {PHYSICS: (physics, 0.05), PLAIN: (plain, 0.05)}
    return Forecast(None, None, None, p_start=1.0, reason="", by_model=by_model), seen


@pytest.mark.parametrize(("value", "slower"), [("b", True), ("c", False)])
def test_leaving_the_servers_own_value_is_expected_to_cost_unless_a_value_is_named(
    value: str, slower: bool
) -> None:
    flags = {"attention_backend": FlagPrior(0.04, {"c": -0.02}, leaving=0.03)}
    encoding = Encoding(SPACE, replace(ROLES, flags=flags, default={"attention_backend": "a"}))
    configs = [{"algorithm": "none", "attention_backend": each, "protocol": "default"} for each in ("a", value)]
    batch, _ = encoding.encode(configs, np.zeros(2, dtype=bool))
    own, other = Expectations(encoding).slower(batch)
    assert own == 0
    assert other == pytest.approx(0.03 if slower else -0.02)


def test_with_one_gpu_nobody_is_talked_to() -> None:
    names = ("env.NCCL_PROTO", "NCCL_P2P_LEVEL", "disable_custom_all_reduce", "attention_backend")
    priors = flag_priors(Link.NONE, names)
    assert {name for name in names if priors[name].size < 0.005} == set(names[:3])
    assert flag_priors(Link.PCIE, names)["NCCL_P2P_LEVEL"].slower["PIX"] > 0


def test_physics_is_believed_until_it_has_predicted_worse() -> None:
    assert judge([told(0.01, 0.1)] * 8).believed == PHYSICS
    assert judge([told(0.1, 0.01)] * 8).believed == PLAIN
    assert judge([told(0.1, 0.01)] * 3).believed == PHYSICS


def test_one_surprise_does_not_turn_the_trust() -> None:
    assert judge([*[told(0.01, 0.06)] * 7, told(3.0, 0.01)]).believed == PHYSICS


def test_models_that_both_miss_are_astray() -> None:
    assert judge([told(0.4, 0.4)] * 8).astray
    assert not judge([told(0.04, 0.4)] * 8).astray


def test_misses_beyond_the_models_own_error_widen_it_and_small_ones_do_not_narrow_it() -> None:
    assert judge([told(0.1, 0.1)] * 8).widening == pytest.approx(2.0)
    assert judge([told(0.01, 0.01)] * 8).widening == 1.0


def test_with_errors_widened_more_is_to_be_gained() -> None:
    knowledge = taught(observed(Server(), 40))
    assert knowledge.physics is not None
    best = knowledge.best(knowledge.physics).take([0])
    worth = weigh(knowledge, knowledge.physics, some(30), best, np.random.default_rng(0))
    narrow, wide = (worth.gain(by) for by in (1.0, 2.0))
    assert (wide >= narrow).all()
    assert wide.max() > narrow.max()


def test_a_flag_that_differs_under_drafting_says_less_of_drafting_servers() -> None:
    def alike(differs: float) -> float:
        kernel = Kernel(ENCODING.flags, [FlagPrior(0.04, differs=differs) for _ in ENCODING.flags])
        variances = kernel.prior(np.full(len(ENCODING.flags), 0.04), STRUCTURE, 0.01).variances
        plain, drafting = (np.flatnonzero(ENCODING.table.speculative == kind)[:1] for kind in (False, True))
        flags = ENCODING.default_flags[None]
        a, b = ENCODING.combine(plain, flags), ENCODING.combine(drafting, flags)
        own = kernel.mixed(a, a, variances)[0, 0]
        return float(kernel.mixed(a, b, variances)[0, 0] / own)

    assert alike(0.06) < 0.7 * alike(0.005)


@pytest.mark.parametrize("name", ["physics", "plain"])
def test_a_lead_is_the_difference_of_two_that_err_alike(name: str) -> None:
    knowledge = taught(observed(Server(), 60))
    model = {"physics": knowledge.physics, "plain": knowledge.plain}[name]
    assert model is not None
    batch, best = some(20), knowledge.best(model).take([0])
    mean, variance = model.lead(batch, best)
    each, of_best = model.predict(batch), model.predict(best)
    assert mean == pytest.approx(each.throughput - of_best.throughput)
    apart = np.sqrt(each.throughput_variance), np.sqrt(of_best.throughput_variance)
    assert (np.sqrt(variance) <= apart[0] + apart[1] + 1e-6).all()
    assert (np.sqrt(variance) >= np.abs(apart[0] - apart[1]) - 1e-6).all()
    assert model.lead(best, best)[1] == pytest.approx([0.0], abs=1e-8)


@pytest.mark.parametrize("speculative", [False, True])
def test_errors_of_two_that_are_alike_cancel(speculative: bool) -> None:
    model = taught(observed(Server(), 60)).physics
    assert model is not None
    batch = some(40)
    other = batch.take(np.flatnonzero(batch.speculative == speculative)[:1])
    each, one = model.predict(batch), model.predict(other)
    alike = model.acceptance.covariance(batch, other) + model.step_time.covariance(batch, other)
    apart = each.throughput_variance + one.throughput_variance - 2 * alike[:, 0]
    assert model.lead(batch, other)[1] == pytest.approx(apart, abs=1e-7)


def test_a_twin_of_the_best_has_nothing_to_gain() -> None:
    """A flag that does nothing: however unsure the model is of both, one will not be faster than the other."""
    nothing = replace(ROLES, flags={"protocol": FlagPrior(1e-4, differs=1e-4)})
    encoding = Encoding(SPACE, nothing)
    config: dict[str, Value] = {"algorithm": "none", "attention_backend": "a", "protocol": "default"}
    knowledge = Teacher(encoding).learn(gather(encoding, [Observation(config, 50.0)]))
    assert knowledge.plain is not None
    others = [{**config, "protocol": "LL"}, {**config, "attention_backend": "b"}]
    batch, _ = encoding.encode(others, np.zeros(2, dtype=bool))
    twin, other = knowledge.gain(knowledge.plain, batch, knowledge.best(knowledge.plain).take([0]))[0]
    assert knowledge.plain.predict(batch).throughput_variance.min() > 0.005**2
    assert twin < 0.002 < 0.01 < other


@pytest.mark.parametrize(("size", "together"), [(0.004, False), (0.02, True)])
def test_a_flag_next_to_nothing_does_nothing_together_with_others(size: float, together: bool) -> None:
    """Beyond what it does by itself, with a flag of ordinary size beside it."""
    priors = [FlagPrior(0.05, differs=0.0), FlagPrior(size, differs=0.0)]
    kernel = Kernel(ENCODING.flags, priors)
    variances = kernel.prior(np.array([0.05, size]), STRUCTURE, 0.01).variances
    head, flags = np.array([0, 0]), np.array([[0, 0], [0, 1]])
    twins = ENCODING.combine(head, flags)
    covariance = kernel.mixed(twins, twins, variances)
    apart = covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1]
    assert (apart > 1.05 * 2 * size**2) == together


def test_expected_improvement_is_the_mean_of_what_exceeds_nothing() -> None:
    draws = np.random.default_rng(0).normal(-0.15, 0.2, size=400_000)
    expected = float(np.maximum(draws, 0).mean())
    assert expected_improvement(np.array([-0.15]), np.array([0.04])) == pytest.approx([expected], rel=0.02)


def test_a_lesson_is_worth_what_it_may_change() -> None:
    """Two candidates alike; a trial tells which is better, another tells nothing, a third moves both."""
    lessons = np.array([[0.1, 0.0, 0.1], [-0.1, 0.0, 0.1]])
    worth = value_of_lessons(np.array([1.0, 1.0]), [lessons])
    assert worth[0] == pytest.approx(0.1 * np.sqrt(2 / np.pi), rel=0.15)
    assert worth[1:] == pytest.approx([0.0, 0.0], abs=1e-9)
