"""Spreads and drift, and the reference that they make possible."""

from __future__ import annotations

import datetime
import math

import pytest

from sweeper.deciding.best_so_far import reference
from sweeper.deciding.drift import Drift, drift_of
from sweeper.deciding.noise import PRIOR_DEGREES, PRIOR_LAUNCH_PCT, Noise, Spread, noise_of
from sweeper.records import LaunchRecord, TrialRecord
from tests.fakes import EPOCH, launch, trial

OBJECTIVE = "output_throughput"


def over_hours(*values: float) -> list[LaunchRecord]:
    """Launches of the baseline, one per hour."""
    made = [launch(value, number=hour) for hour, value in enumerate(values)]
    return [
        one.model_copy(update={"started_at": EPOCH + datetime.timedelta(hours=hour)})
        for hour, one in enumerate(made)
    ]


def with_prompts(record: TrialRecord, **rates: float) -> TrialRecord:
    launches = tuple(one.model_copy(update={"prompt_throughputs": rates}) for one in record.launches)
    return record.model_copy(update={"launches": launches})


def test_a_host_that_becomes_slower_is_noticed_and_values_can_be_compared_again() -> None:
    drift = drift_of(over_hours(50.0, 49.6, 49.0, 48.4, 48.1), OBJECTIVE)
    assert drift.significant
    assert drift.pct_per_hour == pytest.approx(-1.0, abs=0.1)
    assert "The host became slower by 4.0 % in all" in drift.text
    assert 48.1 / drift.factor(EPOCH + datetime.timedelta(hours=4)) == pytest.approx(50, rel=0.005)
    assert drift.factor(EPOCH) == 1


def test_beyond_what_was_seen_a_drift_is_not_believed_to_go_on() -> None:
    drift = drift_of(over_hours(50.0, 49.6, 49.0, 48.4, 48.1), OBJECTIVE)
    assert drift.factor(EPOCH + datetime.timedelta(hours=40)) == drift.factor(EPOCH + datetime.timedelta(hours=4))
    assert drift.factor(EPOCH - datetime.timedelta(hours=40)) == 1


def test_noise_is_not_taken_for_drift() -> None:
    drift = drift_of(over_hours(50.0, 49.2, 50.5, 49.6, 50.1), OBJECTIVE)
    assert not drift.significant
    assert drift.factor(EPOCH + datetime.timedelta(hours=3)) == 1
    assert drift.text.startswith("No drift of the host was seen")


def test_of_three_launches_nothing_is_said_about_drift() -> None:
    assert drift_of(over_hours(50.0, 49.0, 48.0), OBJECTIVE).p is None
    assert "not known: the baseline was launched 3 x" in drift_of(over_hours(50, 49, 48), OBJECTIVE).text
    assert "the baseline was not launched" in Drift().text


def test_spreads_within_a_launch_between_prompts_and_between_launches_are_separate_figures() -> None:
    calm = with_prompts(trial(0, [50.0, 51.0], repeats=[50.0, 50.2]), a=40.0, b=60.0)
    noise = noise_of([calm, trial(1, [60.0, 61.2], repeats=[60.1, 59.9], m=1)], OBJECTIVE)
    assert noise.launches is not None
    assert noise.launches.degrees == 2
    assert noise.launches.pct == pytest.approx(100 * math.log(1.02) / math.sqrt(2), rel=0.001)
    assert noise.passes is not None
    assert noise.passes.pct == pytest.approx(0.26, abs=0.01)
    assert noise.prompts is not None
    assert noise.prompts.pct == pytest.approx(100 * math.log(1.5) / math.sqrt(2), rel=0.001)
    assert noise.text == "1.4 % from start to start, 0.3 % between passes, 28.7 % between prompts"


def test_gains_that_differ_from_prompt_to_prompt_are_a_figure_of_their_own() -> None:
    base, even = with_prompts(trial(0, [50]), a=40.0, b=60.0), with_prompts(trial(1, [60], m=1), a=48.0, b=72.0)
    found = noise_of([base, even], OBJECTIVE).prompt_ratios
    assert found is not None
    assert found.pct == pytest.approx(0, abs=1e-9)
    uneven = with_prompts(trial(1, [60], m=1), a=60.0, b=60.0)
    found = noise_of([base, uneven], OBJECTIVE).prompt_ratios
    assert found is not None
    assert found.pct == pytest.approx(28.7, abs=0.1)


def test_without_repeated_launches_noise_is_guessed_and_what_is_seen_soon_outweighs_the_guess() -> None:
    assert Noise().expected_launch.pct == PRIOR_LAUNCH_PCT
    seen = Noise(launches=Spread(pct=6.0, degrees=27)).expected_launch
    assert 5.5 < seen.pct < 6.0
    assert seen.degrees == 30


def test_a_launch_is_never_guessed_to_be_surer_than_its_passes() -> None:
    noise = noise_of([trial(0, [50.0], repeats=[40.0, 60.0])], OBJECTIVE)
    assert noise.expected_launch.pct == pytest.approx(100 * math.log(1.5) / 2, rel=0.001)


def test_drift_is_no_noise() -> None:
    base = trial(0).model_copy(update={"launches": tuple(over_hours(50.0, 49.5, 49.0, 48.5, 48.0))})
    drift = drift_of(base.launches, OBJECTIVE)
    with_it, without = noise_of([base], OBJECTIVE).launches, noise_of([base], OBJECTIVE, drift).launches
    assert with_it is not None
    assert without is not None
    assert without.pct < with_it.pct / 5


def test_the_reference_is_the_best_so_far_with_its_prompts() -> None:
    trials = [
        with_prompts(trial(0, [50.0]), a=40.0, b=60.0),
        with_prompts(trial(1, [70.0], m=1), a=60.0, b=80.0),
        with_prompts(trial(2, [60.0], m=2), a=50.0, b=70.0),
    ]
    found = reference(trials, OBJECTIVE)
    assert found is not None
    assert (found.trial_number, found.value) == (1, 70.0)
    assert found.prompt_throughputs == {"a": 60.0, "b": 80.0}
    assert (found.launch_noise_pct, found.launch_noise_degrees) == (PRIOR_LAUNCH_PCT, PRIOR_DEGREES)
    assert 5 < found.prompt_spread_pct < 10


def test_there_is_no_reference_before_the_baseline_or_without_prompts() -> None:
    assert reference([], OBJECTIVE) is None
    assert reference([trial(0)], OBJECTIVE) is None
    assert reference([trial(0, [50.0])], OBJECTIVE) is None


def test_an_estimate_and_one_that_may_not_win_are_no_reference() -> None:
    base = with_prompts(trial(0, [50.0]), a=50.0)
    lossy = with_prompts(trial(1, [90.0], m=1), a=90.0)
    guessed = with_prompts(trial(2, [80.0], m=2), a=80.0)
    early = guessed.launches[0].model_copy(update={"estimated": "stopped"})
    guessed = guessed.model_copy(update={"launches": (early,)})
    found = reference([base, lossy, guessed], OBJECTIVE, lambda candidate: candidate.number != 1)
    assert found is not None
    assert found.trial_number == 0
