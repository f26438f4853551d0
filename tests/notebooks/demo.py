"""Makes the small study that the example notebook reads: `python -m tests.notebooks.demo docs/notebooks/demo`."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from sweeper.records import TrialRecord
from sweeper.storing.storage import StudyStore
from tests.analysis.builders import FINGERPRINT, fill
from tests.browser.night import measured, night

NAME = "night"
NUM_TRIALS = 12
CONFIRMED = (4, 7)
_SGLANG = {
    "engine.name": "sglang",
    "engine.version": "0.5.23",
    "model.name": "kimi-k2.5",
    "space.spec_type": "",
}


def demo_trials() -> list[TrialRecord]:
    """The first trials of the night; the best two were launched again beside the baseline."""
    return [_again(record) if record.number in CONFIRMED else record for record in night().records[:NUM_TRIALS]]


def _again(record: TrialRecord) -> TrialRecord:
    rate, accept = record.mean("output_throughput"), record.mean("accept_length")
    assert rate is not None
    assert accept is not None
    return measured(record.number, record.canonical, rate, accept, launches=3)


def make(folder: Path) -> None:
    """Write the study anew."""
    shutil.rmtree(folder, ignore_errors=True)
    store = StudyStore.open(f"sqlite:///{folder}/optuna.db", NAME, str(folder), create=True)
    fill(store, demo_trials(), {**FINGERPRINT, **_SGLANG})


if __name__ == "__main__":
    make(Path(sys.argv[1]))
