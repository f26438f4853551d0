from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from launchers.base import CommandResult, LaunchSpec, ServerHandle, StopReport
from launchers.errors import HostLost
from launchers.gpu_sample import GpuSample
from launchers.gpus import GpuReading
from sweeper.deciding.verdict import VerdictKind
from sweeper.engines.base import HostFacts
from sweeper.engines.registry import engine_for
from sweeper.errors import ExitCode, FailureKind, SweepAborted, SweepInterrupted
from sweeper.host_spec import HostSpec
from sweeper.interrupts import Interrupts
from sweeper.launch_record import Save
from sweeper.loop import run_sweep
from sweeper.objective import ObjectiveSpec, Term
from sweeper.provenance import provenance_of
from sweeper.records import LaunchRecord, Proposal, Purpose, TrialState
from sweeper.rig import Rig
from sweeper.spec import BudgetSpec, EngineSpec, LimitsSpec, ModelSpec, StudySpec, SweepSpec, TrackingSpec
from sweeper.tracking import Tracker
from sweeper.workload_spec import Prompt, WorkloadSpec
from tests.core.test_study import SPACE, open_study, record_of, speed
from tests.fakes import FakeClock, RecordingView, load_of

pytestmark = pytest.mark.study

LIMITS = LimitsSpec(start_s=10, stop_grace_s=1, identical_failures=3)


class IdleLauncher:
    """A launcher that is never asked to start anything; it left one server behind."""

    host = "here"

    def hold(self) -> AbstractContextManager[None]:
        return nullcontext()

    def free_port(self) -> int:
        raise NotImplementedError

    def start(self, spec: LaunchSpec) -> ServerHandle:
        raise NotImplementedError

    def is_alive(self, handle: ServerHandle) -> bool:
        raise NotImplementedError

    def exit_code(self, handle: ServerHandle) -> int | None:
        raise NotImplementedError

    def owns_port(self, handle: ServerHandle) -> bool:
        raise NotImplementedError

    def logs(self, handle: ServerHandle, from_byte: int = 0, max_bytes: int = 1_000_000) -> bytes:
        raise NotImplementedError

    def run(self, argv: tuple[str, ...], timeout_s: float, env: Mapping[str, str] | None = None) -> CommandResult:
        return CommandResult(127, b"", b"")

    def stop(self, handle: ServerHandle, grace_s: float) -> StopReport:
        raise NotImplementedError

    def stop_leftovers(self, grace_s: float) -> tuple[str, ...]:
        return ("server-of-yesterday",)

    def gpu_sample(self, handle: ServerHandle) -> GpuSample | None:
        return None

    def settle(self) -> GpuReading | None:
        return None

    def num_breaks(self) -> int:
        return 0

    def url(self, handle: ServerHandle) -> str:
        raise NotImplementedError


def make_rig(tmp_path: Path, view: RecordingView, trials: int = 6) -> Rig:
    spec = SweepSpec(
        engine=EngineSpec(name="llamacpp", command=("server",)),
        host=HostSpec(name="here", state_dir=str(tmp_path), port_low=18200, port_high=18201),
        model=ModelSpec(name="m", path="/m"),
        space=SPACE,
        workload=WorkloadSpec(
            name="w", prompts=(Prompt(id="a", text="b"),), max_tokens=8, repeats=1, warmup_max_requests=0,
            temperature=0.0, seed=0, request_timeout_s=5.0,
        ),
        study=StudySpec(
            name="night", dir=str(tmp_path), storage="sqlite://", sampler="random", seed=0, startup_trials=1
        ),
        budget=BudgetSpec(trials=trials, finalists=1, confirm_launches=2),
        limits=LIMITS,
        tracking=TrackingSpec(uri="", artifact_location="", sync_s=1.0),
        objective=ObjectiveSpec(terms=(Term(workload="w", metric="output_throughput"),)),
    )  # fmt: skip
    launcher, interrupts = IdleLauncher(), Interrupts(view.notice)
    engine, clock = engine_for("llamacpp"), FakeClock()
    return Rig(spec, engine, launcher, clock, HostFacts(), view, interrupts, (load_of(spec.workload),))


def sweep(
    tmp_path: Path, launch: Callable[[Proposal, Rig, Save], LaunchRecord], view: RecordingView | None = None
) -> VerdictKind:
    rig = make_rig(tmp_path, view or RecordingView())
    tracker = Tracker(rig.spec.tracking, rig.clock)
    return run_sweep(rig, open_study(tmp_path), tracker, launch).kind


def measured(proposal: Proposal, _rig: Rig, save: Save) -> LaunchRecord:
    return save(record_of(proposal, speed(proposal.canonical)), {})


def failing(kind: FailureKind, when: Callable[[Proposal], bool]) -> Callable[[Proposal, Rig, Save], LaunchRecord]:
    def launch(proposal: Proposal, rig: Rig, save: Save) -> LaunchRecord:
        if when(proposal):
            return save(record_of(proposal, None, kind), {})
        return measured(proposal, rig, save)

    return launch


def test_a_sweep_ends_with_a_confirmed_verdict_and_says_what_it_found_lying_about(tmp_path: Path) -> None:
    view = RecordingView()
    assert sweep(tmp_path, measured, view) is VerdictKind.WINNER
    assert "server-of-yesterday" in view.notices[0]
    assert [p.purpose for p in view.launches].count(Purpose.CONFIRM) == 4


def test_a_finished_sweep_that_is_started_again_launches_nothing(tmp_path: Path) -> None:
    sweep(tmp_path, measured)
    view = RecordingView()
    assert sweep(tmp_path, measured, view) is VerdictKind.WINNER
    assert view.launches == []


def test_a_larger_budget_goes_on_from_the_trials_there_are(tmp_path: Path) -> None:
    sweep(tmp_path, measured)
    view = RecordingView()
    rig = make_rig(tmp_path, view, trials=8)
    run_sweep(rig, open_study(tmp_path), Tracker(rig.spec.tracking, rig.clock), measured)
    assert [p.trial_number for p in view.launches if p.purpose is Purpose.SEARCH] == [6, 7]


def test_one_bad_configuration_does_not_end_the_sweep(tmp_path: Path) -> None:
    launch = failing(FailureKind.OUT_OF_MEMORY, lambda p: p.trial_number == 3)
    assert sweep(tmp_path, launch) is VerdictKind.WINNER
    assert open_study(tmp_path).trials()[3].state is TrialState.INFEASIBLE


def test_a_failing_baseline_stops_the_sweep_at_once(tmp_path: Path) -> None:
    with pytest.raises(SweepAborted, match=r"the baseline cannot be measured on host here \(out_of_memory"):
        sweep(tmp_path, failing(FailureKind.OUT_OF_MEMORY, lambda p: p.is_baseline))


def test_a_baseline_that_crashes_once_is_tried_again(tmp_path: Path) -> None:
    launch = failing(FailureKind.SERVER_CRASH, lambda p: p.is_baseline and p.launch_number == 0)
    assert sweep(tmp_path, launch) is VerdictKind.WINNER


def test_a_dirty_host_stops_the_sweep_after_three_in_a_row_and_says_what_holds_it(tmp_path: Path) -> None:
    view = RecordingView()
    with pytest.raises(
        SweepAborted, match=r"3 launches in a row failed alike on host here \(host_dirty[\s\S]*\| line"
    ):
        sweep(tmp_path, failing(FailureKind.HOST_DIRTY, lambda p: p.trial_number == 2), view)
    assert len(view.ended) == 2 + 3
    assert sweep(tmp_path, measured) is VerdictKind.WINNER  # mended: nothing was held against trial 2


def test_a_dirty_host_in_between_is_forgiven(tmp_path: Path) -> None:
    launch = failing(FailureKind.HOST_DIRTY, lambda p: p.launch_number == 0 and p.trial_number in (1, 2, 3, 4))
    assert sweep(tmp_path, launch) is VerdictKind.WINNER


def test_out_of_memory_many_times_in_a_row_is_a_finding_not_a_breakdown(tmp_path: Path) -> None:
    launch = failing(FailureKind.OUT_OF_MEMORY, lambda p: not p.is_baseline)
    assert sweep(tmp_path, launch) is VerdictKind.NO_GAIN


def test_six_trials_in_a_row_that_crash_alike_are_hardly_all_at_fault(tmp_path: Path) -> None:
    view = RecordingView()
    rig = make_rig(tmp_path, view, trials=9)
    launch = failing(FailureKind.SERVER_CRASH, lambda p: not p.is_baseline)
    with pytest.raises(SweepAborted, match=r"6 trials in a row \(1, 2, 3, 4, 5, 6\) failed alike"):
        run_sweep(rig, open_study(tmp_path), Tracker(rig.spec.tracking, rig.clock), launch)
    assert len(view.ended) == 1 + 5 * 2 + 1  # each crash is tried again, until the sixth trial crashes too


def test_an_abandoned_launch_is_measured_by_the_next_start(tmp_path: Path) -> None:
    def interrupted(proposal: Proposal, rig: Rig, save: Save) -> LaunchRecord:
        if proposal.trial_number == 2:
            raise SweepInterrupted(ExitCode.INTERRUPTED)
        return measured(proposal, rig, save)

    for _ in range(7):  # more often than specsweep may die during one trial
        with pytest.raises(SweepInterrupted):
            sweep(tmp_path, interrupted)
    view = RecordingView()
    sweep(tmp_path, measured, view)
    assert view.launches[0].trial_number == 2


def test_after_the_first_ctrl_c_no_further_launch_is_begun(tmp_path: Path) -> None:
    view = RecordingView()
    rig = make_rig(tmp_path, view)

    def launch(proposal: Proposal, rig: Rig, save: Save) -> LaunchRecord:
        rig.interrupts.finish_requested = proposal.trial_number == 1
        return measured(proposal, rig, save)

    run_sweep(rig, open_study(tmp_path), Tracker(rig.spec.tracking, rig.clock), launch)
    assert [p.trial_number for p in view.launches] == [0, 1]


def test_what_is_told_to_the_study_is_what_was_recorded(tmp_path: Path) -> None:
    sweep(tmp_path, measured)
    study = open_study(tmp_path)
    values: Mapping[int, float | None] = {t.number: t.value for t in study.store.optuna.get_trials()}
    recorded = {t.number: t.launches[0].metrics["output_throughput"] for t in study.trials()}
    assert values == recorded


def test_a_dirty_host_is_cleaned_of_what_is_ours_before_the_next_try(tmp_path: Path) -> None:
    view = RecordingView()
    dirty_once = iter([True])

    def launch(proposal: Proposal, rig: Rig, save: Save) -> LaunchRecord:
        if proposal.trial_number == 1 and next(dirty_once, False):
            return save(record_of(proposal, None, FailureKind.HOST_DIRTY), {})
        return measured(proposal, rig, save)

    sweep(tmp_path, launch, view)
    stopped = "stopped server server-of-yesterday, which an earlier process had left"
    assert view.notices.count(stopped) == 2, "at the start, and before trial 1 is tried again"
    assert [p.trial_number for p in view.launches][:3] == [0, 1, 1]


def test_starts_that_were_seen_teach_how_long_the_next_may_take(tmp_path: Path) -> None:
    limits: list[float | None] = []

    def launch(proposal: Proposal, rig: Rig, save: Save) -> LaunchRecord:
        limits.append(rig.start_limit_s)
        record = record_of(proposal, speed(proposal.canonical))
        return save(record.model_copy(update={"metrics": {**record.metrics, "start_s": 0.25}}), {})

    rig = make_rig(tmp_path, RecordingView())
    roomy = rig.spec.limits.model_copy(update={"start_s": 1800.0})
    rig = replace(rig, spec=rig.spec.model_copy(update={"limits": roomy}))
    run_sweep(rig, open_study(tmp_path), Tracker(rig.spec.tracking, rig.clock), launch)
    assert limits[:4] == [1800, 1800, 1800, 120.5]


class UpgradedLauncher(IdleLauncher):
    """On this host the engine is exchanged in mid-sweep; later it does not answer for a while."""

    version = "version: 100 (aaaaaaa)"

    def run(self, argv: tuple[str, ...], timeout_s: float, env: Mapping[str, str] | None = None) -> CommandResult:
        if not self.version:
            raise HostLost("no answer")
        is_asked = argv[-1] == "--version"
        return CommandResult(0 if is_asked else 127, b"", self.version.encode() if is_asked else b"")


def test_an_engine_that_is_exchanged_in_mid_sweep_is_seen_and_nothing_is_compared_across(tmp_path: Path) -> None:
    launcher, view = UpgradedLauncher(), RecordingView()
    rig = replace(make_rig(tmp_path, view), launcher=launcher)
    rig = replace(rig, facts=replace(rig.facts, engine_version="100 (aaaaaaa)", build={"commit": "aaaaaaa"}))
    budget = rig.spec.budget.model_copy(update={"baseline_every": 100})
    rig = replace(rig, spec=rig.spec.model_copy(update={"budget": budget}))
    versions = iter(["version: 100 (aaaaaaa)", "version: 200 (bbbbbbb)", ""])
    seen: list[tuple[int, str]] = []

    def launch(proposal: Proposal, rig: Rig, save: Save) -> LaunchRecord:
        launcher.version = next(versions, "")
        seen.append((proposal.trial_number, rig.facts.engine_version))
        record = record_of(proposal, speed(proposal.canonical))
        told = provenance_of(rig.spec, rig.facts, "here")
        return save(record.model_copy(update={"provenance": told}), {})

    run_sweep(rig, open_study(tmp_path), Tracker(rig.spec.tracking, rig.clock), launch)
    assert seen[:4] == [(0, "100 (aaaaaaa)"), (1, "100 (aaaaaaa)"), (2, "200 (bbbbbbb)"), (0, "200 (bbbbbbb)")]
    assert {version for _, version in seen[2:]} == {"200 (bbbbbbb)"}, "silence tells nothing new"
    told = "engine_version was 100 (aaaaaaa) and is 200 (bbbbbbb), commit was aaaaaaa and is bbbbbbb"
    (notice,) = [line for line in view.notices if "has changed" in line]
    assert notice == f"host here has changed: {told}; launches from before are not compared"
