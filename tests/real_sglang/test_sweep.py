"""The real SGLang, swept over a real sshd: the whole adapter against reality."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from sweeper.records import TrialRecord, TrialState
from sweeper.storing.storage import StudyStore
from tests.real_sglang.environment import RealSglang
from tests.real_sglang.sweeping import sweep_words
from tests.ssh.sshd import Sshd

pytestmark = [pytest.mark.host, pytest.mark.slow, pytest.mark.timeout(1500)]


def test_seven_configurations_of_the_real_server_are_told_apart_proved_and_gone(
    real: RealSglang, tmp_path: Path
) -> None:
    with Sshd(tmp_path / "sshd") as sshd:
        sweep = sweep_words(real, sshd, tmp_path, "any")
        ended = subprocess.run(
            [sys.executable, "-m", "sweeper", *sweep.words], capture_output=True, text=True, timeout=1400
        )
    assert ended.returncode == 0, ended.stdout[-4000:] + ended.stderr[-2000:]
    trials = StudyStore.open(f"sqlite:///{tmp_path}/optuna.db", sweep.study, str(tmp_path), create=False).trials()
    assert [trial.state for trial in trials] == [TrialState.COMPLETE] * 7
    assert len({trial.key for trial in trials}) == 7
    for trial in trials:
        look_at(trial)
    # A tiny model is loaded between two looks at the log, now and then.
    seen = {phase.name for trial in trials for launch in trial.launches for phase in launch.phases}
    assert seen & {"start: loading weights", "start: allocating KV cache"}


def look_at(trial: TrialRecord) -> None:
    """One launch, proved from end to end, as its server reported it, with counted acceptance."""
    (launch,) = trial.launches
    assert launch.proof.complete, launch.proof
    assert launch.surprises == (), "what the rules foresee is what the server made of it"
    assert launch.effective["max_running_requests"] == 4
    if trial.is_baseline:
        assert "accept_length" not in launch.metrics
        return
    assert launch.metrics["accept_length"] >= 1
    assert launch.metrics["num_verify_steps"] > 0
    assert launch.accept_definition.startswith("1 + correct drafts / verify steps")
