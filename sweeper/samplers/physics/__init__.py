"""A sampler that knows what speculative decoding is: acceptance and step time apart. For any Optuna study."""

from sweeper.samplers.distinct import SpaceExhausted
from sweeper.samplers.physics.all_reduce import AllReduce, AllReduceTime
from sweeper.samplers.physics.forecast import Estimate, Forecast, stored_forecast
from sweeper.samplers.physics.machines import Link, flag_priors
from sweeper.samplers.physics.observation import Observation, Spelling, UserAttributes, from_user_attrs
from sweeper.samplers.physics.roles import FlagPrior, Roles
from sweeper.samplers.physics.sampler import PhysicsSampler
from sweeper.samplers.physics.space import Config, SearchParameter, SearchSpace, Value
from sweeper.samplers.physics.stopping import StopWhenLittleIsLeft, is_enough, remaining_gain
from sweeper.samplers.physics.what_if import needed_accept_length, predict

__all__ = [
    "AllReduce",
    "AllReduceTime",
    "Config",
    "Estimate",
    "FlagPrior",
    "Forecast",
    "Link",
    "Observation",
    "PhysicsSampler",
    "Roles",
    "SearchParameter",
    "SearchSpace",
    "SpaceExhausted",
    "Spelling",
    "StopWhenLittleIsLeft",
    "UserAttributes",
    "Value",
    "flag_priors",
    "from_user_attrs",
    "is_enough",
    "needed_accept_length",
    "predict",
    "remaining_gain",
    "stored_forecast",
]
