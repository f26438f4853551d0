"""Syncing to a real MLflow server, also one that is down, slow, broken or loses its answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from sweeper.spec import TrackingSpec
from sweeper.tracking import SyncReport, Tracker, become_ui
from sweeper.tracking.tracker import RETRY_AFTER_S
from tests.tracking import seen
from tests.tracking.clocks import ManualClock
from tests.tracking.conftest import free_port, spec_for
from tests.tracking.gateway import FAIL, HANG, LOSE, NONSENSE, PASS, TRICKLE, Gateway
from tests.tracking.studies import FakeStudy, make_study, noted_trial

pytestmark = [
    pytest.mark.service,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


@pytest.fixture
def study(request: pytest.FixtureRequest) -> FakeStudy:
    """Four trials, under a name of the test's own: the tests share one server."""
    study = make_study(4)
    study.name = str(request.node.name)
    return study


def spec_to(gateway: Gateway, folder: Path, sync_s: float = 300.0) -> TrackingSpec:
    return spec_for(gateway.url, folder, sync_s)


def test_a_server_shows_what_sqlite_shows(
    server: str, sqlite_spec: TrackingSpec, tmp_path: Path, study: FakeStudy
) -> None:
    assert Tracker(spec_for(server, tmp_path), ManualClock()).sync(study) == SyncReport(num_written=4)
    assert Tracker(spec_for(server, tmp_path), ManualClock()).sync(study) == SyncReport()
    Tracker(sqlite_spec, ManualClock()).sync(study)
    assert seen.everything(server, study.name) == seen.everything(sqlite_spec.uri, study.name)
    assert not Path(sqlite_spec.artifact_location, "night").exists()


def test_a_server_takes_what_is_to_be_known_of_the_numbers(server: str, tmp_path: Path, study: FakeStudy) -> None:
    study.add(noted_trial(1))
    assert Tracker(spec_for(server, tmp_path), ManualClock()).sync(study) == SyncReport(num_written=4)
    assert Tracker(spec_for(server, tmp_path), ManualClock()).sync(study) == SyncReport()
    run = seen.runs(server, study.name)[1]
    assert run.data.metrics["very busy.output_throughput"] == 310.5
    assert run.data.metrics["very busy.ttft_p99_ms"] == 900.0
    assert run.data.tags["specsweep.estimated"] == "stopped after 1 of 5 prompts"
    assert run.data.tags["specsweep.doubts"] == "very busy: sent late"
    assert run.data.tags["specsweep.lossy"] == "kv fp8: rounds"


def test_files_go_to_the_server_and_not_to_a_local_folder(server: str, tmp_path: Path, study: FakeStudy) -> None:
    Tracker(spec_for(server, tmp_path), ManualClock()).sync(study)
    assert list(tmp_path.iterdir()) == []
    assert b"llama-server" in seen.files(server, seen.runs(server, study.name)[1])["command.txt"]


def test_a_server_that_is_down_is_caught_up_with(gateway: Gateway, tmp_path: Path, study: FakeStudy) -> None:
    clock = ManualClock()
    down = spec_for(f"http://127.0.0.1:{free_port()}", tmp_path)
    report = Tracker(down, clock).sync(study.first(2))
    assert report == SyncReport(num_behind=2, error=f"{down.uri}: [Errno 111] Connection refused")
    gateway.behave = FAIL
    tracker = Tracker(spec_to(gateway, tmp_path), clock)
    assert [tracker.sync(study.first(count)).num_behind for count in (1, 2)] == [1, 2]
    gateway.behave = PASS
    clock.now_s += RETRY_AFTER_S
    assert tracker.sync(study) == SyncReport(num_written=4)
    assert seen.trial_numbers(gateway.url, study.name) == [0, 1, 2, 3]


def test_a_failing_server_is_asked_once_and_left_in_peace(
    gateway: Gateway, tmp_path: Path, study: FakeStudy
) -> None:
    gateway.behave = FAIL
    clock = ManualClock()
    tracker = Tracker(spec_to(gateway, tmp_path), clock)
    report = tracker.sync(study)
    assert (report.num_behind, report.error) == (4, f"{gateway.url}: too many 500 error responses")
    assert tracker.sync(study) == report
    assert len(gateway.calls) == 1
    clock.now_s += RETRY_AFTER_S
    tracker.sync(study)
    assert len(gateway.calls) == 2
    tracker.sync(study, deadline_s=60)
    assert len(gateway.calls) == 3


def test_a_hanging_server_costs_one_time_out(gateway: Gateway, tmp_path: Path, study: FakeStudy) -> None:
    gateway.behave = HANG
    tracker = Tracker(spec_to(gateway, tmp_path, sync_s=1.0), ManualClock())
    report = tracker.sync(study)
    assert report.num_behind == 4
    assert "timed out" in report.error
    tracker.sync(study)
    assert len(gateway.calls) == 1


def test_a_server_that_hangs_in_the_midst_is_caught_up_with(
    gateway: Gateway, tmp_path: Path, study: FakeStudy
) -> None:
    gateway.behave, gateway.only = HANG, "/runs/update"
    clock = ManualClock()
    tracker = Tracker(spec_to(gateway, tmp_path, sync_s=2.0), clock)
    assert tracker.sync(study).num_behind == 4
    gateway.behave = PASS
    clock.now_s += RETRY_AFTER_S
    assert tracker.sync(study) == SyncReport(num_written=4)
    assert gateway.num_calls("/runs/create") == 4


def test_an_answer_lost_on_the_way_makes_no_second_run(gateway: Gateway, tmp_path: Path, study: FakeStudy) -> None:
    gateway.behave, gateway.only = LOSE, "/runs/create"
    clock = ManualClock()
    tracker = Tracker(spec_to(gateway, tmp_path), clock)
    for _ in range(4):
        assert tracker.sync(study).error
        clock.now_s += RETRY_AFTER_S
    assert tracker.sync(study).num_behind == 0
    assert gateway.num_calls("/runs/create") == 4
    assert seen.trial_numbers(gateway.url, study.name) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "answer", ["{}", '{"experiment": 7}', '{"detail": [1]}', "[]", "null", "<html>hello</html>", ""]
)
def test_another_program_on_the_port_is_reported_not_raised(
    gateway: Gateway, tmp_path: Path, study: FakeStudy, answer: str
) -> None:
    gateway.behave, gateway.nonsense = NONSENSE, answer.encode()
    report = Tracker(spec_to(gateway, tmp_path), ManualClock()).sync(study)
    assert report.num_behind == 4
    assert report.error.startswith(gateway.url)
    assert len(gateway.calls) == 1


def test_a_run_without_an_identifier_is_reported_not_raised(
    gateway: Gateway, tmp_path: Path, study: FakeStudy
) -> None:
    gateway.behave, gateway.only = NONSENSE, "/runs/create"
    report = Tracker(spec_to(gateway, tmp_path), ManualClock()).sync(study)
    assert report == SyncReport(num_behind=4, error=f"{gateway.url}: what answers there is not an MLflow server")


def test_the_page_of_a_server_is_named_and_none_is_started(
    server: str, tmp_path: Path, study: FakeStudy, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = spec_for(server, tmp_path)
    become_ui(spec, study.name, "127.0.0.1", 5001)
    tracker = Tracker(spec, ManualClock())
    tracker.sync(study)
    become_ui(spec, study.name, "127.0.0.1", 5001)
    assert capsys.readouterr().out.splitlines() == [f"{server}/", tracker.view_url(server)]


def test_the_page_of_a_server_that_is_down_is_named_all_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    address = f"http://127.0.0.1:{free_port()}"
    become_ui(spec_for(address, tmp_path), "night", "127.0.0.1", 5001)
    assert capsys.readouterr().out == f"{address}/\n"


def test_a_password_in_the_address_is_not_in_the_message(tmp_path: Path, study: FakeStudy) -> None:
    port = free_port()
    error = Tracker(spec_for(f"http://me:s3cret@127.0.0.1:{port}", tmp_path), ManualClock()).sync(study).error
    assert error == f"http://***@127.0.0.1:{port}: [Errno 111] Connection refused"


def test_files_of_the_whole_study_lie_beside_those_of_its_baseline(
    gateway: Gateway, server: str, tmp_path: Path, study: FakeStudy
) -> None:
    tracker = Tracker(spec_to(gateway, tmp_path), ManualClock())
    assert tracker.attach(study, {"report.html": b"too early"}, 60.0) == ""
    tracker.sync(study)
    gateway.behave = FAIL
    assert gateway.url in tracker.attach(study, {"report.html": b"never"}, 60.0)
    assert "no answer within 0 s" in tracker.attach(study, {"report.html": b"late"}, 0.0)
    gateway.behave = TRICKLE  # no single read is ever late
    assert "no answer within 1 s" in tracker.attach(study, {"report.html": b"slow"}, 1.0)
    gateway.behave = PASS
    for text in (b"old", b"new"):
        assert tracker.attach(study, {"report.html": text}, 60.0) == ""
    shown = [seen.files(server, run).get("report.html") for run in seen.runs(server, study.name)]
    assert shown == [b"new", None, None, None]
    assert tracker.sync(study) == SyncReport()


def test_answers_that_come_byte_by_byte_hold_nothing_up(
    gateway: Gateway, tmp_path: Path, study: FakeStudy
) -> None:
    clock = ManualClock()
    tracker = Tracker(spec_to(gateway, tmp_path, sync_s=1.0), clock)
    gateway.behave = TRICKLE  # no single read is ever late
    report = tracker.sync(study)
    assert report == SyncReport(num_behind=4, error=f"{gateway.url}: no answer within 1 s")
    gateway.behave = PASS
    assert tracker.sync(study) == report  # not asked again so soon
    clock.now_s += RETRY_AFTER_S
    assert tracker.sync(study, deadline_s=60.0).num_behind == 0
    assert seen.trial_numbers(gateway.url, study.name) == [0, 1, 2, 3]
