"""What one launch costs does not grow with the study: counted, since times depend on the machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from sqlalchemy import event

from sweeper.deciding.lossless import Admits, Gate
from sweeper.deciding.plan import progress
from sweeper.deciding.sharing import Ranking
from sweeper.records import Proposal, Purpose, TrialRecord, TrialState
from sweeper.samplers.choice import SamplerSettings
from sweeper.spec import BudgetSpec
from sweeper.storing.later_launches import lean_backend
from sweeper.storing.storage import StudyStore
from sweeper.study import Study
from tests.core.drafting import measured, physics_of, run
from tests.fakes import trial

FEW, MANY = 6, 18
BUDGET = BudgetSpec(trials=90, finalists=2, confirm_launches=2, baseline_every=0)


@dataclass(frozen=True)
class CountingGate(Gate):
    """Each answer that is drawn from all trials asks once who may win: the shortlist, and the reference."""

    asked: list[int] = field(default_factory=list, compare=False)

    def admits(self, trials: Sequence[TrialRecord]) -> Admits:
        self.asked.append(len(trials))
        return super().admits(trials)


def open_study(directory: Path, gate: Gate, sampler: str = "random") -> Study:
    store = StudyStore.open(f"sqlite:///{directory}/optuna.db", "night", str(directory), create=True)
    return study_in(store, gate, sampler)


def study_in(store: StudyStore, gate: Gate, sampler: str) -> Study:
    physics = physics_of()
    settings = SamplerSettings(sampler, 0, startup_trials=3, physics=physics.sampler)
    return Study(store, physics.candidates, physics.baseline, settings, Ranking("output_throughput", gate))


def turn(study: Study, proposal: Proposal) -> Proposal | None:
    """What the loop asks of a study from one proposal to the next."""
    study.progress(BUDGET)
    study.tell(proposal, study.save(study.save(measured(proposal), {}), {}))
    study.search_is_over(BUDGET)
    study.progress(BUDGET)
    return study.ask(BUDGET)


@pytest.mark.study
def test_a_launch_asks_as_often_after_many_trials_as_after_few(tmp_path: Path) -> None:
    gate = CountingGate()
    study = open_study(tmp_path, gate)
    backend, statements, seen = lean_backend(study.store.optuna), [0], []
    assert backend is not None
    event.listen(backend.engine, "before_cursor_execute", lambda *_: statements.append(statements.pop() + 1))
    for count in (FEW, MANY):
        run(study, BUDGET.model_copy(update={"trials": count, "confirm_launches": 0}))
        proposal = study.ask(BUDGET)
        assert proposal is not None
        study.progress(BUDGET)
        gate.asked.clear()
        statements[0] = 0
        assert turn(study, proposal) is not None
        seen.append((len(gate.asked), statements[0]))
    assert [shortlists for shortlists, _ in seen] == [2, 2], "for the progress, and as the next launch's reference"
    few, many = (count for _, count in seen)
    assert many - few < MANY - FEW, "not one more for each trial; the next one may have some parameters more"


@pytest.mark.study
def test_a_launch_leaves_the_records_of_all_other_trials_as_they_are(tmp_path: Path) -> None:
    study = open_study(tmp_path, Gate())
    run(study, BUDGET.model_copy(update={"trials": FEW, "confirm_launches": 0}))
    before, proposal = study.trials(), study.ask(BUDGET)
    assert proposal is not None
    turn(study, proposal)
    assert all(old is new for old, new in zip(before, study.trials(), strict=False))


@pytest.mark.study
@pytest.mark.parametrize("sampler", ["random", "physics"])
def test_what_is_kept_of_the_progress_is_what_is_drawn_anew(tmp_path: Path, sampler: str) -> None:
    study, budget = open_study(tmp_path, Gate(), sampler), BUDGET.model_copy(update={"trials": 8})
    while (proposal := study.ask(budget)) is not None:
        assert study.progress(budget) == study_in(study.store, Gate(), sampler).progress(budget)
        study.tell(proposal, study.save(measured(proposal), {}))
        new = study_in(study.store, Gate(), sampler)
        assert (study.progress(budget), study.next_step(budget)) == (new.progress(budget), new.next_step(budget))
    assert any(launch.purpose is Purpose.CONFIRM for launch in study.trials()[0].launches)


def test_a_trial_that_has_just_begun_changes_nothing_of_where_the_sweep_stands() -> None:
    known = [trial(0, [50.0, 50.5]), *(trial(n, [50.0 + n], n=n) for n in range(1, 6))]
    begun = trial(6, n=6, state=TrialState.RUNNING)
    assert progress([*known, begun], BUDGET, "output_throughput", True) == progress(
        known, BUDGET, "output_throughput", True
    )
