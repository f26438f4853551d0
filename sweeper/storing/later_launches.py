"""Launches that were made after their trial was told, and are kept with the study."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping

import optuna
from optuna.storages._cached_storage import _CachedStorage

from sweeper.storing.damage import Damage
from sweeper.storing.lean_storage import LeanStorage
from sweeper.storing.saved_launch import LAUNCH, SavedLaunch, Stored, Unreadable, number_in, read_saved

Read = Callable[[str], SavedLaunch | Unreadable]

_NEWEST = 64
"""So many of the newest are looked at each time: a launch is saved again with the time that its stop took, seconds
later. More hosts than this share no study."""


def lean_backend(study: optuna.Study) -> LeanStorage | None:
    """The storage below Optuna's cache, where it is ours."""
    storage = study._storage
    if isinstance(storage, _CachedStorage) and isinstance(storage._backend, LeanStorage):
        return storage._backend
    return None


def forget_trials(study: optuna.Study) -> None:
    """Let all trials of a study be read anew the next time: what was read so far may no longer be there."""
    storage = study._storage
    if isinstance(storage, _CachedStorage):
        with storage._lock:
            storage._studies.clear()
            storage._trial_id_to_study_id_and_number.clear()
            storage._study_id_and_number_to_trial_id.clear()


class LaterLaunches:
    """Those of one study; each is parsed when it is new or has changed. Other processes may write meanwhile.

    `read`: parses one, where they are not kept in memory as the study's other launches are. `have_changed`: if
    any was new or had changed at the last look. `strange`: what bears no trial's number.
    """

    def __init__(self, study: optuna.Study, read: Read | None = None) -> None:
        self._study = study
        self._lean = lean_backend(study)
        self._read = read or (read_saved if self._lean is None else self._lean.read)
        self._texts: dict[str, int] = {}
        self._stored: dict[int, dict[str, SavedLaunch | Unreadable]] = {}
        self._by_trial: dict[int, Stored] = {}
        self.have_changed = False
        self.strange: dict[str, Damage] = {}

    def by_trial(self) -> Mapping[int, Stored]:
        """Trial number to its later launches. While those of a trial do not change, it is the very same object."""
        changed = set()
        for name, text in self._changed():
            if self._texts.get(name) != hash(text):
                self._texts[name] = hash(text)
                if (number := number_in(name.removeprefix(LAUNCH).partition(":")[0])) is None:
                    self.strange[name] = Damage("no trial has such a number", fact=name)
                    continue
                self._stored.setdefault(number, {})[name] = self._read(text)
                changed.add(number)
        for number in changed:
            self._by_trial[number] = dict(self._stored[number])
        self.have_changed = bool(changed)
        return self._by_trial

    def _changed(self) -> Iterable[tuple[str, str]]:
        """Names and JSON texts, among them all that are new or have changed since the last time."""
        if self._lean is None:
            attrs = self._study.user_attrs.items()
            return [(name, json.dumps(value)) for name, value in attrs if name.startswith(LAUNCH)]
        names = self._lean.study_attr_names(self._study._study_id, LAUNCH)
        newest = frozenset(names[-_NEWEST:])
        looked_at = [name for name in names if name in newest or name not in self._texts]
        return self._lean.study_attr_texts(self._study._study_id, looked_at)
