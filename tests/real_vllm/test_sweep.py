"""The real vLLM, swept on this machine's CPU: the whole engine against reality."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sweeper.records import TrialRecord, TrialState
from sweeper.storing.storage import StudyStore
from tests.real_sglang.install import InstallFailed
from tests.real_vllm.environment import RealVllm, real_vllm
from tests.real_vllm.install import default_folder, install, is_installed
from tests.real_vllm.sweeping import TRIALS, sweep_words

pytestmark = [pytest.mark.host, pytest.mark.slow, pytest.mark.timeout(3000)]

ASKED = "SPECSWEEP_REAL_VLLM"


@pytest.fixture
def real() -> RealVllm:
    """Where that is asked for: it takes 4 GB and some minutes once, and each start many seconds."""
    if not os.environ.get(ASKED):
        pytest.skip(f"{ASKED}=1 runs this on the real vLLM, and installs it first (4 GB)")
    if not is_installed(default_folder()):
        try:
            install(default_folder())
        except InstallFailed as failure:
            pytest.skip(str(failure))
    return real_vllm()


def test_five_configurations_of_the_real_server_are_told_apart_proved_and_gone(
    real: RealVllm, tmp_path: Path
) -> None:
    words = sweep_words(real, tmp_path, "vllm")
    ended = subprocess.run([sys.executable, "-m", "sweeper", *words], capture_output=True, text=True, timeout=2900)
    assert ended.returncode == 0, ended.stdout[-4000:] + ended.stderr[-2000:]
    trials = StudyStore.open(f"sqlite:///{tmp_path}/optuna.db", "vllm", str(tmp_path), create=False).trials()
    assert [trial.state for trial in trials] == [TrialState.COMPLETE] * TRIALS
    for trial in trials:
        look_at(trial)


def look_at(trial: TrialRecord) -> None:
    """One launch, proved from end to end, as its server reported it, with counted acceptance by position."""
    (launch,) = trial.launches
    assert launch.proof.complete, launch.proof
    assert launch.surprises == (), "what the rules foresee is what the server made of it"
    assert launch.effective["max_num_seqs"] == 4
    if trial.is_baseline:
        assert "accept_length" not in launch.metrics
        return
    assert launch.effective["spec_method"] == trial.canonical.flags["spec_method"]
    assert launch.metrics["accept_length"] >= 1
    assert len(launch.accepted_per_position) == trial.canonical.flags["spec_tokens"]
    assert launch.accept_definition.startswith("1 + accepted drafts / verify steps")
