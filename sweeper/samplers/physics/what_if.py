"""Questions to a finished study: what would this configuration do, and how good would its drafter have to be?"""

from __future__ import annotations

import math

import numpy as np
from optuna.study import Study

from sweeper.samplers.physics.forecast import Estimate, Forecast
from sweeper.samplers.physics.sampler import PhysicsSampler
from sweeper.samplers.physics.space import Config


def predict(sampler: PhysicsSampler, study: Study, config: Config) -> Forecast:
    """accept_length, step time and throughput of a configuration, measured or not, with their intervals.

    Raises ValueError where the space cannot express the configuration: a name that is none of its parameters, a
    value that a flag does not list, or no drafter, or one unknown to it.
    """
    forecast = sampler.forecast(sampler.knowledge(study), config)
    if forecast is None:
        raise ValueError(f"not a configuration of this space: {dict(config)}")
    return forecast


def needed_accept_length(
    sampler: PhysicsSampler, study: Study, config: Config, throughput: float | None = None
) -> Estimate:
    """The accept_length at which `config` would reach `throughput` (tokens per second), its step time being as
    it is.

    Without a throughput: that of the best server without speculation, so that the answer is the break-even.
    Raises ValueError when the step time is not known, or no server without speculation was measured.
    """
    knowledge = sampler.knowledge(study)
    forecast = sampler.forecast(knowledge, config)
    if forecast is None or forecast.step_time_ms is None:
        raise ValueError(f"the step time of {dict(config)} is not known")
    if throughput is None:
        evidence = knowledge.evidence
        plain = evidence.log_throughput[~evidence.batch.speculative & ~np.isnan(evidence.log_throughput)]
        if not len(plain):
            raise ValueError("no server without speculation was measured: name the throughput to be reached")
        throughput = math.exp(float(plain.max()))
    time = forecast.step_time_ms
    return Estimate(*(throughput * ms / 1000 for ms in (time.mean, time.low, time.high)))
