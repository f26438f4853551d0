"""A small simulated server for the sampler's tests: one formula, no noise unless asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import optuna

from sweeper.samplers.physics import Config, PhysicsSampler, Roles, SearchParameter, SearchSpace, Value

SPECULATING = {"algorithm": ("EAGLE3",)}

PARAMETERS = (
    SearchParameter("algorithm", ("none", "EAGLE3")),
    SearchParameter("num_steps", (1, 2, 3, 4, 5, 6), ordered=True, when=SPECULATING),
    SearchParameter("topk", (1, 4), ordered=True, when=SPECULATING),
    SearchParameter(
        "draft_tokens", (2, 3, 4, 5, 6, 7, 8, 12, 16, 24), ordered=True, when={**SPECULATING, "topk": (4,)}
    ),
    SearchParameter("attention_backend", ("a", "b", "c")),
    SearchParameter("protocol", ("default", "LL", "Simple")),
)


def speculates(config: Config) -> bool:
    return config["algorithm"] != "none"


ROLES = Roles(("algorithm",), "num_steps", "topk", "draft_tokens", speculates)


def four_tokens_a_level(config: Config) -> Config | None:
    """A rule of the space: a tree has at most four times as many tokens as levels."""
    return None if int(config.get("draft_tokens", 0)) > 4 * int(config.get("num_steps", 9)) else config


SPACE = SearchSpace(PARAMETERS, four_tokens_a_level)


@dataclass(frozen=True)
class Server:
    """accept: chance that a draft is right. broken: the values (name, value) with which it does not start."""

    accept: float = 0.75
    fixed: float = 0.3
    broken: tuple[tuple[str, object], ...] = ()

    def starts(self, config: Config) -> bool:
        return not any(config.get(name) == value for name, value in self.broken)

    def survival(self, config: Config) -> list[float]:
        if config["algorithm"] == "none":
            return []
        steps = int(config["num_steps"])
        siblings = 0.0 if config["topk"] == 1 else 0.12 * np.log2(int(config["draft_tokens"])) / 4
        return [float(min(0.98, self.accept + siblings) ** depth) for depth in range(1, steps + 1)]

    def step_ms(self, config: Config) -> float:
        time = 10.0 * {"a": 1.0, "b": 0.94, "c": 1.1}[str(config["attention_backend"])]
        time *= {"default": 1.0, "LL": 0.9, "Simple": 1.15}[str(config["protocol"])]
        if config["algorithm"] == "none":
            return time
        steps, tokens = int(config["num_steps"]), int(config.get("draft_tokens", int(config["num_steps"]) + 1))
        return time * (1 + self.fixed + 0.06 * (steps - 1) + 0.015 * (tokens - 1))

    def throughput(self, config: Config) -> float:
        return 1000 * (1 + sum(self.survival(config))) / self.step_ms(config)


def all_configs() -> list[Config]:
    """Every legal configuration."""
    found: list[dict[str, Value]] = [{}]
    for parameter in PARAMETERS:
        grown: list[dict[str, Value]] = []
        for config in found:
            exists = parameter.name in SPACE.active({**config, parameter.name: parameter.values[0]})
            grown += [{**config, parameter.name: v} for v in parameter.values] if exists else [config]
        found = grown
    return [config for config in found if four_tokens_a_level(config) is not None]


def suggest_all(trial: optuna.Trial, parameters: tuple[SearchParameter, ...] = PARAMETERS) -> Config:
    """The trial's configuration, suggested parameter by parameter as an objective does."""
    config: dict[str, Value] = {}
    for parameter in parameters:
        space = SearchSpace(parameters)
        if parameter.name in space.active({**config, parameter.name: parameter.values[0]}):
            value = trial.suggest_categorical(parameter.name, parameter.values)
            assert value is not None
            config[parameter.name] = value
    return config


def objective(server: Server, *, acceptance: bool = True) -> Callable[[optuna.Trial], float]:
    """Tokens per second; a server that does not start is pruned with a violated constraint."""

    def measure(trial: optuna.Trial) -> float:
        config = suggest_all(trial)
        if not server.starts(config):
            trial.set_constraint("started", 1.0)
            raise optuna.TrialPruned
        curve = server.survival(config)
        if curve and acceptance:
            steps = np.diff([0.0, *reversed(curve), 1.0])[::-1]
            trial.set_user_attr("accept_length", 1 + sum(curve))
            trial.set_user_attr("accept_histogram", [round(float(share) * 10_000) for share in steps])
        return server.throughput(config)

    return measure


def new_study(sampler: PhysicsSampler) -> optuna.Study:
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna.create_study(direction="maximize", sampler=sampler)
