"""Frames: one row per thing, the same columns for every study, NA for what was not measured."""

from __future__ import annotations

import datetime
from pathlib import Path

import pandas as pd
import pytest

from analysis.frames import (
    LAUNCH_COLUMNS,
    TRIAL_COLUMNS,
    launches_frame,
    ranking,
    trials_frame,
)
from analysis.request_frames import REQUEST_COLUMNS, requests_frame
from sweeper.errors import FailureKind
from sweeper.metrics import METRICS
from sweeper.records import Purpose, TrialState, WorkloadResult
from sweeper.spec import ServerConfig
from sweeper.storing.storage import StudyStore
from tests.analysis.builders import (
    NIGHT,
    OBJECTIVE,
    failed,
    fill,
    in_memory,
    measured,
    new_night,
    ngram,
    plain_config,
    request,
    trial,
    won_night,
)


def test_every_metric_has_a_column_and_what_was_not_measured_is_na() -> None:
    frame = trials_frame(won_night(), OBJECTIVE)
    assert set(METRICS) <= set(frame.columns)
    baseline = frame[frame["number"] == 0].iloc[0]
    assert pd.isna(baseline["accept_length"])
    assert pd.isna(baseline["num_drafted_tokens"])
    assert frame[frame["number"] == 3].iloc[0][list(METRICS)].isna().drop("start_s").all()


def test_value_and_speedup_are_means_over_all_measured_launches() -> None:
    night = new_night()
    trials = [
        trial(0, plain_config(), [measured(night, 40.0), measured(night, 42.0)]),
        trial(
            1, ngram(3, 4), [measured(night, 50.0), failed(night, FailureKind.HOST_LOST), measured(night, 52.5)]
        ),
    ]
    row = trials_frame(trials, OBJECTIVE).iloc[1]
    assert row["value"] == pytest.approx(51.25)
    assert row["speedup"] == pytest.approx(51.25 / 41.0)
    assert row["num_launches"] == 2
    assert row["launch_spread_pct"] == pytest.approx(100 * 2.5 / 51.25)
    assert row["spread_pct"] == pytest.approx(1.0)


def test_without_a_baseline_value_there_is_no_speedup() -> None:
    night = new_night()
    trials = [
        trial(0, plain_config(), [failed(night, FailureKind.HOST_LOST)], TrialState.RUNNING),
        trial(1, ngram(3, 4), [measured(night, 50.0)]),
    ]
    assert trials_frame(trials, OBJECTIVE)["speedup"].isna().all()


def test_flags_and_environment_become_columns() -> None:
    night = new_night()
    config = ServerConfig(flags={**ngram(3, 4).flags, "mlock": True}, env={"OMP_WAIT_POLICY": "passive"})
    trials = [trial(0, plain_config(), [measured(night, 40.0)]), trial(1, config, [measured(night, 50.0)])]
    frame = trials_frame(trials, OBJECTIVE)
    assert list(frame["flag.size_m"].isna()) == [True, False]
    assert frame["flag.mlock"].iloc[1] is True
    assert frame["env.OMP_WAIT_POLICY"].iloc[1] == "passive"
    assert frame["name"].iloc[1] == "ngram-simple n3 m4 mlock OMP_WAIT_POLICY=passive"


def test_a_failed_trial_says_why() -> None:
    row = trials_frame(won_night(), OBJECTIVE).iloc[3]
    assert (row["state"], row["failure"]) == ("infeasible", "out_of_memory")
    assert row["failure_message"] == "the server ran out of memory"


def test_ranking_is_best_first_then_infeasible_then_failed() -> None:
    night = new_night()
    trials = [
        trial(0, plain_config(), [measured(night, 45.0)]),
        trial(1, ngram(1, 1), [failed(night, FailureKind.BENCHMARK_FAILED)], TrialState.FAILED),
        trial(2, ngram(2, 2), [measured(night, 40.0)]),
        trial(3, ngram(3, 3), [], TrialState.RUNNING),
        trial(4, ngram(4, 4), [failed(night, FailureKind.OUT_OF_MEMORY)], TrialState.INFEASIBLE),
        trial(5, ngram(5, 5), [measured(night, 50.0)]),
    ]
    frame = ranking(trials, OBJECTIVE)
    assert list(frame["number"]) == [5, 0, 2, 4, 1, 3]
    assert list(frame["rank"].dropna()) == [1, 2, 3]
    assert list(frame["is_baseline"]) == [False, True, False, False, False, False]


def test_ranking_of_equals_keeps_the_earlier_trial_first() -> None:
    night = new_night()
    trials = [trial(number, ngram(number + 1, 1), [measured(night, 40.0)]) for number in range(4)]
    assert list(ranking(trials, OBJECTIVE)["number"]) == [0, 1, 2, 3]


def test_empty_studies_have_the_same_columns_and_types(store: StudyStore) -> None:
    full = won_night()
    requests, problems = requests_frame(store, [])
    assert problems == ()
    for empty, filled in (
        (trials_frame([], OBJECTIVE), trials_frame(full, OBJECTIVE)[list(TRIAL_COLUMNS)]),
        (launches_frame([], OBJECTIVE), launches_frame(full, OBJECTIVE)),
        (requests, requests_frame(fill(store, full), store.trials())[0]),
    ):
        assert len(empty) == 0
        assert list(empty.dtypes.items()) == list(filled.dtypes.items())
    assert list(ranking([], OBJECTIVE).columns[:2]) == ["rank", "number"]


def test_launches_have_their_phases_purpose_and_start() -> None:
    frame = launches_frame(won_night(), OBJECTIVE)
    assert list(frame.columns) == list(LAUNCH_COLUMNS)
    assert list(frame["started_at"]) == sorted(frame["started_at"])
    first = frame.iloc[0]
    assert first["started_at"].to_pydatetime() == NIGHT
    assert (first["purpose"], first["value"], first["start_s"], first["stop_s"]) == ("baseline", 41.8, 1.0, 0.5)
    assert first["duration_s"] == 34.0
    assert (frame["purpose"] == "confirm").sum() == 6


def test_a_failed_launch_keeps_its_phase_times_and_has_no_value() -> None:
    frame = launches_frame(won_night(), OBJECTIVE)
    row = frame[~frame["ok"]].iloc[0]
    assert row["start_s"] == 1.0
    assert pd.isna(row["value"])
    assert pd.isna(row["benchmark_s"])


def test_requests_are_read_from_the_artifacts(store: StudyStore) -> None:
    frame, problems = requests_frame(fill(store, won_night()), store.trials())
    assert problems == ()
    assert list(frame.columns) == list(REQUEST_COLUMNS)
    assert len(frame) == 9 * 4
    assert set(frame["purpose"]) == {"baseline", "search", "confirm"}
    assert frame["sent_at"].iloc[0].to_pydatetime() == NIGHT
    assert frame["num_drafted_tokens"].isna().all()


def test_a_missing_artifact_is_named_and_the_others_are_read(tmp_path: Path) -> None:
    store = fill(in_memory(tmp_path), won_night())
    (tmp_path / "artifacts" / "night" / "trial-1-launch-0-requests.jsonl").unlink()
    frame, problems = requests_frame(store, store.trials())
    assert len(frame) == 8 * 4
    assert problems == ("trial 1, launch 0: trial 1 has no artifact 'launch-0-requests.jsonl'",)


def test_a_damaged_artifact_keeps_its_readable_lines(tmp_path: Path) -> None:
    store = fill(in_memory(tmp_path), won_night())
    file = tmp_path / "artifacts" / "night" / "trial-0-launch-0-requests.jsonl"
    lines = file.read_bytes().splitlines()
    file.write_bytes(b"\n".join([lines[0], b"\xff\xfe{", b'{"prompt_id": 7}', lines[1], lines[2][:20]]))
    frame, problems = requests_frame(store, store.trials()[:1])
    assert len(frame[frame["launch"] == 0]) == 2
    assert problems == ("trial 0, launch 0: 3 damaged lines in requests.jsonl (line 2, 3, 5)",)


def test_times_are_in_utc() -> None:
    night = new_night()
    launch = measured(night, 40.0, Purpose.BASELINE)
    elsewhere = launch.started_at.astimezone(datetime.timezone(datetime.timedelta(hours=2)))
    moved = trial(0, plain_config(), [launch.model_copy(update={"started_at": elsewhere})])
    start = launches_frame([moved], OBJECTIVE)["started_at"].iloc[0]
    assert (start.to_pydatetime(), start.hour) == (NIGHT, 22)


def test_further_workloads_have_columns_under_their_names() -> None:
    night = new_night()
    busy = WorkloadResult(metrics={OBJECTIVE: 310.0}, doubts=("late", "hot"))
    launches = [measured(night, 40.0).model_copy(update={"others": {"busy": busy}}), measured(night, 41.0)]
    frame = launches_frame([trial(0, plain_config(), launches)], OBJECTIVE)
    assert list(frame.columns) == [*LAUNCH_COLUMNS, f"busy.{OBJECTIVE}", "busy.estimated", "busy.doubts"]
    assert frame[f"busy.{OBJECTIVE}"].iloc[0] == 310.0
    assert frame["busy.doubts"].iloc[0] == "late\nhot"
    assert frame.iloc[1][[f"busy.{OBJECTIVE}", "busy.doubts"]].isna().all()


def test_what_is_to_be_known_of_a_launch_is_in_its_row() -> None:
    known = {"estimated": "stopped", "doubts": ("a", "b"), "lossy": ("kv fp8: rounds",)}
    record = trial(0, plain_config(), [measured(new_night(), 40.0).model_copy(update=known)])
    row = launches_frame([record], OBJECTIVE).iloc[0]
    assert (row["estimated"], row["doubts"], row["lossy"]) == ("stopped", "a\nb", "kv fp8: rounds")
    trial_row = trials_frame([record], OBJECTIVE).iloc[0]
    assert (trial_row["is_estimated"], trial_row["is_lossy"]) == (True, True)


def test_each_request_has_its_rates_and_the_gap_to_the_server(store: StudyStore) -> None:
    sent = request("notice").model_copy(update={"server_e2e_ms": 990.0, "itl_p99_ms": 31.0})
    record = trial(0, plain_config(), [measured(new_night(), 40.0)])
    fill(store, [record])
    store.save_launch(record.launches[0], {"requests.jsonl": sent.model_dump_json(exclude_none=True).encode()})
    row = requests_frame(store, store.trials())[0].iloc[0]
    assert row["tpot_ms"] == pytest.approx(980 / 47)
    assert row["decode_throughput"] == pytest.approx(47000 / 980)
    assert (row["output_throughput"], row["itl_p99_ms"]) == (48.0, 31.0)
    assert row["server_gap_pct"] == pytest.approx(100 / 99)


def test_requests_of_all_workloads_are_read(store: StudyStore) -> None:
    known = {"others": {"busy": WorkloadResult()}, "provenance": {"workload": "chat"}}
    launch = measured(new_night(), 40.0).model_copy(update=known)
    fill(store, [trial(0, plain_config(), [], TrialState.RUNNING)])
    lines = request("p").model_dump_json().encode()
    store.save_launch(launch, {"requests.jsonl": lines, "requests-busy.jsonl": lines + b"\n{"})
    frame, problems = requests_frame(store, store.trials())
    assert list(frame["workload"]) == ["chat", "busy"]
    assert problems == ("trial 0, launch 0: 1 damaged lines in requests-busy.jsonl (line 2)",)
