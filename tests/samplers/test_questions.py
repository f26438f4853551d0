"""Forecasts kept with trials, the stopping rule, and what-if questions."""

from __future__ import annotations

import json

import optuna
import pytest

from sweeper.samplers.physics import (
    Config,
    Estimate,
    Forecast,
    PhysicsSampler,
    StopWhenLittleIsLeft,
    is_enough,
    needed_accept_length,
    predict,
    remaining_gain,
    stored_forecast,
)
from sweeper.samplers.physics.forecast import FORECAST_ATTR, to_json
from tests.samplers.servers import ROLES, SPACE, Server, all_configs, new_study, objective

Finished = tuple[PhysicsSampler, optuna.Study]


def run(server: Server, num_trials: int) -> Finished:
    sampler = PhysicsSampler(SPACE, ROLES, 0)
    study = new_study(sampler)
    study.optimize(objective(server), n_trials=num_trials)
    return sampler, study


@pytest.fixture(scope="module")
def finished() -> Finished:
    return run(Server(), 14)


def planned(gains: list[float | None]) -> optuna.Study:
    study = optuna.create_study(direction="maximize")
    for gain in gains:
        forecast = Forecast(None, None, None, p_start=1.0, reason="", remaining_gain=gain)
        study.add_trial(optuna.create_trial(value=1.0, system_attrs={FORECAST_ATTR: to_json(forecast)}))
    return study


def test_a_forecast_survives_the_storage() -> None:
    estimate = Estimate(100.0, 90.0, 111.0)
    forecast = Forecast(estimate, None, estimate, 0.9, "because", 0.01, 0.02, {"physics": (4.6, 0.05)})
    stored = json.loads(json.dumps(to_json(forecast)))
    trial = optuna.create_trial(value=1.0, system_attrs={FORECAST_ATTR: stored})
    assert stored_forecast(trial) == forecast


def test_a_trial_of_another_sampler_has_no_forecast() -> None:
    assert stored_forecast(optuna.create_trial(value=1.0)) is None


def test_forecasts_are_kept_with_every_trial_and_come_true(finished: Finished) -> None:
    _, study = finished
    forecasts = [(stored_forecast(trial), trial.value) for trial in study.trials[5:]]
    held = 0
    for forecast, value in forecasts:
        assert forecast is not None
        assert forecast.throughput is not None
        assert value is not None
        held += forecast.throughput.low <= value <= forecast.throughput.high
    assert held >= 7


def test_the_remaining_gain_falls(finished: Finished) -> None:
    _, study = finished
    forecasts = [stored_forecast(trial) for trial in study.trials]
    gains = [forecast.remaining_gain for forecast in forecasts if forecast and forecast.remaining_gain is not None]
    assert gains[-1] < gains[0] / 5
    assert remaining_gain(study) == gains[-1]


def test_a_study_stops_by_itself_near_the_best() -> None:
    server = Server()
    sampler = PhysicsSampler(SPACE, ROLES, 1)
    study = new_study(sampler)
    study.optimize(objective(server), n_trials=60, callbacks=[StopWhenLittleIsLeft()])
    assert len(study.trials) < 40
    assert study.best_value > 0.98 * max(server.throughput(config) for config in all_configs())


def test_enough_is_when_little_is_left_twice_running_after_a_few_trials() -> None:
    assert is_enough(planned([None, None, *[0.1] * 4, 0.001, 0.001]))
    assert not is_enough(planned([None, None, *[0.1] * 5, 0.001]))
    assert not is_enough(planned([None, None, *[0.1] * 4, 0.001, 0.004]))
    assert is_enough(planned([None, None, *[0.1] * 4, 0.001, 0.004]), little=0.005)
    assert not is_enough(planned([None, None, 0.001, 0.001]))
    assert not is_enough(planned([None] * 9))


def test_trials_without_a_known_gain_are_passed_over() -> None:
    assert is_enough(planned([*[0.1] * 5, 0.001, None, 0.001, None]))


def test_what_an_untested_configuration_would_do(finished: Finished) -> None:
    server = Server()
    sampler, study = finished
    config: Config = {"algorithm": "EAGLE3", "num_steps": 4, "topk": 1, "attention_backend": "a", "protocol": "LL"}
    forecast = predict(sampler, study, config)
    assert forecast.throughput is not None
    assert forecast.accept_length is not None
    assert forecast.throughput.mean == pytest.approx(server.throughput(config), rel=0.1)
    assert forecast.accept_length.mean == pytest.approx(1 + sum(server.survival(config)), rel=0.1)


def test_a_configuration_of_another_space_is_refused(finished: Finished) -> None:
    sampler, study = finished
    with pytest.raises(ValueError, match="NGRAM"):
        predict(sampler, study, {"algorithm": "NGRAM", "num_steps": 3})


def test_the_drafter_that_would_break_even() -> None:
    """Where drafting costs more than it brings, the needed accept_length is the step time over the baseline's."""
    server = Server(accept=0.2, fixed=1.5)
    sampler, study = run(server, 14)
    config: Config = {
        "algorithm": "EAGLE3",
        "num_steps": 3,
        "topk": 1,
        "attention_backend": "a",
        "protocol": "default",
    }
    best = max(t.value for t in study.trials if t.params.get("algorithm") == "none" and t.value is not None)
    needed = needed_accept_length(sampler, study, config)
    assert needed.mean == pytest.approx(best * server.step_ms(config) / 1000, rel=0.08)
    assert needed.low < needed.mean < needed.high
    assert needed_accept_length(sampler, study, config, throughput=2 * best).mean == pytest.approx(2 * needed.mean)


def test_a_name_that_the_space_does_not_have_is_not_guessed_around(finished: Finished) -> None:
    sampler, study = finished
    config: Config = {"algorithm": "EAGLE3", "nmu_steps": 4, "topk": 1, "attention_backend": "a", "protocol": "LL"}
    with pytest.raises(ValueError, match="nmu_steps"):
        predict(sampler, study, config)


def test_a_value_that_a_flag_does_not_list_is_not_taken_for_no_value(finished: Finished) -> None:
    sampler, study = finished
    config: Config = {"algorithm": "EAGLE3", "num_steps": 4, "topk": 1, "attention_backend": "b", "protocol": "LL"}
    predict(sampler, study, config)
    with pytest.raises(ValueError, match="protocol"):
        predict(sampler, study, {**config, "protocol": "LL1"})
