"""How a study begins: the baseline, a probe of each drafter, and what the machine tells beforehand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import optuna
import pytest

from sweeper.samplers.physics import (
    AllReduce,
    AllReduceTime,
    Config,
    FlagPrior,
    PhysicsSampler,
    Roles,
    SearchParameter,
    SearchSpace,
    stored_forecast,
)
from sweeper.samplers.physics.opening import PROBING
from tests.samplers.servers import ROLES, SPACE, Server, all_configs, new_study, objective, suggest_all


def sampler(seed: int = 0) -> PhysicsSampler:
    return PhysicsSampler(SPACE, ROLES, seed)


def configs(study: optuna.Study) -> list[Config]:
    return [trial.params for trial in study.trials]


def test_baseline_first_then_a_probe() -> None:
    study = new_study(sampler())
    study.optimize(objective(Server()), n_trials=2)
    baseline, probe = study.trials
    assert baseline.params["algorithm"] == "none"
    assert (probe.params["num_steps"], probe.params["topk"]) == (5, 4)
    forecast = stored_forecast(probe)
    assert forecast is not None
    assert "probe" in forecast.reason


def two_drafters() -> tuple[optuna.Study, Callable[[optuna.Trial], float]]:
    """A study of two drafters that nothing tells apart, and its objective."""
    drafts = {"drafter": ("first", "second")}
    space = SearchSpace(
        (
            SearchParameter("drafter", ("none", "first", "second")),
            SearchParameter("num_steps", (1, 3, 5), ordered=True, when=drafts),
            SearchParameter("topk", (1, 4), ordered=True, when=drafts),
            SearchParameter("backend", ("a", "b")),
        )
    )
    roles = Roles(("drafter",), "num_steps", "topk", speculates=lambda config: config["drafter"] != "none")

    def measure(trial: optuna.Trial) -> float:
        config = suggest_all(trial, space.parameters)
        trial.set_user_attr("accept_length", 1.0 + 0.4 * int(config.get("num_steps", 0)))
        return 100.0

    return new_study(PhysicsSampler(space, roles, 0)), measure


def test_a_drafter_that_was_never_tried_is_probed_with_a_tree() -> None:
    study, measure = two_drafters()
    study.optimize(measure, n_trials=3)
    first, second = study.trials[1:]
    assert {first.params["drafter"], second.params["drafter"]} == {"first", "second"}
    assert [(trial.params["num_steps"], trial.params["topk"]) for trial in (first, second)] == [(5, 4), (5, 4)]
    forecast = stored_forecast(second)
    assert forecast is not None
    assert forecast.reason == PROBING
    assert forecast.remaining_gain is None


def test_two_workers_do_not_probe_one_drafter() -> None:
    study, measure = two_drafters()
    study.optimize(measure, n_trials=2)
    forecasts = []
    for _ in range(2):
        trial = study.ask()
        measure(trial)
        forecasts.append(stored_forecast(study.trials[trial.number]))
    assert [forecast is not None and forecast.reason == PROBING for forecast in forecasts] == [True, False]


def test_flags_that_do_nothing_on_the_machine_keep_their_default() -> None:
    study = new_study(PhysicsSampler(SPACE, replace(ROLES, flags={"protocol": FlagPrior(0.0)}), 0))
    study.optimize(objective(Server()), n_trials=12)
    assert {config["protocol"] for config in configs(study)} == {"default"}
    assert {config["attention_backend"] for config in configs(study)} == {"a", "b", "c"}


def test_where_all_reduces_were_timed_the_probe_has_the_fastest() -> None:
    times = [AllReduceTime({"protocol": p}, n, us) for p, us in (("default", 40.0), ("LL", 20.0)) for n in (1, 64)]
    hung = AllReduceTime({"protocol": "Simple"}, 1, None)
    study = new_study(PhysicsSampler(SPACE, ROLES, 0, all_reduce=AllReduce((*times, hung), num_layers=40)))
    study.optimize(objective(Server()), n_trials=2)
    assert [trial.params["protocol"] for trial in study.trials] == ["default", "LL"]


def test_a_drafter_that_never_starts_leaves_the_baseline_to_be_tuned() -> None:
    server = Server(broken=(("algorithm", "EAGLE3"),))
    study = new_study(sampler())
    study.optimize(objective(server), n_trials=16)
    best = max(server.throughput(config) for config in all_configs() if config["algorithm"] == "none")
    assert study.best_value == pytest.approx(best)


def test_nothing_starts_at_all() -> None:
    server = Server(broken=(("algorithm", "EAGLE3"), ("algorithm", "none")))
    study = new_study(sampler())
    study.optimize(objective(server), n_trials=12)
    assert len({tuple(config.items()) for config in configs(study)}) == 12
