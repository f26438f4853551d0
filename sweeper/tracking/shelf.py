"""Which trials' runs have to be looked at: making the view of a run costs a millisecond, and few change.

A run shows its trial, and its speedup over the baseline. So it is due when the trial has changed, and when the
baseline was launched again. The former come first; the latter, of a large study, take turns.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from sweeper.records import TrialRecord
from sweeper.secrets import secrets_of
from sweeper.tracking.view import RunView, run_params, run_view


class Shelf:
    """The finished trials of one study. Nothing here asks MLflow."""

    def __init__(self, owner: Mapping[str, str], objective: str) -> None:
        self._owner = owner
        self._objective = objective
        self._trials: dict[int, TrialRecord] = {}
        self._baseline: TrialRecord | None = None
        self._changed: dict[int, None] = {}
        self._unsure: dict[int, None] = {}
        self._outdated: set[int] = set()
        self._columns = Columns()
        self._telling: dict[int, RunView] = {}
        self._files: dict[int, tuple[TrialRecord, str]] = {}

    def put(self, trials: Sequence[TrialRecord]) -> None:
        """These are the trials that have finished, the baseline among them if it has. Others are forgotten."""
        is_first = not self._trials
        if gone := self._trials.keys() - {trial.number for trial in trials}:
            self._forget(gone, trials)
        for trial in trials:
            known = self._trials.get(trial.number)
            if known is not trial and known != trial:
                self._changed[trial.number] = None
                self._columns.add(trial)
            self._trials[trial.number] = trial
        baseline = next((trial for trial in trials if trial.is_baseline), None)
        if baseline is not self._baseline and baseline != self._baseline and not is_first:
            self._unsure = dict.fromkeys(self._trials)
            self._outdated |= self._trials.keys()
        self._baseline = baseline
        if is_first:
            self._unsure, self._changed = self._changed, {}

    @property
    def numbers(self) -> Collection[int]:
        """The trials that have finished."""
        return self._trials.keys()

    def _forget(self, gone: Collection[int], trials: Sequence[TrialRecord]) -> None:
        for known in (self._trials, self._changed, self._unsure, self._telling, self._files):
            for number in gone:
                known.pop(number, None)
        self._outdated -= set(gone)
        self._columns = Columns()
        for trial in trials:
            self._columns.add(trial)

    def look_again(self, numbers: Sequence[int] | None = None) -> None:
        """What is known of these runs (of all) is not sure any more."""
        self._unsure |= dict.fromkeys(self._trials if numbers is None else numbers)

    def changed(self) -> Iterator[RunView]:
        """Views of trials that have changed. One that was taken is not given again, once the next is asked for."""
        yield from self._taken(self._changed)

    def unsure(self, shown: Mapping[int, str]) -> Iterator[RunView]:
        """Views of all others whose run may differ, those without a run first; likewise."""
        self._unsure = dict.fromkeys(sorted(self._unsure, key=lambda number: number in shown))
        yield from self._taken(self._unsure)

    def behind(self, shown: Mapping[int, str], refused: Mapping[int, str], deleted: str) -> int:
        """How many trials' runs are missing, or known to differ."""
        numbers = (self._trials.keys() - shown.keys()) | self._outdated | self._changed.keys() | refused.keys()
        return sum(1 for number in numbers if shown.get(number) != deleted)

    @property
    def telling(self) -> Sequence[RunView]:
        """Views that together have every value of every parameter, and all that decides the page's columns.

        These do not depend on the baseline's launches: a view is made anew only when its trial has changed.
        """
        for number in self._columns.telling:
            known, trial = self._telling.get(number), self._trials[number]
            if known is None or known.trial is not trial:
                self._telling[number] = self._view(trial)
        return [self._telling[number] for number in self._columns.telling]

    def _taken(self, due: dict[int, None]) -> Iterator[RunView]:
        for number in list(due):
            yield self._view(self._trials[number])
            due.pop(number, None)
            self._outdated.discard(number)

    def _view(self, trial: TrialRecord) -> RunView:
        known, digest = self._files.get(trial.number, (None, ""))
        view = run_view(self._owner, trial, self._baseline, self._objective, digest if known is trial else "")
        self._files[trial.number] = trial, view.files_digest
        if trial.number in self._columns.telling:
            self._telling[trial.number] = view
        return view


class Columns:
    """Finds trials that show a value, a set of parameters or a kind of note first: `telling`, their numbers."""

    def __init__(self) -> None:
        self.telling: dict[int, None] = {}
        self._seen: set[object] = set()

    def add(self, trial: TrialRecord) -> None:
        """A trial as it is now."""
        params = run_params(trial.canonical, secrets_of([trial]))
        found: set[object] = {*params.items(), frozenset(params)}
        for launch in trial.measured:
            found |= set(launch.others)
            found |= {
                name
                for name, value in (
                    ("estimated", launch.estimated),
                    ("doubts", launch.doubts or any(other.doubts for other in launch.others.values())),
                    ("lossy", launch.lossy),
                )
                if value
            }
        if not found <= self._seen:
            self._seen |= found
            self.telling[trial.number] = None
