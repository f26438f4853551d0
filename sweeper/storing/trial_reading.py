"""Reads a study's trials as records, each finished one once: they are asked for many times after every launch."""

from __future__ import annotations

import json
import operator
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import optuna
from optuna.trial import FrozenTrial
from optuna.trial import TrialState as OptunaState
from pydantic import ValidationError

from sweeper.forecasts import Forecast, Span
from sweeper.records import TrialRecord, TrialState
from sweeper.secrets import shows_secrets
from sweeper.spec import ServerConfig
from sweeper.storing.damage import Damage, reason_in
from sweeper.storing.later_launches import LaterLaunches, lean_backend
from sweeper.storing.memory import is_same
from sweeper.storing.saved_launch import LAUNCH, SavedLaunch, Stored, Unreadable, number_in, read_saved

_STATES = {
    OptunaState.RUNNING: TrialState.RUNNING,
    OptunaState.COMPLETE: TrialState.COMPLETE,
    OptunaState.PRUNED: TrialState.INFEASIBLE,
    OptunaState.FAIL: TrialState.FAILED,
}


_NONE: Stored = {}


class _Read(NamedTuple):
    """A trial as far as it can be read (None: not at all, or it is none of ours), and what of it cannot."""

    trial: TrialRecord | None
    damages: tuple[Damage, ...] = ()


class TrialReader:
    """The trials of one study. What was read is kept: a finished trial changes only by later launches of it.

    Other processes may write meanwhile. `damages`: what could not be read of the trials the last time.
    """

    def __init__(self, study: optuna.Study) -> None:
        self._study = study
        self._lean = lean_backend(study)
        self.damages: tuple[Damage, ...] = ()
        self._finished: dict[int, _Read] = {}
        self._later = LaterLaunches(study)
        self._joined: dict[int, tuple[Stored, _Read]] = {}
        self._read: list[FrozenTrial] = []
        self._last: tuple[TrialRecord, ...] = ()

    def trials(self) -> tuple[TrialRecord, ...]:
        """Every distinct trial that can be read, in order of its number; launches of it oldest first.

        While nothing changes it is the very same tuple.
        """
        later, read = self._later.by_trial(), self._study.get_trials(deepcopy=False)
        if not self._later.have_changed and _same(read, self._read):
            return self._last
        self._read = read
        finished, found, damages = self._finished, [], list[Damage]()
        for frozen in read:
            number = frozen.number
            known = finished.get(number) if number not in later else None
            trial, harmed = _or_nothing(known or self._joined_with(later.get(number, _NONE), frozen))
            damages += harmed
            if trial is not None:
                found.append(trial)
        self.damages = (*damages, *_of_no_trial(later, read), *self._later.strange.values())
        if len(found) != len(self._last) or any(map(_differ, found, self._last)):
            self._last = tuple(found)
        return self._last

    def _joined_with(self, later: Stored, frozen: FrozenTrial) -> _Read:
        """The trial with the launches that were made after it was told."""
        number, is_finished = frozen.number, frozen.state.is_finished()
        own = self._finished.get(number) or self._own(frozen)
        if is_finished:
            self._finished[number] = own
        if own.trial is None or not later:
            return own
        seen, joined = self._joined.get(number, (_NONE, own))
        if seen is not later or not is_finished:
            launches, damages = sorted_out(later, number)
            joined = _Read(_with(own.trial, launches), (*own.damages, *damages))
            self._joined[number] = (later, joined)
        return joined

    def _own(self, frozen: FrozenTrial) -> _Read:
        """The trial with its own launches; nothing for one that waits in the queue, or was left out."""
        reason = None if self._lean is None else self._lean.damaged.get(frozen._trial_id)
        if reason is not None:
            return _Read(None, (Damage(reason, frozen.number),))
        if frozen.user_attrs.get("left_out") or frozen.state is OptunaState.WAITING:
            return _Read(None)
        try:
            return self._parse(frozen)
        except (ValidationError, TypeError, ValueError, LookupError, AttributeError) as error:
            return _Read(None, (Damage(reason_in(error), frozen.number),))

    def _parse(self, frozen: FrozenTrial) -> _Read:
        attrs = frozen.user_attrs
        stored = None if self._lean is None else self._lean.launches.get(frozen._trial_id)
        if stored is None:
            stored = {n: read_saved(json.dumps(v)) for n, v in attrs.items() if n.startswith(LAUNCH)}
        saved, damages = sorted_out(stored, frozen.number)
        requested, canonical = (
            _config(attrs.get(name, {}), [getattr(each.record, name) for each in saved])
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
        return _Read(_with(trial, saved), damages)


def sorted_out(stored: Stored, number: int) -> tuple[list[SavedLaunch], tuple[Damage, ...]]:
    """The launches of trial `number` that can be read, and what is wrong with the others."""
    found, damages = list[SavedLaunch](), list[Damage]()
    for name, each in stored.items():
        launch = number_in(name.rpartition(":")[2])
        if isinstance(each, Unreadable):
            damages.append(Damage(each.reason, number, launch))
        elif each.record.trial_number != number:
            damages.append(Damage(f"it says that it is of trial {each.record.trial_number}", number, launch))
        elif each.record.launch_number != launch:
            damages.append(Damage(f"it says that it is launch {each.record.launch_number}", number, launch))
        else:
            found.append(each)
    return found, tuple(damages)


def _or_nothing(read: _Read) -> _Read:
    """The same, but nothing of a trial whose launches are all damaged, or that was measured and has none."""
    trial = read.trial
    if trial is None or trial.launches:
        return read
    if trial.state is TrialState.COMPLETE and not read.damages:
        return _Read(None, (Damage("it was measured, and has no launch", trial.number),))
    return _Read(None, read.damages) if read.damages else read


def _of_no_trial(later: Mapping[int, Stored], read: Sequence[FrozenTrial]) -> list[Damage]:
    """The launches of trials that the study does not have."""
    known = {frozen.number for frozen in read}
    return [
        Damage("the study has no such trial", number, number_in(name.rpartition(":")[2]))
        for number in later.keys() - known
        for name in later[number]
    ]


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
