"""The whole probe on this machine, with a stand-in for nccl-tests: when it runs, what it keeps, how it ends."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from launchers.base import ServerHandle, StopReport
from launchers.clock import SystemClock
from launchers.errors import HostDirty
from launchers.gpus import GpuReading
from launchers.host import HostLauncher, HostSettings
from launchers.shell import LocalShell
from sweeper.engines.base import HostFacts
from sweeper.interrupts import Interrupts
from sweeper.launch_record import Save
from sweeper.loop import run_sweep
from sweeper.probing.findings import Findings, findings_of
from sweeper.probing.nccl import MAX_TRIES, NcclProbe
from sweeper.records import LaunchRecord, Proposal
from sweeper.rig import Rig
from sweeper.spec import ProbeSpec
from sweeper.study import Study
from sweeper.study_setup import open_study
from sweeper.tracking import Tracker
from tests.core.drafting import BASE, ENGINE, SPACE, measured
from tests.core.specs import sweep_spec
from tests.fakes import RecordingView, load_of
from tests.launchers.conftest import unused_port

pytestmark = [pytest.mark.host, pytest.mark.study]

PROGRAM = """#!/bin/sh
[ "$1" != -h ] || { echo USAGE; exit; }
here=${0%/*}
echo "${NCCL_PROTO-unset} ${NCCL_DEBUG-unset} ${CUDA_VISIBLE_DEVICES-} ${NCCL_NVLS_ENABLE-}" >> "$here/calls"
[ ! -e "$here/hangs-${NCCL_PROTO-unset}" ] || sleep 600
[ ! -e "$here/dies-${NCCL_PROTO-unset}" ] || { echo "NCCL failure: unhandled system error"; exit 2; }
echo "# size count time busbw"
size=$2
while [ "$size" -le "$4" ]; do echo "$size 1 $((size / 100 + 1)).5 0.1"; size=$((size * 2)); done
"""

PYTHON = """#!/bin/sh
echo python >> "${0%/*}/calls"
for size in 128 512 1024 2048 4096 8192; do echo "specsweep-all-reduce {\\"bytes\\": $size, \\"us\\": 9.5}"; done
"""

CONFIG = {"architectures": ["LlamaForCausalLM"], "hidden_size": 64, "num_hidden_layers": 4}
FACTS = HostFacts(
    engine_version="0.5.23", model_path="/m", files={"/m/config.json": json.dumps(CONFIG)}, gpu_names=("X", "X")
)


class Dirty(HostLauncher):
    """A host whose GPUs somebody else uses so many times."""

    times = 0

    def settle(self) -> GpuReading | None:
        self.times -= 1
        if self.times >= 0:
            raise HostDirty("GPU 0 holds 9000 MiB", ("python",))
        return None


@dataclass
class Night:
    """A sweep on this machine. Each `study()` is what another process would open."""

    folder: Path
    launcher: Dirty
    view: RecordingView = field(default_factory=RecordingView)
    facts: HostFacts = FACTS
    command: tuple[str, ...] = ("python3", "-m", "sglang.launch_server")
    timeout_s: float = 20.0
    gpus: tuple[int, ...] = ()

    def rig(self) -> Rig:
        spec = sweep_spec("sglang", SPACE, {**BASE.flags, "tp_size": 2}, "auto")
        place = {"dir": str(self.folder), "storage": f"sqlite:///{self.folder}/optuna.db"}
        spec = spec.model_copy(
            update={
                "probe": ProbeSpec(nccl=True, timeout_s=self.timeout_s),
                "engine": spec.engine.model_copy(update={"command": self.command, "env": {"NCCL_DEBUG": "INFO"}}),
                "host": spec.host.model_copy(update={"gpus": self.gpus}),
                "study": spec.study.model_copy(update=place),
                "budget": spec.budget.model_copy(update={"trials": 5, "confirm_launches": 0}),
            }
        )
        interrupts = Interrupts(self.view.notice)
        loads = (load_of(spec.workload),)
        return Rig(spec, ENGINE, self.launcher, SystemClock(), self.facts, self.view, interrupts, loads)

    def study(self) -> Study:
        return open_study(self.rig().spec, ENGINE, self.facts)[0]

    def with_baseline(self) -> Study:
        """The study after its first launch."""
        study = self.study()
        proposal = study.ask(self.rig().spec.budget)
        assert proposal is not None
        study.tell(proposal, study.save(measured(proposal), {}))
        return study

    def probe(self, study: Study) -> Findings | None:
        NcclProbe(self.rig(), study).run_if_due()
        return findings_of(study.store)

    def sweep(self, rig: Rig) -> list[Proposal]:
        """What a whole sweep launches."""
        launched: list[Proposal] = []

        def launch(proposal: Proposal, _rig: Rig, save: Save) -> LaunchRecord:
            launched.append(proposal)
            return save(measured(proposal), {})

        run_sweep(rig, self.study(), Tracker(rig.spec.tracking, rig.clock), launch)
        return launched

    def calls(self) -> list[str]:
        file = self.folder / "bin" / "calls"
        return [line.split()[0] for line in file.read_text().splitlines()] if file.exists() else []

    def mark(self, name: str) -> None:
        (self.folder / "bin" / name).touch()

    def said(self, *parts: str) -> bool:
        return any(all(part in notice for part in parts) for notice in self.view.notices)


def put(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


@pytest.fixture
def night(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Night:
    (tmp_path / "bin").mkdir()
    put(tmp_path / "bin" / "all_reduce_perf", PROGRAM)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    monkeypatch.setenv("NCCL_DEBUG", "TRACE")
    port = unused_port()
    return Night(tmp_path, Dirty(LocalShell("here"), HostSettings("here", str(tmp_path / "state"), port, port)))


def times_of(found: Findings | None) -> Mapping[str, int]:
    """How many sizes of each setting have a time."""
    assert found is not None
    return {timing.name: len(timing.microseconds) for timing in found.timings}


def test_nothing_is_timed_before_the_baseline(night: Night) -> None:
    assert night.probe(night.study()) is None
    assert night.calls() == []


def test_every_setting_is_timed_once_in_the_environment_of_a_server(night: Night) -> None:
    night.gpus = (2, 3)
    study = night.with_baseline()
    found = night.probe(study)
    assert times_of(found) == {"nothing set": 6, "NCCL_PROTO=LL": 6, "NCCL_PROTO=Simple": 6}
    lines = (night.folder / "bin" / "calls").read_text().splitlines()
    assert lines == [f"{proto} unset 2,3 0" for proto in ("unset", "LL", "Simple")]
    assert night.said("timing 3 settings on 2 GPUs with", "all_reduce_perf, at most 20 s each")
    assert night.said("3 settings of NCCL timed in", "restart")
    assert night.probe(night.study()) == found, "another process finds everything there"
    assert len(night.calls()) == 3


def test_a_setting_that_hangs_is_told_and_never_proposed(night: Night) -> None:
    night.timeout_s = 1.0
    night.mark("hangs-Simple")
    launched = night.sweep(night.rig())
    assert night.said("not proposed: NCCL_PROTO=Simple hung: it had not ended after 1 s")
    assert len(launched) == 5
    assert {p.canonical.env.get("NCCL_PROTO") for p in launched[1:]} == {"LL"}
    assert night.launcher.stop_leftovers(1.0) == ()


@pytest.mark.slow
def test_the_servers_python_runs_the_script_where_there_are_no_nccl_tests(night: Night) -> None:
    put(night.folder / "bin" / "all_reduce_perf", "#!/bin/sh\necho 'libnccl.so.2: cannot open' >&2\nexit 127\n")
    put(night.folder / "bin" / "python3.11", PYTHON)
    night.command = ("env", f"{night.folder}/bin/python3.11", "-m", "sglang.launch_server")
    assert set(times_of(night.probe(night.with_baseline())).values()) == {6}
    assert night.said("with torch")
    assert night.calls() == ["python"] * 3


def test_a_probe_that_fails_at_once_is_given_up_and_another_process_tries_again(night: Night) -> None:
    night.mark("dies-unset")
    night.mark("dies-LL")
    study = night.with_baseline()
    probe = NcclProbe(night.rig(), study)
    probe.run_if_due()
    probe.run_if_due()
    assert night.calls() == ["unset", "LL"]
    assert night.said("given up, the search goes on without it: died: NCCL failure: unhandled system error")
    for name in ("dies-unset", "dies-LL"):
        (night.folder / "bin" / name).unlink()
    assert set(times_of(night.probe(night.study())).values()) == {6}


@pytest.mark.slow
def test_a_python_that_is_not_there_is_the_probes_own_fault(night: Night) -> None:
    (night.folder / "bin" / "all_reduce_perf").unlink()
    night.command = ("/no/such/python3", "-m", "sglang.launch_server")
    found = night.probe(night.with_baseline())
    assert found is not None
    assert "/no/such/python3" in found.given_up


@pytest.mark.slow
def test_one_setting_that_fails_alone_is_no_reason_to_give_up(night: Night) -> None:
    night.mark("dies-LL")
    found = night.probe(night.with_baseline())
    assert times_of(found) == {"nothing set": 6, "NCCL_PROTO=LL": 0, "NCCL_PROTO=Simple": 6}
    assert night.said("not proposed: NCCL_PROTO=LL died: NCCL failure: unhandled system error (exit code 2)")


def test_ctrl_c_ends_it_after_the_current_setting_and_the_next_process_goes_on_there(night: Night) -> None:
    rig = night.rig()

    class Pressing(RecordingView):
        def phase(self, name: str) -> None:
            if name == "probing NCCL setting 2 of 3":
                signal.raise_signal(signal.SIGINT)

    with rig.interrupts.installed():
        launched = night.sweep(replace(rig, view=Pressing()))
    assert [proposal.trial_number for proposal in launched] == [0]
    assert night.calls() == ["unset", "LL"]
    study = night.study()
    night.launcher.times = 1
    NcclProbe(night.rig(), study).run_if_due()
    assert night.calls() == ["unset", "LL"], "what is left is not timed on GPUs in use either"
    found = night.probe(study)
    assert night.calls() == ["unset", "LL", "Simple"]
    assert set(times_of(found).values()) == {6}


@pytest.mark.slow
def test_gpus_in_use_put_it_off_and_the_search_goes_on_in_the_end(night: Night) -> None:
    night.launcher.times = 1
    probe = NcclProbe(night.rig(), night.with_baseline())
    probe.run_if_due()
    assert night.calls() == []
    assert night.said("interrupted, tried again before the next launch: GPU 0 holds 9000 MiB")
    probe.run_if_due()
    assert len(night.calls()) == 3
    night.launcher.times = MAX_TRIES + 5
    (night.folder / "optuna.db").unlink()
    endless = NcclProbe(night.rig(), night.with_baseline())
    for _ in range(MAX_TRIES + 1):
        endless.run_if_due()
    assert night.launcher.times == 5
    assert night.said("interrupted, left out: GPU 0 holds 9000 MiB")


@pytest.mark.slow
def test_a_setting_is_not_timed_beside_the_ghost_of_one_that_hung(night: Night) -> None:
    night.timeout_s = 1.0
    night.mark("hangs-LL")

    class Ghost(Dirty):
        def stop(self, handle: ServerHandle, grace_s: float) -> StopReport:
            report = super().stop(handle, grace_s)
            self.times = int("KILL" in report.signals or "TERM" in report.signals)
            return report

    night.launcher = Ghost(night.launcher.shell, night.launcher.settings)
    study = night.with_baseline()
    assert times_of(night.probe(study)) == {"nothing set": 6, "NCCL_PROTO=LL": 0}
    assert night.said("interrupted")
    assert len(times_of(night.probe(study))) == 3


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda facts: replace(facts, gpu_names=("X",)), "the server uses 2 GPUs, and 1 can be used on this host"),
        (lambda facts: replace(facts, files={}), "config.json does not tell its hidden size and its layers"),
    ],
)
def test_what_the_host_lacks_is_said_and_the_search_goes_on(
    night: Night, change: Callable[[HostFacts], HostFacts], reason: str
) -> None:
    study = night.with_baseline()
    night.facts = change(FACTS)
    assert night.probe(study) is None
    assert night.said("probe.nccl: left out:", reason)
    assert night.calls() == []
