"""One launch: what becomes of what was measured, and of what failed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from launchers.base import CommandResult, ServerHandle
from sweeper.engines.registry import engine_for
from sweeper.errors import FailureKind, TrialError
from sweeper.launch_record import LaunchDraft, surprises
from sweeper.records import GpuWindow, LaunchRecord, Measurement, Proposal, Purpose, RequestResult
from sweeper.rig import Rig
from sweeper.serving.launch_trace import LaunchTrace
from sweeper.spec import FlagValue, ServerConfig
from sweeper.trial import gpu_watch, require_alone, require_score, require_unfaked, run_launch
from tests.core.test_loop import IdleLauncher, make_rig
from tests.fakes import EPOCH, RecordingView

DRAFTING: dict[str, FlagValue] = {
    "spec_type": "ngram-simple",
    "spec_ngram_simple_size_n": 3,
    "spec_ngram_simple_size_m": 4,
}


def proposal(flags: dict[str, FlagValue]) -> Proposal:
    made = ServerConfig(flags=flags)
    return Proposal(trial_number=1, launch_number=0, purpose=Purpose.SEARCH, requested=made, canonical=made)


def measurement(**metrics: float) -> Measurement:
    request = RequestResult(
        prompt_id="a", prompt_class="b", repeat=0, sent_at=EPOCH, e2e_latency_ms=100, num_output_tokens=9
    )
    return Measurement(
        requests=(request,), metrics=metrics, repeat_throughputs=(90.0,), prompt_throughputs={"a": 90.0}
    )


def test_a_speculative_server_that_never_drafted_has_no_score(tmp_path: Path) -> None:
    rig = make_rig(tmp_path, RecordingView())
    with pytest.raises(TrialError, match="not one token was drafted in 1 requests") as seen:
        require_score(proposal(DRAFTING), {"w": measurement(output_throughput=90, num_drafted_tokens=0)}, rig)
    assert seen.value.kind is FailureKind.SILENT_BYPASS


@pytest.mark.parametrize(("flags", "drafted"), [(DRAFTING, 12), ({}, 0)])
def test_a_server_that_drafted_or_was_not_asked_to_has_one(
    tmp_path: Path, flags: dict[str, FlagValue], drafted: int
) -> None:
    rig = make_rig(tmp_path, RecordingView())
    require_score(proposal(flags), {"w": measurement(output_throughput=90, num_drafted_tokens=drafted)}, rig)


def test_a_launch_without_the_objective_is_a_failed_benchmark_not_a_zero(tmp_path: Path) -> None:
    rig = make_rig(tmp_path, RecordingView())
    with pytest.raises(TrialError, match="output_throughput could not be measured") as seen:
        require_score(proposal({}), {"w": measurement(decode_throughput=90)}, rig)
    assert seen.value.kind is FailureKind.BENCHMARK_FAILED


def test_an_illegal_configuration_is_recorded_without_touching_the_host(tmp_path: Path) -> None:
    saved: list[LaunchRecord] = []

    def save(record: LaunchRecord, _artifacts: object) -> LaunchRecord:
        saved.append(record)
        return record

    record = run_launch(proposal({"spec_type": "nonesuch"}), make_rig(tmp_path, RecordingView()), save)
    assert record.failure is not None
    assert record.failure.kind is FailureKind.ILLEGAL
    assert "nonesuch" in record.failure.message
    assert saved == [record]


def test_what_the_server_reports_otherwise_is_named() -> None:
    lines = surprises({"ctx_size": 2048, "threads": 1}, {"ctx_size": 1024, "parallel": 4, "threads": 1})
    assert lines == ("ctx_size: asked for 2048, the server reports 1024",)


def test_a_launch_is_timed_whole_and_its_energy_is_its_power_over_that_time(tmp_path: Path) -> None:
    rig = make_rig(tmp_path, RecordingView())
    draft = LaunchDraft(proposal({}), rig, EPOCH)
    rig.clock.sleep(360)
    failed = draft.failed(TrialError(FailureKind.SERVER_CRASH, "gone"))
    assert failed.metrics == {"launch_s": 360}
    measured = failed.model_copy(update={"failure": None, "metrics": {"gpu_power_w": 1000.0}})
    rig.clock.sleep(360)
    assert draft.stopped(measured).metrics == {"gpu_power_w": 1000, "launch_s": 720, "energy_wh": 200}


class EnvironLauncher(IdleLauncher):
    """A host on which reading a server's environment ends like this."""

    def __init__(self, exit_code: int, stdout: bytes = b"", stderr: bytes = b"") -> None:
        self.result = CommandResult(exit_code, stdout, stderr)

    def run(self, argv: tuple[str, ...], timeout_s: float, env: Mapping[str, str] | None = None) -> CommandResult:
        assert "SPECSWEEP_SERVER=abc" in argv
        return self.result


def sglang_rig(tmp_path: Path, launcher: IdleLauncher) -> Rig:
    return replace(make_rig(tmp_path, RecordingView()), engine=engine_for("sglang"), launcher=launcher)


def started() -> LaunchTrace:
    return LaunchTrace(handle=ServerHandle("abc", "here", 1, 2, "boot", 3, "/log", "abc"))


def test_a_server_that_runs_with_simulated_acceptance_has_no_score(tmp_path: Path) -> None:
    launcher = EnvironLauncher(0, b"SGLANG_SIMULATE_ACC_LEN=3\n")
    with pytest.raises(TrialError, match="SGLANG_SIMULATE_ACC_LEN") as seen:
        require_unfaked(started(), sglang_rig(tmp_path, launcher))
    assert seen.value.kind is FailureKind.FAKED


def test_an_environment_that_cannot_be_seen_is_a_doubt_and_an_honest_one_is_none(tmp_path: Path) -> None:
    unseen = EnvironLauncher(4, stderr=b"no process carries it")
    (doubt,) = require_unfaked(started(), sglang_rig(tmp_path, unseen))
    assert "no process carries it" in doubt
    assert require_unfaked(started(), sglang_rig(tmp_path, EnvironLauncher(0))) == ()


def test_a_launch_beside_somebody_elses_job_is_the_hosts_failure(tmp_path: Path) -> None:
    rig = make_rig(tmp_path, RecordingView())
    watch = gpu_watch(started(), rig)
    require_alone(watch.window())
    with pytest.raises(TrialError, match="train") as seen:
        require_alone(GpuWindow(others=("pid 7: python train.py",)))
    assert seen.value.kind is FailureKind.HOST_DIRTY


def test_one_workload_without_anything_to_draft_from_is_no_bypass_when_another_drafts(tmp_path: Path) -> None:
    rig = make_rig(tmp_path, RecordingView())
    chat, copy = measurement(output_throughput=90, num_drafted_tokens=0), measurement(num_drafted_tokens=50)
    require_score(proposal(DRAFTING), {"w": chat, "copy": copy}, rig)
    with pytest.raises(TrialError, match="not one token was drafted in 2 requests"):
        require_score(proposal(DRAFTING), {"w": chat, "copy": chat}, rig)
