"""specsweep's own sampler on the simulated servers: the space, the roles, and what it is kept from knowing."""

from __future__ import annotations

import statistics
from dataclasses import replace

from optuna.samplers import BaseSampler
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from sweeper.samplers.physics import (
    AllReduce,
    Link,
    Observation,
    PhysicsSampler,
    Roles,
    SearchParameter,
    SearchSpace,
    flag_priors,
    from_user_attrs,
    is_enough,
    stored_forecast,
)
from tests.bench.search.results import Foretold
from tests.bench.search.simulator import Surface
from tests.bench.search.simulator.configurations import (
    ALGORITHM,
    DRAFT_TOKENS,
    DRAFTER,
    EAGLE3,
    FLAGS,
    MAX_STEPS,
    MAX_TOKENS,
    NONE,
    NUM_STEPS,
    TOPK,
    TOPKS,
    Config,
    canonical,
)

COMMUNICATION = ("disable_custom_all_reduce", "NCCL_PROTO", "NCCL_ALGO", "NCCL_P2P_LEVEL")
"""The flags that change an all-reduce."""
_DRAFTING = {ALGORITHM: (EAGLE3,)}


def space(drafters: tuple[str, ...]) -> SearchSpace:
    """The space that `suggest` walks through."""
    return SearchSpace(
        (
            SearchParameter(ALGORITHM, (NONE, EAGLE3)),
            SearchParameter(DRAFTER, drafters, when=_DRAFTING),
            SearchParameter(NUM_STEPS, tuple(range(1, MAX_STEPS + 1)), ordered=True, when=_DRAFTING),
            SearchParameter(TOPK, TOPKS, ordered=True, when=_DRAFTING),
            SearchParameter(
                DRAFT_TOKENS,
                tuple(range(2, MAX_TOKENS + 1)),
                ordered=True,
                when={TOPK: tuple(topk for topk in TOPKS if topk > 1)},
            ),
            *(SearchParameter(name, values) for name, values in FLAGS.items()),
        ),
        normal=canonical,
    )


def roles(server: Surface) -> Roles:
    """What the parameters mean on this machine: how its GPUs are connected is known before the first start."""
    return Roles(
        drafter=(DRAFTER,),
        num_steps=NUM_STEPS,
        topk=TOPK,
        draft_tokens=DRAFT_TOKENS,
        speculates=speculates,
        flags=flag_priors(Link(server.facts.link), FLAGS),
    )


def speculates(config: Config) -> bool:
    """Whether a configuration drafts."""
    return config[ALGORITHM] != NONE


def plain(server: Surface, seed: int) -> BaseSampler:
    """As a user has it."""
    return PhysicsSampler(space(server.drafters), roles(server), seed)


def with_all_reduce(server: Surface, seed: int) -> BaseSampler:
    """It also has the times of all-reduces over 96 settings, which a benchmark takes without a server."""
    searched = space(server.drafters)
    communication = [parameter for parameter in searched.parameters if parameter.name in COMMUNICATION]
    times = AllReduce.measure(communication, server.facts.num_layers, server.all_reduce)
    several = server.facts.num_gpus > 1
    return PhysicsSampler(searched, roles(server), seed, all_reduce=times if several else None)


def without_histogram(server: Surface, seed: int) -> BaseSampler:
    """It sees accept_length, but not which position was accepted how often."""

    def observe(trial: FrozenTrial) -> Observation | None:
        seen = from_user_attrs(trial)
        return seen and replace(seen, survival=None)

    return PhysicsSampler(space(server.drafters), roles(server), seed, observe=observe)


def without_accept_length(server: Surface, seed: int) -> BaseSampler:
    """It sees the throughput only."""

    def observe(trial: FrozenTrial) -> Observation | None:
        seen = from_user_attrs(trial)
        return seen and replace(seen, survival=None, accept_length=None)

    return PhysicsSampler(space(server.drafters), roles(server), seed, observe=observe)


def without_failures(server: Surface, seed: int) -> BaseSampler:
    """It learns nothing from a start that failed."""

    def observe(trial: FrozenTrial) -> Observation | None:
        seen = from_user_attrs(trial)
        return None if seen is None or seen.failed else seen

    return PhysicsSampler(space(server.drafters), roles(server), seed, observe=observe)


def is_ours(study: Study) -> bool:
    """Whether the study's sampler shows forecasts."""
    return isinstance(study.sampler, PhysicsSampler)


def would_stop(study: Study) -> bool:
    """Whether the stopping rule would end the night now."""
    return is_enough(study)


def gains_pct(study: Study) -> tuple[float | None, ...]:
    """The remaining gain shown with each trial, in percent; None where none was shown."""
    forecasts = (stored_forecast(trial) for trial in study.get_trials(deepcopy=False))
    return tuple(
        None if shown is None or shown.remaining_gain is None else round(100 * shown.remaining_gain, 2)
        for shown in forecasts
    )


def foretold(study: Study) -> Foretold:
    """What the forecasts of throughput were worth."""
    misses, num_inside = [], 0
    for trial in study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,)):
        shown = stored_forecast(trial)
        if shown is not None and shown.throughput is not None and trial.value is not None:
            misses.append(abs(trial.value / shown.throughput.mean - 1))
            num_inside += shown.throughput.low <= trial.value <= shown.throughput.high
    miss_pct = round(100 * statistics.median(misses), 2) if misses else 0.0
    return Foretold(len(misses), num_inside, miss_pct)
