from __future__ import annotations

import datetime
import platform
from collections.abc import Callable
from pathlib import Path

import pytest

from sweeper.storing.kept_run import KeptRun
from sweeper.study import Study
from tests.core.drafting import BUDGET, open_study, run
from tests.fakes import EPOCH

MakeStudy = Callable[..., Study]


def kept(folder: Path, *overrides: str, ended: str = "", host: str = "gpu1", hours: int = 0) -> KeptRun:
    """A run that began so many hours after the epoch of the tests."""
    return KeptRun(
        host=host,
        overrides=overrides,
        folder=str(folder),
        machine=platform.node(),
        began_at=EPOCH + datetime.timedelta(hours=hours),
        trials_total=20,
        ended=ended,
    )


@pytest.fixture
def make_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MakeStudy:
    """Makes a study in the folder `sweeps` of the working directory, with some trials."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")

    def make(name: str = "night", ended: str = "", words: tuple[str, ...] = (), trials: int = 1) -> Study:
        study = open_study(tmp_path / "sweeps", name, sampler="random")
        study.store.set_fact("fingerprint", {"engine.name": "sglang", "model.name": "kimi", "host.name": "gpu1"})
        assert study.identity
        if trials:
            run(study, BUDGET.model_copy(update={"trials": trials}))
        kept(tmp_path, *words, f"study.name={name}", ended=ended).keep(study.store)
        return study

    (tmp_path / "sweeps").mkdir()
    return make
