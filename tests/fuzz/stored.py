"""What a study, MLflow and a host keep for later, damaged: read back by the commands that look at a sweep."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import optuna
from optuna.trial import FrozenTrial

from analysis.reading import read
from sweeper.engines.llamacpp import LlamaCpp
from sweeper.errors import SpecsweepError
from sweeper.kept_search import KeptSearch
from sweeper.probing.findings import all_reduce_of
from sweeper.storing.storage import StudyStore
from tests.fakes import launch

_SIMPLICITY = LlamaCpp().simplicity


def stored_seeds() -> tuple[bytes, ...]:
    """The attributes of a trial and those of its study, as JSON: `[trial's, study's]`."""
    record = {
        "record": json.loads(launch(80.0, repeats=(79.0, 81.0)).model_dump_json()),
        "artifacts": ["launch-0-a"],
    }
    trial = {
        "key": "0123456789abcdef",
        "requested": {"flags": {"n": 3}, "env": {}},
        "canonical": {"flags": {"n": 3}, "env": {"HF_TOKEN": "***"}},
        "launch:0": record,
        "begun": 1,
    }
    later = json.loads(launch(82.0, number=1).model_dump_json())
    study = {
        "launch:0:1": {"record": later, "artifacts": []},
        "fingerprint": {
            "objective": "output_throughput",
            "engine.name": "llamacpp",
            "workload.temperature": "0.0",
        },
        "verdict": {"text": "Winner: trial 1."},
        "allow_lossy": False,
        "identity": "a1b2",
        "searched": {"engine": "llamacpp", "objective": "output_throughput", "space": {}, "base": {}, "facts": {}},
        "all_reduce": {"program": "p", "num_ranks": 2, "hidden_size": 8, "num_layers": 1, "num_settings": 1},
    }
    return (json.dumps([trial, study]).encode(), json.dumps([{"left_out": True}, study]).encode())


def stored_parser(folder: Path) -> Callable[[bytes], object]:
    """Everything that reads a study. A report leaves out what cannot be read; others may say so in one message."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)

    def feed(content: bytes) -> None:
        try:
            told = json.loads(content)
        except (ValueError, RecursionError):
            return
        if not (isinstance(told, list) and len(told) == 2 and all(isinstance(each, dict) for each in told)):
            return
        read(DamagedStore(folder, *told), _SIMPLICITY)
        for look in (lambda store: store.trials(), KeptSearch.of, all_reduce_of):
            try:
                look(DamagedStore(folder, *told))
            except SpecsweepError as error:
                str(error)

    return feed


class DamagedStore(StudyStore):
    """A store of one finished trial whose attributes are given."""

    def __init__(self, folder: Path, trial: Mapping[str, Any], study: Mapping[str, Any]) -> None:
        super().__init__(_DamagedStudy(trial, study), folder)  # type: ignore[arg-type]


class _DamagedStudy:
    study_name = "night"
    _storage = None

    def __init__(self, trial: Mapping[str, Any], study: Mapping[str, Any]) -> None:
        self.user_attrs = dict(study)
        self._trial = trial

    def get_trials(self, **_: object) -> list[FrozenTrial]:
        at = datetime(2026, 1, 1, tzinfo=UTC)
        made = optuna.trial.create_trial(value=80.0, user_attrs=dict(self._trial))
        made.number = 0
        made.datetime_start = made.datetime_complete = at
        return [made]
