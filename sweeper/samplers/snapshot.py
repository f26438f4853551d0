"""A study's trials in memory, for one proposal: a sampler reads all of them several times, and notes its plan."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import optuna
from optuna.storages import InMemoryStorage
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial


class _Shown(InMemoryStorage):
    """Holds trials without copying those that have ended: nobody changes them any more."""

    def show(self, study_id: int, trials: Sequence[FrozenTrial]) -> None:
        """These are the study's trials, in the order of their numbers."""
        shown = [trial if trial.state.is_finished() else copy.deepcopy(trial) for trial in trials]
        self._studies[study_id].trials = shown
        self._trial_id_to_study_id_and_number = {t._trial_id: (study_id, n) for n, t in enumerate(shown)}
        self._max_trial_id = max(self._trial_id_to_study_id_and_number, default=-1)


def snapshot(directions: Sequence[StudyDirection], trials: Sequence[FrozenTrial]) -> Study:
    """A study of these trials. What is noted in it is noted nowhere else; the finished trials are not copies."""
    storage = _Shown()
    study = optuna.create_study(
        storage=storage, sampler=optuna.samplers.RandomSampler(), directions=list(directions)
    )
    storage.show(study._study_id, trials)
    return study


def hand_over(shown: Study, study: Study, trial: FrozenTrial) -> None:
    """Note in `study` what a sampler has noted about its trial in the snapshot `shown`."""
    noted = shown._storage.get_trial(trial._trial_id).system_attrs
    for name, value in noted.items():
        if trial.system_attrs.get(name) != value:
            study._storage.set_trial_system_attr(trial._trial_id, name, value)
