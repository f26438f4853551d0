"""A study in a notebook: `from analysis import load; study = load("sweeps", "night"); study.trials`."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import pandas as pd

from analysis.frames import launches_frame, ranking
from analysis.reading import Reading, read
from analysis.request_frames import requests_frame
from sweeper.deciding.verdict import Verdict
from sweeper.engines.registry import engine_for
from sweeper.storing.storage import StudyStore

DEFAULT_ENGINE = "llamacpp"
"""For a study that stopped before it wrote down its engine: nothing was measured that an engine could judge."""


@dataclass(frozen=True)
class LoadedStudy:
    """A study as tables, read when they are asked for; it drives nothing and writes nothing.

    `reading`: what reports are drawn from. Names of metrics (and so their units) are those of METRICS.
    """

    name: str
    reading: Reading = field(repr=False)
    _store: StudyStore = field(repr=False)

    @property
    def objective(self) -> str:
        """The metric that the trials are ranked by: `value` in the tables."""
        return self.reading.objective

    @property
    def verdict(self) -> Verdict:
        """What is advised, as of now; its `text` says it in words."""
        return self.reading.verdict

    @cached_property
    def trials(self) -> pd.DataFrame:
        """One row per configuration, best first: TRIAL_COLUMNS, then `flag.X` and `env.X` for each setting."""
        return ranking(self.reading.trials, self.objective)

    @cached_property
    def launches(self) -> pd.DataFrame:
        """One row per launch in the order of their start: LAUNCH_COLUMNS, failed ones included."""
        return launches_frame(self.reading.trials, self.objective)

    @cached_property
    def requests(self) -> pd.DataFrame:
        """One row per measured request: REQUEST_COLUMNS. Reads every launch's file; damaged lines are left out."""
        return requests_frame(self._store, self.reading.trials)[0]


def load(directory: str | Path, name: str, storage: str = "") -> LoadedStudy:
    """The study `name` whose sweep wrote to `directory` (`study.dir`). `storage`: where it is not the default one.

    Raises ConfigError when there is no such study. What cannot be read is left out: `reading.damages`.
    """
    store = StudyStore.open(storage or f"sqlite:///{directory}/optuna.db", name, str(directory), create=False)
    engine = engine_for(store.texts("fingerprint").get("engine.name", DEFAULT_ENGINE))
    return LoadedStudy(name, read(store, engine.simplicity), store)
