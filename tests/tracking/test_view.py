"""What a run holds: names, parameters, tags, metrics and the digest that says whether it is up to date."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sweeper.forecasts import Forecast, Span
from sweeper.metrics import METRICS
from sweeper.records import TrialRecord, TrialState, WorkloadResult
from sweeper.secrets import Secrets
from sweeper.spec import FlagValue, ServerConfig
from sweeper.tracking.points import run_points
from sweeper.tracking.view import (
    MAX_VALUE_LENGTH,
    RunView,
    legal_name,
    owner_tags,
    run_name,
    run_params,
    run_tags,
    run_view,
)
from tests.tracking.studies import config, failed_trial, launch, spec_config, trial

BASELINE = trial(0, config({}))
OWNER = owner_tags("night", "a1b2c3")
NOTHING_SECRET = Secrets(frozenset())


def name_of(**flags: FlagValue) -> str:
    return run_name(trial(7, config(flags)), BASELINE)


def view(of: TrialRecord, baseline: TrialRecord = BASELINE) -> RunView:
    return run_view(OWNER, of, baseline, "output_throughput")


def metrics_of(record: TrialRecord, baseline: TrialRecord | None = BASELINE) -> dict[str, float]:
    return {point.name: point.value for point in run_points(record, baseline, "output_throughput")}


def test_the_name_says_what_differs_from_the_baseline() -> None:
    assert name_of(spec_type="ngram-simple", spec_ngram_size_n=3, spec_ngram_size_m=4) == (
        "trial 7 · ngram-simple n3 m4"
    )
    assert name_of(speculative_algorithm="EAGLE3", speculative_num_steps=3) == "trial 7 · EAGLE3 steps3"
    assert name_of(threads=4) == "trial 7 · threads4"


def test_the_baseline_and_its_twin_are_named_so() -> None:
    assert run_name(BASELINE, BASELINE) == "trial 0 · baseline"
    assert name_of() == "trial 7 · baseline"


def test_words_that_two_flags_share_are_told_apart() -> None:
    assert name_of(draft_p_min=0.8, draft_n_min=2) == "trial 7 · p_min0.8 n_min2"


def test_a_path_is_named_by_its_file_and_a_switch_by_its_name() -> None:
    assert name_of(model_draft="/models/big/draft.gguf", flash_attn=True, mmap=False) == (
        "trial 7 · draft.gguf flash_attn no mmap"
    )


def test_what_the_baseline_has_and_the_trial_lacks_is_named() -> None:
    without = trial(7, ServerConfig(flags={"ctx_size": 4096}, env={"GGML_X": "1"}))
    assert run_name(without, BASELINE) == "trial 7 · no threads GGML_X=1"


def test_a_long_name_is_cut() -> None:
    assert len(name_of(model="x" * 300)) == 120


def test_params_carry_the_flags_own_names_and_env_is_marked() -> None:
    params = run_params(config({"flash_attn": True, "p": 0.5}, {"GGML_X": "1"}), NOTHING_SECRET)
    assert params == {"ctx_size": "4096", "threads": "2", "flash_attn": "true", "p": "0.5", "env.GGML_X": "1"}


def test_a_long_value_ends_with_an_ellipsis() -> None:
    value = run_params(config({"prompt": "x" * 501}), NOTHING_SECRET)["prompt"]
    assert (len(value), value[-1]) == (MAX_VALUE_LENGTH, "…")
    assert run_params(config({"prompt": "x" * 500}), NOTHING_SECRET)["prompt"] == "x" * 500


def test_two_names_that_become_equal_stay_two() -> None:
    assert len(run_params(ServerConfig(flags={"a=b": 1, "a,b": 2}), NOTHING_SECRET)) == 2


@given(st.text())
def test_every_name_becomes_one_that_mlflow_takes(name: str) -> None:
    legal = legal_name(name)
    assert 0 < len(legal) <= 200
    assert set(legal) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-")
    assert not legal.startswith(".")


def test_secret_values_are_masked_in_params_and_tags() -> None:
    settings = config({"api_key": "hunter22"}, {"HF_TOKEN": "hf_abcdef"})
    record = failed_trial(1, settings)
    failure = record.launches[0].failure
    assert failure is not None
    leaking = failure.model_copy(update={"message": "bad key hunter22", "evidence": ("token hf_abcdef",)})
    record = record.model_copy(update={"launches": (record.launches[0].model_copy(update={"failure": leaking}),)})
    text = repr((view(record).params, view(record).tags))
    assert "hunter22" not in text
    assert "hf_abcdef" not in text
    assert view(record).params["env.HF_TOKEN"] == "***"


def test_metrics_are_means_over_the_measured_launches() -> None:
    settings = spec_config(1)
    failed = failed_trial(1, settings).launches[0].model_copy(update={"launch_number": 2})
    record = trial(1, settings, launches=(launch(1, settings), launch(1, settings, 1), failed))
    assert metrics_of(record)["output_throughput"] == 84.5
    assert metrics_of(record)["speedup"] == 1.0562


def test_values_are_rounded_to_what_the_table_shows_and_one_digit_more() -> None:
    precise = launch(1, spec_config(1), metrics={"output_throughput": 81.23456, "accept_length": 1.23456})
    shown = metrics_of(trial(1, spec_config(1), launches=(precise,)))
    assert (shown["output_throughput"], shown["accept_length"], shown["accept_len"]) == (81.23, 1.235, 1.235)


def test_a_value_that_was_not_measured_is_absent() -> None:
    assert "accept_len" not in metrics_of(BASELINE)
    assert "speedup" not in metrics_of(trial(1, spec_config(1)), baseline=None)
    assert "speedup" not in metrics_of(trial(1, spec_config(1)), failed_trial(0, config({})))


def test_only_a_complete_trial_can_be_ranked() -> None:
    for state in (TrialState.FAILED, TrialState.INFEASIBLE):
        assert set(metrics_of(trial(1, spec_config(1), state))) == {"start_s", "stop_s"}


def test_a_later_value_has_a_later_time_so_that_mlflow_shows_it() -> None:
    settings = spec_config(1)
    first, second = launch(1, settings), launch(1, settings, 1)
    before = run_points(trial(1, settings, launches=(first,)), BASELINE, "output_throughput")
    after = run_points(trial(1, settings, launches=(first, second)), BASELINE, "output_throughput")
    times = [{p.name: p.timestamp_ms for p in points if p.step == 0} for points in (before, after)]
    assert all(times[0][name] < times[1][name] for name in times[0])


def test_a_speedup_is_as_new_as_the_newer_of_trial_and_baseline() -> None:
    later = trial(0, config({}), launches=(launch(0, config({})), launch(0, config({}), 1)))
    for record, baseline in ((trial(1, spec_config(1)), later), (trial(1, spec_config(1)), BASELINE)):
        points = {p.name: p for p in run_points(record, baseline, "output_throughput")}
        newest = max(record.launches[-1].ended_at, baseline.launches[-1].ended_at)
        assert points["speedup"].timestamp_ms == round(newest.timestamp() * 1000)


def test_repeats_are_numbered_through_all_launches() -> None:
    settings = spec_config(1)
    points = run_points(
        trial(1, settings, launches=(launch(1, settings), launch(1, settings, 1))), None, "ttft_ms"
    )
    series = [(p.step, p.value) for p in points if p.name == "repeat_output_throughput"]
    assert series == [(1, 83.0), (2, 84.0), (3, 85.0), (4, 84.0), (5, 85.0), (6, 86.0)]


def test_every_metric_of_the_table_is_shown_under_its_name() -> None:
    values: dict[str, Any] = dict.fromkeys(METRICS, 2.0)
    record = trial(1, spec_config(1), launches=(launch(1, spec_config(1), metrics=values),))
    assert set(METRICS) <= set(metrics_of(record))


def test_a_further_workloads_metrics_are_means_under_its_name() -> None:
    settings = spec_config(1)
    results = [WorkloadResult(metrics={"output_throughput": value}) for value in (310.0, 330.0)]
    launches = tuple(launch(1, settings, n, others={"busy": result}) for n, result in enumerate(results))
    shown = metrics_of(trial(1, settings, launches=launches))
    assert (shown["busy.output_throughput"], shown["output_throughput"]) == (320.0, 84.5)
    assert not [
        name for name in metrics_of(trial(1, settings, TrialState.FAILED, launches=launches)) if "." in name
    ]


def test_tags_note_what_is_to_be_known_of_the_numbers() -> None:
    settings = config({"kv_cache_dtype": "fp8", "api_key": "hunter22"})
    busy = WorkloadResult(doubts=("lag 80 ms",))
    first = launch(1, settings, estimated="stopped after 1 of 5 prompts", lossy=("kv_cache_dtype fp8 hunter22",))
    second = launch(1, settings, 1, doubts=("still warming up",), others={"busy": busy})
    tags = run_tags(OWNER, trial(1, settings, launches=(first, second)))
    assert tags["specsweep.estimated"] == "stopped after 1 of 5 prompts"
    assert tags["specsweep.doubts"] == "still warming up\nbusy: lag 80 ms"
    assert tags["specsweep.lossy"] == "kv_cache_dtype fp8 ***"
    assert tags["specsweep.purpose"] == "search, confirm"
    assert "specsweep.doubts" not in run_tags(OWNER, BASELINE)


def test_very_many_doubts_fit_into_a_tag() -> None:
    doubtful = launch(1, spec_config(1), doubts=tuple(f"doubt {n} {'x' * 100}" for n in range(100)))
    assert len(run_tags(OWNER, trial(1, spec_config(1), launches=(doubtful,)))["specsweep.doubts"]) == 4000


def test_tags_say_who_how_and_why() -> None:
    tags = run_tags(OWNER, failed_trial(3, spec_config(3)))
    assert (tags["specsweep.study"], tags["specsweep.study_id"]) == ("night", "a1b2c3")
    assert tags["specsweep.trial"] == "3"
    assert tags["specsweep.state"] == "infeasible"
    assert tags["specsweep.failure"] == "out_of_memory"
    assert tags["specsweep.why"] == "the server ran out of memory"


def test_the_digest_is_that_of_the_content() -> None:
    record = trial(1, spec_config(1))
    again = TrialRecord.model_validate_json(record.model_dump_json())
    assert view(record).digest == view(again).digest
    other_baseline = trial(0, config({}), launches=(launch(0, config({}), metrics={"output_throughput": 70.0}),))
    assert view(record, other_baseline).digest != view(record).digest
    assert view(record, other_baseline).files_digest == view(record).files_digest
    assert view(failed_trial(1, spec_config(1))).digest != view(record).digest


def test_a_run_with_another_parameter_or_a_score_too_many_contradicts() -> None:
    complete, failed = view(trial(1, spec_config(1))), view(failed_trial(1, spec_config(1)))
    assert not complete.contradicts({}, {})
    assert not complete.contradicts(complete.params, {"output_throughput": 1.0, "a_users_own": 2.0})
    assert not complete.contradicts({"a_users_own": "1"}, {})
    assert complete.contradicts({"spec_type": "other"}, {})
    assert failed.contradicts({}, {"accept_len": 2.0})
    busy = {"busy": WorkloadResult(metrics={"output_throughput": 2.0})}
    more = view(trial(1, spec_config(1), launches=(launch(1, spec_config(1), others=busy),)))
    assert more.contradicts({}, {"busy.ttft_ms": 1.0})
    assert not more.contradicts({}, {"busy.output_throughput": 2.0, "my_eval.score": 1.0})


def test_what_was_predicted_stands_beside_what_was_measured() -> None:
    forecast = Forecast(
        throughput=Span(mean=50.0, low=45.0, high=55.0),
        accept_length=Span(mean=2.5, low=2.0, high=3.0),
        p_start=0.9,
        gain_pct=0.3,
        remaining_pct=0.4,
        reason="largest expected gain",
    )
    foretold = trial(1, config({"threads": 4})).model_copy(update={"forecast": forecast})
    value = metrics_of(foretold)["output_throughput"]
    found = {name: v for name, v in metrics_of(foretold).items() if name.startswith("predict")}
    assert found == {
        "predicted_output_throughput": 50.0,
        "predicted_output_throughput_low": 45.0,
        "predicted_output_throughput_high": 55.0,
        "predicted_accept_length": 2.5,
        "predicted_p_start": 0.9,
        "predicted_gain_pct": 0.3,
        "predicted_remaining_pct": 0.4,
        "prediction_error_pct": round(100 * (value / 50 - 1), 2),
    }
    assert run_tags(OWNER, foretold)["specsweep.chosen_because"] == "largest expected gain"
    assert not any(name.startswith("predict") for name in metrics_of(trial(1, config({"threads": 4}))))


def test_a_prediction_that_is_not_this_trials_makes_a_run_that_is_not_its_view() -> None:
    shown = view(trial(1, config({"threads": 4})))
    assert shown.contradicts({}, {"predicted_output_throughput": 1.0})
    assert not shown.contradicts({}, {"predicted_by_me": 1.0})
