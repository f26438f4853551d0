"""Where a study stands, from few of its rows: in a second or two whatever its size, also while a sweep writes."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sweeper.deciding.comparable import comparable
from sweeper.deciding.course import best_so_far, last_failures, luck_pct
from sweeper.deciding.hosts import measured_on, on_scale_of
from sweeper.garbage import no_search_for_garbage
from sweeper.metrics import METRICS
from sweeper.naming import difference_text
from sweeper.objective import SCORE
from sweeper.records import LaunchRecord, TrialRecord, TrialState
from sweeper.secrets import secrets_of
from sweeper.standing.beacon import notes
from sweeper.standing.briefs import read_brief
from sweeper.standing.model import Best, Failed, Standing
from sweeper.standing.rows import Outline, count_launches, last_moment, launches_of, outlines
from sweeper.storing.damage import Damage, reason_in
from sweeper.storing.later_launches import LaterLaunches, lean_backend
from sweeper.storing.lean_storage import LeanStorage
from sweeper.storing.saved_launch import Stored
from sweeper.storing.storage import StudyStore
from sweeper.storing.trial_reading import sorted_out
from sweeper.text import plain

_STATES = {
    "COMPLETE": TrialState.COMPLETE,
    "PRUNED": TrialState.INFEASIBLE,
    "FAIL": TrialState.FAILED,
    "RUNNING": TrialState.RUNNING,
}
_AT_ONCE = 8
_MOST_TRIED = 400
"""So many of the best are looked at to find one that may be compared with the baseline of now."""


@no_search_for_garbage()
def glance(store: StudyStore, folder: Path, now: datetime.datetime) -> Standing:
    """Where the study stands. `folder`: `study.dir`, in which the running processes leave their notes."""
    storage = lean_backend(store.optuna)
    assert storage is not None  # as StudyStore.open makes it
    return _Look(store, storage).standing(folder, now)


@dataclass
class _Look:
    """`damages`: what could not be read of the few launches that were looked at."""

    store: StudyStore
    storage: LeanStorage
    damages: list[Damage] = field(default_factory=list)

    def standing(self, folder: Path, now: datetime.datetime) -> Standing:
        study_id = self.store.optuna._study_id
        facts = self.store.texts("fingerprint")
        asked = facts.get("objective", "output_throughput")
        objective = asked if asked in METRICS else SCORE
        trials = self._sound(outlines(self.storage, study_id))
        later = self._later()
        known = self._known(trials, later)
        scored = [t for t in trials if t.state == "COMPLETE" and t.value is not None and t.number]
        best = self._best(scored, known, later, objective)
        found = notes(folder, self.store.name)
        states = Counter(_STATES[trial.state].value for trial in trials)
        alive = [note for note in found if note.now.is_alive is not False]
        baseline = known.get(0)
        verdict = self.store.texts("verdict").get("text")
        last_at = self._last_at(study_id, later)
        return Standing(
            study=self.store.name,
            objective=objective,
            unit=METRICS[objective].unit,
            at=now,
            trials={state.value: states[state.value] for state in TrialState},
            launches=self._launches(study_id, later),
            baseline=_compared([baseline], objective)[0].mean(objective)
            if baseline and baseline.measured
            else None,
            best=best,
            course=best_so_far(t.value for t in scored if t.value is not None),
            failures=_failures(list(known.values())),
            running=tuple(t.number for t in trials if t.state == "RUNNING"),
            now=tuple(note.now for note in alive),
            left=max((note.left for note in found if note.left), key=lambda left: left.at, default=None),
            mlflow=next((note.mlflow for note in found if note.mlflow), None),
            verdict=plain(verdict, 2000) if verdict else None,
            last_at=last_at,
            damaged=tuple(damage.text for damage in (*self.damages, *self.store.damaged_facts())),
        )

    def _sound(self, trials: Sequence[Outline]) -> list[Outline]:
        """The trials whose state and value are some."""
        found = []
        for trial in trials:
            if trial.state in _STATES and (trial.value is None or isinstance(trial.value, float)):
                found.append(trial)
            else:
                self.damages.append(Damage("its state or value is none", trial.number))
        return found

    def _last_at(self, study_id: int, later: Mapping[int, Sequence[LaunchRecord]]) -> datetime.datetime | None:
        again = [launch.ended_at for launches in later.values() for launch in launches]
        try:
            known = last_moment(self.storage, study_id)
        except ValueError as error:
            self.damages.append(Damage(f"a time is none: {reason_in(error)}", fact="trials"))
            known = None
        return max([*again, *filter(None, [known])], default=None)

    def _later(self) -> Mapping[int, list[LaunchRecord]]:
        kept = LaterLaunches(self.store.optuna, read_brief)
        stored = kept.by_trial()
        self.damages += kept.strange.values()
        return {number: self._readable(number, each) for number, each in stored.items()}

    def _readable(self, number: int, stored: Stored) -> list[LaunchRecord]:
        found, damages = sorted_out(stored, number)
        self.damages += damages
        return [saved.record for saved in found]

    def _launches(self, study_id: int, later: Mapping[int, Sequence[LaunchRecord]]) -> dict[str, int]:
        again = Counter(launch.purpose.value for launches in later.values() for launch in launches)
        own = Counter(count_launches(self.storage, study_id))
        return {"baseline": 0, "search": 0, **(own + again)}

    def _known(
        self, trials: Sequence[Outline], later: Mapping[int, Sequence[LaunchRecord]]
    ) -> dict[int, TrialRecord]:
        """The baseline, all trials that were launched again, and the last ones that failed."""
        failed = [t.number for t in trials if t.state in ("PRUNED", "FAIL")][-3:]
        wanted = {0, *failed, *later}
        return self._records([trial for trial in trials if trial.number in wanted], later)

    def _records(
        self, trials: Sequence[Outline], later: Mapping[int, Sequence[LaunchRecord]]
    ) -> dict[int, TrialRecord]:
        found = {n: self._readable(n, stored) for n, stored in launches_of(self.storage, trials).items()}
        made = {}
        for trial in trials:
            launches = sorted([*found[trial.number], *later.get(trial.number, ())], key=lambda n: n.launch_number)
            if launches:
                first = launches[0]
                made[trial.number] = TrialRecord(
                    number=trial.number,
                    key=first.canonical.key(),
                    state=_STATES[trial.state],
                    requested=first.requested,
                    canonical=first.canonical,
                    launches=tuple(launches),
                )
        return made

    def _best(
        self,
        scored: Sequence[Outline],
        known: Mapping[int, TrialRecord],
        later: Mapping[int, Sequence[LaunchRecord]],
        objective: str,
    ) -> Best | None:
        """As the sweep itself finds it: the highest mean of launches that may be compared with the baseline.

        Of several hosts on the scale of the one that first measured the baseline, as Optuna was told.
        """
        again = [known[number] for number in later if number and number in known]
        baseline = [known[0]] if 0 in known else []
        compared = _compared([*baseline, *again], objective)
        rivals = [t for t in compared if t.state is TrialState.COMPLETE and not t.is_baseline]
        alone = self._singles([t for t in scored if t.number not in later], later, baseline, objective)
        single = next(alone, None)
        every = [*rivals, *([single] if single else [])]
        values = [(value, trial) for trial in every if (value := trial.mean(objective)) is not None]
        if not values:
            return None
        value, best = max(values, key=lambda pair: pair[0])
        base = compared[0].mean(objective) if baseline else None
        luck = luck_pct(compared, best, len(scored), objective) if baseline else None
        name = difference_text(best.canonical, baseline[0].canonical) if baseline else f"trial {best.number}"
        return Best(
            trial=best.number,
            name=plain(secrets_of([best]).hide(name)),
            value=value,
            estimated=any(launch.estimated for launch in best.measured),
            ratio=value / base if base else None,
            luck_pct=luck,
            beyond_luck=100 * (value / base - 1) > luck if base and luck is not None else None,
        )

    def _singles(
        self,
        scored: Sequence[Outline],
        later: Mapping[int, Sequence[LaunchRecord]],
        baseline: Sequence[TrialRecord],
        objective: str,
    ) -> Iterator[TrialRecord]:
        """Trials that were launched once and may be compared, the best first."""
        ordered = sorted(scored, key=lambda trial: -(trial.value or 0.0))[:_MOST_TRIED]
        for start in range(0, len(ordered), _AT_ONCE):
            chunk = ordered[start : start + _AT_ONCE]
            records = self._records(chunk, later)
            found = [records[trial.number] for trial in chunk if trial.number in records]
            compared = _compared([*baseline, *found], objective)
            yield from (t for t in compared if not t.is_baseline and t.measured)


def _compared(trials: Sequence[TrialRecord], objective: str) -> tuple[TrialRecord, ...]:
    """The trials with the launches that may be compared, on the scale of the first host with a baseline."""
    compared = comparable(trials)[0]
    hosts = measured_on(compared, objective)
    return on_scale_of(compared, objective, hosts[0]) if hosts else compared


def _failures(known: Sequence[TrialRecord]) -> tuple[Failed, ...]:
    hidden = secrets_of(known)
    return tuple(
        Failed(
            trial=launch.trial_number,
            launch=launch.launch_number,
            kind=launch.failure.kind.value,
            message=plain(hidden.hide(launch.failure.message)),
            ended_at=launch.ended_at,
        )
        for launch in last_failures(known)
        if launch.failure is not None
    )
