"""The sampler in ordinary Optuna studies."""

from __future__ import annotations

import math
import pickle

import numpy as np
import optuna
import pytest
from optuna.study import StudyDirection
from optuna.trial import TrialState

from sweeper.samplers.distinct import SpaceExhausted
from sweeper.samplers.physics import (
    Config,
    Observation,
    PhysicsSampler,
    Roles,
    SearchParameter,
    SearchSpace,
    Spelling,
    UserAttributes,
    stored_forecast,
)
from sweeper.samplers.physics.proposing import PLAN_ATTR
from tests.samplers.servers import ROLES, SPACE, Server, all_configs, new_study, objective, suggest_all

MINIMIZE, MAXIMIZE = StudyDirection.MINIMIZE, StudyDirection.MAXIMIZE


def sampler(seed: int = 0) -> PhysicsSampler:
    return PhysicsSampler(SPACE, ROLES, seed)


def configs(study: optuna.Study) -> list[Config]:
    return [trial.params for trial in study.trials]


def test_it_comes_within_two_percent_of_the_best_in_few_trials() -> None:
    server = Server()
    study = new_study(sampler())
    study.optimize(objective(server), n_trials=10)
    best = max(server.throughput(config) for config in all_configs())
    assert study.best_value > 0.98 * best


def defined_by_run(trial: optuna.Trial) -> float:
    """A space that nobody has declared: which parameters there are depends on the values of others."""
    speed = 50 * (1 + trial.suggest_float("share", 0.1, 0.9))
    if trial.suggest_categorical("draft", ("none", "eagle3")) == "none":
        return speed
    return speed * (1 + trial.suggest_int("num_steps", 1, 8) / 10) / (1 + trial.suggest_int("topk", 1, 8) / 4)


def test_an_undeclared_space_goes_to_tpe_with_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    study = new_study(PhysicsSampler(None, ROLES, seed=2))
    study.optimize(defined_by_run, n_trials=30)
    warned = [record.getMessage() for record in caplog.records if "Optuna's TPE" in record.getMessage()]
    assert warned == ["no space was declared, so nothing is planned: all parameters go to Optuna's TPE"]
    assert len({tuple(config.items()) for config in configs(study)}) == 30
    assert {len(config) for config in configs(study)} == {2, 4}
    latest = sum(trial.value or 0 for trial in study.trials[-10:]) / 10
    assert latest > 80  # at random: 65


def test_an_undeclared_space_takes_studies_that_physics_does_not() -> None:
    study = optuna.create_study(directions=["minimize", "maximize"], sampler=PhysicsSampler(seed=2))
    study.optimize(lambda trial: (trial.suggest_float("a", 0, 1), trial.suggest_int("b", 0, 9)), n_trials=12)
    assert len(study.trials) == 12


def test_an_undeclared_space_is_resumed_as_an_uninterrupted_one() -> None:
    whole, resumed = new_study(PhysicsSampler(seed=3)), new_study(PhysicsSampler(seed=3))
    whole.optimize(defined_by_run, n_trials=14)
    for _ in range(14):
        resumed.sampler = PhysicsSampler(seed=3)
        resumed.optimize(defined_by_run, n_trials=1)
    assert configs(resumed) == configs(whole)


def test_what_the_space_does_not_declare_is_drawn_apart_from_all_else(caplog: pytest.LogCaptureFixture) -> None:
    """Two of them are not the same draw, and what is declared is planned all the same."""

    def measure(trial: optuna.Trial) -> float:
        others = [trial.suggest_float(name, 0, 1) for name in ("one", "two")]
        return objective(Server())(trial) * (1 + 0.01 * sum(others))

    study = new_study(sampler())
    study.optimize(measure, n_trials=5)
    warned = [record.getMessage() for record in caplog.records if "Optuna's TPE" in record.getMessage()]
    assert warned == ["one goes to Optuna's TPE: the space does not declare it with these values"]
    assert all(abs(t.params["one"] - t.params["two"]) > 1e-6 for t in study.trials)
    assert all(stored_forecast(t) is not None for t in study.trials)


@pytest.mark.parametrize(("space", "roles"), [(SPACE, None), ({"num_steps": (1, 2)}, ROLES)])
def test_a_space_needs_its_roles_and_is_one(space: SearchSpace, roles: Roles) -> None:
    with pytest.raises(TypeError, match=r"a SearchSpace and its Roles are needed, or no space"):
        PhysicsSampler(space, roles, 0)


def test_nothing_is_foretold_without_a_space() -> None:
    with pytest.raises(TypeError, match="nothing can be predicted without a space"):
        PhysicsSampler(seed=0).knowledge(new_study(PhysicsSampler()))


def test_only_legal_and_distinct_configurations_are_proposed() -> None:
    study = new_study(sampler())
    study.optimize(objective(Server()), n_trials=16)
    seen = [tuple(sorted(config.items())) for config in configs(study)]
    assert len(set(seen)) == 16
    assert all(SPACE.normal(config) is not None for config in configs(study))


def test_configurations_that_are_one_are_tried_once() -> None:
    """The rule says that topk changes nothing with one step."""

    def normal(config: Config) -> Config:
        return {**config, "topk": 1} if config["num_steps"] == 1 else config

    parameters = (SearchParameter("num_steps", (1, 2), ordered=True), SearchParameter("topk", (1, 2, 4)))
    study = new_study(PhysicsSampler(SearchSpace(parameters, normal), Roles((), "num_steps", "topk"), 0))
    with pytest.raises(SpaceExhausted):
        study.optimize(lambda trial: 1.0 + len(suggest_all(trial, parameters)), n_trials=9)
    canonical = {tuple(normal(config).items()) for config in configs(study) if config}
    assert len(canonical) == 4
    assert sum(bool(config) for config in configs(study)) == 4


def test_a_resumed_study_goes_on_as_an_uninterrupted_one() -> None:
    whole, resumed = new_study(sampler(3)), new_study(sampler(3))
    whole.optimize(objective(Server()), n_trials=6)
    for _ in range(6):
        resumed.sampler = sampler(3)
        resumed.optimize(objective(Server()), n_trials=1)
    assert configs(resumed) == configs(whole)


def test_a_pending_trial_of_another_worker_is_not_proposed_again() -> None:
    study = new_study(sampler())
    study.optimize(objective(Server()), n_trials=4)
    planned = []
    for _ in range(4):
        trial = study.ask()
        planned.append(tuple(suggest_all(trial).items()))
    assert len(set(planned)) == 4


def test_threads_share_a_sampler() -> None:
    study = new_study(sampler())
    study.optimize(objective(Server()), n_trials=9, n_jobs=3)
    assert len({tuple(config.items()) for config in configs(study)}) == 9


def test_workers_that_begin_at_the_same_moment_propose_different_configurations() -> None:
    """The second trial exists before the first has shown its plan."""
    study = new_study(sampler())
    study.optimize(objective(Server()), n_trials=3)
    storage = study._storage
    first, second = (storage.create_new_trial(study._study_id) for _ in range(2))
    plans = []
    for trial_id in (second, first):
        sampler().before_trial(study, storage.get_trial(trial_id))
        plans.append(storage.get_trial(trial_id).system_attrs[PLAN_ATTR])
    assert plans[0] != plans[1]


def test_enqueued_values_are_kept_and_the_rest_is_planned_around_them() -> None:
    study = new_study(sampler())
    study.optimize(objective(Server()), n_trials=3)
    study.enqueue_trial({"algorithm": "EAGLE3", "protocol": "Simple"})
    study.optimize(objective(Server()), n_trials=1)
    assert study.trials[-1].params["algorithm"] == "EAGLE3"
    assert study.trials[-1].params["protocol"] == "Simple"


@pytest.mark.parametrize("num_steps", [2, 4])
def test_who_enqueues_a_number_of_steps_gets_a_server_that_drafts(num_steps: int) -> None:
    study = new_study(sampler())
    study.enqueue_trial({"num_steps": num_steps})
    study.optimize(objective(Server()), n_trials=1)
    assert study.trials[0].params["num_steps"] == num_steps


def test_an_enqueued_configuration_gets_a_forecast() -> None:
    study = new_study(sampler())
    study.optimize(objective(Server()), n_trials=5)
    study.enqueue_trial({"algorithm": "none", "attention_backend": "c", "protocol": "Simple"})
    study.optimize(objective(Server()), n_trials=1)
    forecast = stored_forecast(study.trials[-1])
    assert forecast is not None
    assert forecast.throughput is not None
    assert forecast.throughput.mean == pytest.approx(Server().throughput(study.trials[-1].params), rel=0.35)


def test_parameters_that_the_space_does_not_know_are_sampled_too() -> None:
    study = new_study(sampler())

    def measure(trial: optuna.Trial) -> float:
        extra = trial.suggest_float("temperature", 0.0, 1.0)
        return objective(Server())(trial) + extra

    study.optimize(measure, n_trials=4)
    assert len({trial.params["temperature"] for trial in study.trials}) > 1


def test_the_study_may_spell_parameters_its_own_way() -> None:
    steps = (1, 2, 4)
    space = SearchSpace((SearchParameter("num_steps", steps, ordered=True),))
    spelling = Spelling(
        lambda config: {"steps": steps.index(int(config["num_steps"]))},
        lambda params: {"num_steps": steps[params["steps"]]} if "steps" in params else {},
    )
    study = new_study(PhysicsSampler(space, Roles((), "num_steps"), 0, spelling=spelling))
    study.optimize(lambda trial: 1.0 + trial.suggest_int("steps", 0, 2), n_trials=3)
    assert sorted(trial.params["steps"] for trial in study.trials) == [0, 1, 2]


def test_what_never_starts_is_left_alone() -> None:
    server = Server(broken=(("attention_backend", "b"),))
    study = new_study(sampler())
    study.optimize(objective(server), n_trials=12)
    pruned = [trial for trial in study.trials if trial.state is TrialState.PRUNED]
    assert 1 <= len(pruned) <= 3
    assert all(stored_forecast(trial) is not None for trial in pruned)


def test_throughput_alone_will_do() -> None:
    server = Server()
    study = new_study(sampler())
    study.optimize(objective(server, acceptance=False), n_trials=14)
    best = max(server.throughput(config) for config in all_configs())
    assert study.best_value > 0.9 * best
    forecast = stored_forecast(study.trials[-1])
    assert forecast is not None
    assert forecast.accept_length is None


@pytest.mark.parametrize("histogram", [[], [0, 0, 0], [math.nan, 1.0]])
@pytest.mark.parametrize("length", [math.nan, math.inf, 0.0, 0.5, "high"])
def test_numbers_that_make_no_sense_are_not_taken(length: object, histogram: list[float]) -> None:
    study = new_study(sampler())

    def measure(trial: optuna.Trial) -> float:
        config = suggest_all(trial)
        trial.set_user_attr("accept_length", length)
        trial.set_user_attr("accept_histogram", histogram)
        return Server().throughput(config)

    study.optimize(measure, n_trials=5)
    assert len({tuple(config.items()) for config in configs(study)}) == 5


@pytest.mark.parametrize("value", [0.0, -1.0, math.inf])
def test_a_throughput_that_is_none_is_not_taken(value: float) -> None:
    study = new_study(sampler())
    study.optimize(lambda trial: value * len(suggest_all(trial)), n_trials=5)
    assert len({tuple(config.items()) for config in configs(study)}) == 5


def test_the_same_throughput_everywhere() -> None:
    study = new_study(sampler())
    study.optimize(lambda trial: 100.0 + 0 * len(suggest_all(trial)), n_trials=8)
    assert len({tuple(config.items()) for config in configs(study)}) == 8


def test_a_study_in_milliseconds_is_minimised() -> None:
    server = Server()
    study = optuna.create_study(
        direction="minimize", sampler=PhysicsSampler(SPACE, ROLES, 0, objective_is_throughput=False)
    )
    study.optimize(lambda trial: 1000 / objective(server)(trial), n_trials=10)
    assert study.best_value < 1.02 * min(1000 / server.throughput(config) for config in all_configs())


@pytest.mark.parametrize("directions", [[MINIMIZE], [MAXIMIZE, MAXIMIZE]])
def test_other_objectives_are_refused(directions: list[StudyDirection]) -> None:
    study = optuna.create_study(directions=directions, sampler=sampler())
    with pytest.raises(ValueError, match="MAXIMIZE"):
        study.ask()


def test_an_earlier_study_spares_trials() -> None:
    server = Server()
    earlier = [
        Observation(
            config,
            server.throughput(config),
            1 + sum(server.survival(config)) if server.survival(config) else None,
        )
        for config in all_configs()[::12]
    ]
    study = new_study(PhysicsSampler(SPACE, ROLES, 0, earlier=earlier))
    study.optimize(objective(server), n_trials=3)
    assert study.best_value > 0.98 * max(server.throughput(config) for config in all_configs())


def test_a_space_without_system_flags() -> None:
    parameters = (
        SearchParameter("algorithm", ("none", "EAGLE3")),
        SearchParameter("num_steps", (1, 2, 3, 4), ordered=True, when={"algorithm": ("EAGLE3",)}),
    )
    roles = Roles(("algorithm",), "num_steps", speculates=lambda config: config["algorithm"] != "none")
    study = new_study(PhysicsSampler(SearchSpace(parameters), roles, 0))

    def measure(trial: optuna.Trial) -> float:
        config = suggest_all(trial, parameters)
        trial.set_user_attr("accept_length", 1 + 0.5 * int(config.get("num_steps", 0)))
        return 100.0 + int(config.get("num_steps", 0))

    study.optimize(measure, n_trials=5)
    assert study.best_params["num_steps"] == 4


def test_a_fixed_role_need_not_be_searched() -> None:
    parameters = (SearchParameter("num_steps", (1, 2, 3, 4, 5), ordered=True),)
    roles = Roles((), "num_steps", "topk", fixed={"topk": 1})
    study = new_study(PhysicsSampler(SearchSpace(parameters), roles, 0))

    def measure(trial: optuna.Trial) -> float:
        steps = trial.suggest_int("num_steps", 1, 5)
        length = sum(0.6**depth for depth in range(steps + 1))
        trial.set_user_attr("accept_length", length)
        return 1000 * length / (10 + 2 * steps)

    study.optimize(measure, n_trials=3)
    assert study.best_params["num_steps"] in (2, 3)


def test_a_trial_that_ended_before_it_chose_anything_is_no_obstacle() -> None:
    study = new_study(sampler())
    study.optimize(objective(Server()), n_trials=2)
    for state in (TrialState.FAIL, TrialState.PRUNED):
        study.tell(study.ask(), state=state)
    ended = study.ask()
    ended.set_constraint("started", 1.0)
    study.tell(ended, state=TrialState.PRUNED)
    study.optimize(objective(Server()), n_trials=2)
    assert study.trials[-1].value is not None


def test_a_baseline_measured_without_some_flags_counts() -> None:
    """A server whose communication variables are unset has no value of them."""
    study = new_study(sampler())
    study.add_trial(
        optuna.create_trial(
            value=100.0,
            params={"algorithm": "none", "attention_backend": "a"},
            distributions={
                "algorithm": optuna.distributions.CategoricalDistribution(("none", "EAGLE3")),
                "attention_backend": optuna.distributions.CategoricalDistribution(("a", "b", "c")),
            },
        )
    )
    study.optimize(objective(Server()), n_trials=1)
    assert study.trials[-1].params["algorithm"] == "EAGLE3"


def test_each_finished_trial_is_read_once_however_many_are_proposed() -> None:
    read: list[int] = []

    def observe(trial: optuna.trial.FrozenTrial) -> Observation | None:
        read.append(trial.number)
        return UserAttributes()(trial)

    first = PhysicsSampler(SPACE, ROLES, 0, observe=observe)
    study, server = new_study(first), Server()
    for number in range(8):
        study.sampler = first.with_seed(number)
        study.optimize(objective(server), n_trials=1)
    assert sorted(read) == list(range(7)), "the last one was never asked for"


def test_what_was_read_changes_no_proposal() -> None:
    first, server = sampler(), Server()
    kept, anew = new_study(first), new_study(sampler())
    for number in range(8):
        kept.sampler, anew.sampler = first.with_seed(number), sampler(number)
        kept.optimize(objective(server), n_trials=1)
        anew.optimize(objective(server), n_trials=1)
    assert configs(kept) == configs(anew)
    assert first.knowledge(new_study(sampler())).physics is None, "another study is read as itself"


def test_a_study_is_pickled_with_its_sampler_and_goes_on_the_same() -> None:
    """A pickled sampler and study are how Optuna's users hand them to other processes."""
    whole, kept = new_study(sampler(3)), new_study(sampler(3))
    whole.optimize(objective(Server()), n_trials=6)
    kept.optimize(objective(Server()), n_trials=3)
    again = pickle.loads(pickle.dumps(kept))
    again.optimize(objective(Server()), n_trials=3)
    assert configs(again) == configs(whole)
    assert isinstance(pickle.loads(pickle.dumps(PhysicsSampler(SPACE, Roles((), "num_steps")))), PhysicsSampler)


@pytest.mark.parametrize(
    "nonsense", [{"0": 5, "1": 3}, {0: 5, 1: 3}, "53", 3.0, [None, 1], [[5, 3]], [], [0, 0], [-1, 2]], ids=repr
)
def test_a_histogram_that_is_no_list_of_counts_is_not_told(nonsense: object) -> None:
    trial = optuna.create_trial(value=5.0, user_attrs={"accept_length": 2.5, "accept_histogram": nonsense})
    seen = UserAttributes()(trial)
    assert seen is not None
    assert (seen.accept_length, seen.survival) == (2.5, None)


def test_numbers_of_numpy_are_numbers() -> None:
    attrs = {"accept_length": np.float32(1.5), "accept_histogram": np.array([5, 5])}
    seen = UserAttributes()(optuna.create_trial(value=5.0, user_attrs=attrs))
    assert seen is not None
    assert (seen.accept_length, seen.survival) == (1.5, (0.5,))


def test_an_objective_that_leaves_a_parameter_out_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    parameters = (SearchParameter("num_steps", (1, 2)), SearchParameter("flag", (False, True)))
    study = new_study(PhysicsSampler(SearchSpace(parameters), Roles((), "num_steps")))
    study.optimize(lambda trial: 1.0 + len(suggest_all(trial, parameters[:1])), n_trials=3)
    told = [record.getMessage() for record in caplog.records]
    assert told == ["trial 0 never suggested flag: such trials count as untried and are proposed again"]
