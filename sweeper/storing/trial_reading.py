"""Reads a study's trials as records, each finished one once: they are asked for many times after every launch."""

from __future__ import annotations

import json
import operator
from collections.abc import Sequence

import optuna
from optuna.trial import FrozenTrial
from optuna.trial import TrialState as OptunaState
from pydantic import ValidationError

from sweeper.forecasts import Forecast, Span
from sweeper.records import TrialRecord, TrialState
from sweeper.secrets import shows_secrets
from sweeper.spec import ServerConfig
from sweeper.storing.later_launches import LaterLaunches, lean_backend
from sweeper.storing.memory import is_same
from sweeper.storing.saved_launch import LAUNCH, SavedLaunch, Stored, Unreadable, read_saved, unreadable

_STATES = {
    OptunaState.RUNNING: TrialState.RUNNING,
    OptunaState.COMPLETE: TrialState.COMPLETE,
    OptunaState.PRUNED: TrialState.INFEASIBLE,
    OptunaState.FAIL: TrialState.FAILED,
}


class TrialReader:
    """The trials of one study. What was read is kept: a finished trial changes only by later launches of it.

    Other processes may write meanwhile.
    """

    def __init__(self, study: optuna.Study) -> None:
        self._study = study
        self._lean = lean_backend(study)
        self._finished: dict[int, TrialRecord] = {}
        self._later = LaterLaunches(study)
        self._left_out: set[int] = set()
        self._joined: dict[int, tuple[Stored, TrialRecord]] = {}
        self._read: list[FrozenTrial] = []
        self._last: tuple[TrialRecord, ...] = ()

    def trials(self) -> tuple[TrialRecord, ...]:
        """Every distinct trial in order of its number; launches of it oldest first.

        While nothing changes it is the very same tuple. Raises SpecsweepError for a record that cannot be read.
        """
        later, read = self._later.by_trial(), self._study.get_trials(deepcopy=False)
        if not self._later.have_changed and _same(read, self._read):
            return self._last
        self._read = read
        finished, found = self._finished, []
        for frozen in read:
            number = frozen.number
            record = finished.get(number) if number not in later else None
            if record is None and number not in self._left_out:
                record = self._current(frozen, later.get(number, ()))
            if record is not None:
                found.append(record)
        if len(found) != len(self._last) or any(map(_differ, found, self._last)):
            self._last = tuple(found)
        return self._last

    def _current(self, frozen: FrozenTrial, later: Stored) -> TrialRecord | None:
        """The trial as a record; None for one that waits in the queue, or was left out as none of ours."""
        if frozen.user_attrs.get("left_out"):
            if frozen.state.is_finished():
                self._left_out.add(frozen.number)
            return None
        return None if frozen.state is OptunaState.WAITING else self._trial(frozen, later)

    def _trial(self, frozen: FrozenTrial, later: Stored) -> TrialRecord:
        known = self._finished.get(frozen.number)
        if known is None:
            known = self._parse(frozen)
            if frozen.state.is_finished():
                self._finished[frozen.number] = known
        if not later:
            return known
        seen, joined = self._joined.get(frozen.number, ((), known))
        if seen is not later or not frozen.state.is_finished():
            joined = _with(known, self._readable(later, frozen))
            self._joined[frozen.number] = (later, joined)
        return joined

    def _parse(self, frozen: FrozenTrial) -> TrialRecord:
        attrs = frozen.user_attrs
        stored = None if self._lean is None else self._lean.launches.get(frozen._trial_id)
        if stored is None:
            stored = tuple(read_saved(json.dumps(v)) for name, v in attrs.items() if name.startswith(LAUNCH))
        launches = [each.record for each in stored if isinstance(each, SavedLaunch)]
        try:
            requested, canonical = (
                _config(attrs.get(name, {}), [getattr(launch, name) for launch in launches])
                for name in ("requested", "canonical")
            )
            trial = TrialRecord(
                number=frozen.number,
                key=canonical.key() if shows_secrets(canonical) else attrs.get("key", ""),
                state=_STATES[frozen.state],
                requested=requested,
                canonical=canonical,
                forecast=_forecast(frozen),
            )
        except (ValidationError, TypeError, ValueError) as error:
            raise unreadable(self._where(frozen), str(error)) from error
        return _with(trial, self._readable(stored, frozen))

    def _readable(self, stored: Stored, frozen: FrozenTrial) -> list[SavedLaunch]:
        """The stored launches. Raises SpecsweepError when one cannot be read, or is of another trial."""
        found = []
        for launch in stored:
            if isinstance(launch, Unreadable):
                raise unreadable(self._where(frozen), launch.reason)
            if launch.record.trial_number != frozen.number:
                told = f"it says that it is of trial {launch.record.trial_number}"
                raise unreadable(self._where(frozen), told)
            found.append(launch)
        return found

    def _where(self, frozen: FrozenTrial) -> str:
        return f"study {self._study.study_name}, trial {frozen.number}"


def _config(stored: object, launched: Sequence[ServerConfig]) -> ServerConfig:
    """A stored configuration; that of a launch where it is the same, which is then held in memory once.

    Raises ValidationError.
    """
    config = ServerConfig.model_validate(stored)
    return next((other for other in launched if is_same(config, other)), config)


def _same(some: Sequence[FrozenTrial], others: Sequence[FrozenTrial]) -> bool:
    """Whether these are the very same trials: of one that is under way Optuna makes a new object each time."""
    return len(some) == len(others) and all(map(operator.is_, some, others))


def _differ(one: TrialRecord, other: TrialRecord) -> bool:
    """Whether they are not the same; only a running trial is read anew each time."""
    return one is not other and one != other


def _with(trial: TrialRecord, saved: Sequence[SavedLaunch]) -> TrialRecord:
    """The trial with further launches; one that was saved again after its trial was told is stored twice."""
    launches = {launch.launch_number: launch for launch in (*trial.launches, *(each.record for each in saved))}
    names = {name: each.artifacts_at or name for each in saved for name in each.artifacts}
    return trial.model_copy(
        update={
            "launches": tuple(launches[number] for number in sorted(launches)),
            "artifacts": {**trial.artifacts, **names},
        }
    )


def _forecast(frozen: FrozenTrial) -> Forecast | None:
    """What the sampler wrote down about the trial; None when it expected nothing."""
    from sweeper.samplers.physics import stored_forecast  # half a second, which `status` does without

    found = stored_forecast(frozen)
    if found is None:
        return None
    spans = [
        None if each is None else Span(mean=each.mean, low=each.low, high=each.high)
        for each in (found.throughput, found.accept_length, found.step_time_ms)
    ]
    return Forecast(
        throughput=spans[0],
        accept_length=spans[1] if spans[1] and spans[1].high > 1 else None,  # without drafts there is none
        step_ms=spans[2],
        p_start=found.p_start,
        gain_pct=None if found.expected_gain is None else 100 * found.expected_gain,
        remaining_pct=None if found.remaining_gain is None else 100 * found.remaining_gain,
        reason=found.reason,
    )
