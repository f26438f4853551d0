"""What is read of a study once and kept, against the same study read anew, while two processes write."""

from __future__ import annotations

import random
from pathlib import Path

import optuna
import pytest

from sweeper.deciding.lossless import Gate
from sweeper.records import Purpose, TrialRecord
from sweeper.samplers.snapshot import snapshot
from sweeper.spec import BudgetSpec
from sweeper.storing.later_launches import lean_backend
from sweeper.storing.storage import StudyStore
from tests.core.drafting import BUDGET, measured, open_study, run
from tests.fakes import launch

pytestmark = pytest.mark.study


def anew(directory: Path) -> StudyStore:
    return StudyStore.open(f"sqlite:///{directory}/optuna.db", "night", str(directory), create=False)


@pytest.mark.parametrize("seed", range(3))
def test_what_is_kept_equals_what_is_read_anew_while_two_processes_write(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    ours, theirs = open_study(tmp_path, sampler="random"), open_study(tmp_path, sampler="random", seed=1)
    for _ in range(12):
        study = rng.choice((ours, theirs))
        told = [trial for trial in ours.trials() if trial.launches]
        if told and rng.random() < 0.4:
            number = rng.choice(told).number
            again = launch(rng.random(), trial=number, number=rng.randrange(1, 4), purpose=Purpose.CONFIRM)
            study.save(
                again.model_copy(update={"metrics": {"output_throughput": rng.random() + 1}}), {"log": b"x"}
            )
        elif (proposal := study.ask(BudgetSpec(trials=40, finalists=1, confirm_launches=0))) is not None:
            record = study.save(measured(proposal), {})
            assert ours.trials() == theirs.trials() == anew(tmp_path).trials()
            if rng.random() < 0.8:
                study.tell(proposal, study.save(record.model_copy(update={"surprises": ("later",)}), {}))
        assert ours.trials() == theirs.trials() == anew(tmp_path).trials()


def test_while_nothing_changes_it_is_the_very_same_tuple(tmp_path: Path) -> None:
    study = open_study(tmp_path, sampler="random")
    run(study)
    assert study.trials() is study.trials()


def test_trials_are_read_as_optuna_itself_reads_them_but_for_the_launches(tmp_path: Path) -> None:
    study = open_study(tmp_path)
    run(study)
    plain = optuna.load_study(study_name="night", storage=f"sqlite:///{tmp_path}/optuna.db")
    for ours, theirs in zip(anew(tmp_path).optuna.trials, plain.trials, strict=True):
        full = theirs.user_attrs.pop("launch:0")["record"]
        excerpt = ours.user_attrs.pop("launch:0")["record"]
        assert ours == theirs
        assert excerpt["metrics"] == full["metrics"]
        assert list(excerpt["accepted_per_position"]) == full["accepted_per_position"]


def test_equal_parts_of_records_are_in_memory_once(tmp_path: Path) -> None:
    run(open_study(tmp_path, sampler="random"))
    store = anew(tmp_path)
    first, *others = [trial.launches[0] for trial in store.trials()]
    assert all(other.provenance is first.provenance for other in others)
    assert lean_backend(store.optuna) is not None


def test_one_fact_is_read_without_the_others(tmp_path: Path) -> None:
    study = open_study(tmp_path, sampler="random")
    study.store.set_fact("x", {"a": [1]})
    assert (anew(tmp_path).fact("x"), anew(tmp_path).fact("y")) == ({"a": [1]}, None)


def test_what_a_sampler_notes_in_a_snapshot_stays_there(tmp_path: Path) -> None:
    study = open_study(tmp_path, sampler="random")
    run(study)
    study.store.optuna.ask()
    trials = study.store.optuna.get_trials(deepcopy=False)
    shown = snapshot(study.store.optuna.directions, trials)
    open_one = shown.get_trials(deepcopy=False)[-1]
    shown._storage.set_trial_system_attr(open_one._trial_id, "noted", 1)
    assert shown.get_trials(deepcopy=False)[-1].system_attrs["noted"] == 1
    assert "noted" not in trials[-1].system_attrs
    assert shown.get_trials(deepcopy=False)[0] is trials[0]


def test_a_gate_that_remembers_admits_whom_a_new_one_admits(tmp_path: Path) -> None:
    study = open_study(tmp_path, sampler="random")
    run(study, BUDGET)
    kept, rng = Gate(), random.Random(0)
    texts = ("16:00000000", "16:11111111", "16:22222222")
    trials = list(study.trials())
    for _ in range(30):
        place = rng.randrange(len(trials))
        trials[place] = _writes(trials[place], {f"p{i}#0": rng.choice(texts) for i in range(4)})
        admitted = [kept.admits(trials)(trial) for trial in trials]
        assert admitted == [Gate().admits(trials)(trial) for trial in trials]


def _writes(trial: TrialRecord, outputs: dict[str, str]) -> TrialRecord:
    made = tuple(one.model_copy(update={"outputs": outputs}) for one in trial.launches)
    return trial.model_copy(update={"launches": made})
