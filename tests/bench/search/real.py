"""Real servers, every configuration measured beforehand, and how soon each sampler finds a good one among them."""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import optuna
from optuna.distributions import CategoricalDistribution
from optuna.samplers import BaseSampler, RandomSampler, TPESampler

from sweeper.samplers.choice import Listed, SamplerSettings, make_factory
from sweeper.samplers.distinct import Choose, DistinctSampler, SpaceExhausted, Values
from sweeper.samplers.physics import PhysicsSampler
from sweeper.samplers.physics.space import exists
from tests.bench.search.real_servers import Key, RealServer, key
from tests.bench.search.tables import as_markdown

CLOSE_PCT = 2.0
BUDGET = 20
STARTUP_TRIALS = 10
PHYSICS = "physics"


@dataclass(frozen=True)
class Replay:
    """One night on a real server's table. regret_pct: of what would be named, after each restart."""

    method: str
    regret_pct: tuple[float, ...]

    def restarts_to(self, pct: float) -> int:
        """After how many restarts what is named is within so much of the best; one more than there were: never."""
        return next((i for i, regret in enumerate(self.regret_pct, 1) if regret <= pct), len(self.regret_pct) + 1)


def distinct_tpe(server: RealServer, seed: int) -> BaseSampler:
    """What specsweep uses where the physics does not know the space: multivariate TPE, nothing twice."""
    tried: set[Key] = set()

    def propose(choose: Choose) -> Values:
        values: Values = {}
        for parameter in server.space.parameters:
            if exists(parameter, values):
                values[parameter.name] = choose(parameter.name, CategoricalDistribution(parameter.values))
        return values

    def fresh(values: Mapping[str, Any]) -> bool:
        return key(values) not in tried

    def untried() -> list[Values]:
        return [dict(where) for where in server.measured if where not in tried]

    class Remembering(DistinctSampler):
        def before_trial(self, study: optuna.Study, trial: optuna.trial.FrozenTrial) -> None:
            tried.update(
                key(other.params) for other in study.get_trials(deepcopy=False) if other.state.is_finished()
            )
            super().before_trial(study, trial)

    factory = make_factory(SamplerSettings("tpe", seed, STARTUP_TRIALS), Listed())
    return Remembering(factory, seed, propose, fresh, untried)


METHODS: dict[str, Callable[[RealServer, int], BaseSampler]] = {
    "random": lambda _server, seed: RandomSampler(seed=seed),
    "tpe": lambda _server, seed: TPESampler(seed=seed, n_startup_trials=STARTUP_TRIALS),
    "specsweep_tpe": distinct_tpe,
    PHYSICS: lambda server, seed: PhysicsSampler(server.space, server.roles, seed),
}


def methods_of(server: RealServer) -> list[str]:
    """Those that know what to do with a server."""
    return [name for name in METHODS if name != PHYSICS or server.roles is not None]


def replay(server: RealServer, method: str, seed: int, budget: int = BUDGET) -> Replay:
    """One night: the baseline first, then what the sampler proposes. A start repeats one that was measured."""
    rng = random.Random(seed)
    study = optuna.create_study(direction="maximize", sampler=METHODS[method](server, seed))
    study.enqueue_trial(dict(server.baseline))
    seen: dict[Key, list[float]] = {}
    regrets: list[float] = []
    for _ in range(budget):
        try:
            trial = study.ask()
        except SpaceExhausted:
            break
        config: dict[str, Any] = {}
        for parameter in server.space.parameters:
            if exists(parameter, config):
                config[parameter.name] = trial.suggest_categorical(parameter.name, parameter.values)
        start = rng.choice(server.of(config).starts)
        seen.setdefault(key(config), []).append(start.tok_s)
        if start.accept_length is not None:
            trial.set_user_attr("accept_length", start.accept_length)
            trial.set_user_attr("accept_histogram", list(start.histogram))
        study.tell(trial, start.tok_s)
        named = max(seen, key=lambda where: statistics.mean(seen[where]))
        regrets.append(100 * (1 - server.measured[named].mean / server.best))
    return Replay(method, tuple(regrets))


def summary(replays: Iterable[Replay]) -> str:
    """Per method: how soon what is named is close to the best, and what is missing."""
    groups: dict[str, list[Replay]] = {}
    for found in replays:
        groups.setdefault(found.method, []).append(found)
    head = ("method", "nights", "restarts to 2 %: median", "p90", "regret % after 5 / 10 / 20")
    return as_markdown(head, (_row(method, found) for method, found in groups.items()))


def _row(method: str, found: Sequence[Replay]) -> list[str]:
    restarts = sorted(night.restarts_to(CLOSE_PCT) for night in found)
    shown = [
        f"> {BUDGET}" if number > BUDGET else str(number)
        for number in (restarts[(len(restarts) - 1) // 2], restarts[int(0.9 * (len(restarts) - 1) + 0.5)])
    ]
    regrets = (statistics.mean(n.regret_pct[min(at, len(n.regret_pct)) - 1] for n in found) for at in (5, 10, 20))
    return [method, str(len(found)), *shown, " / ".join(f"{regret:.1f}" for regret in regrets)]
