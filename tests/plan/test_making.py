"""Plans of real studies on disk: what is proposed is what a start proposes, and nothing is written."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from sweeper.deciding.durations import launch_s
from sweeper.errors import ConfigError, SpecsweepError, StudyMismatch
from sweeper.naming import difference_text
from sweeper.planning.history import MODEL_UNKNOWN
from sweeper.planning.making import plan_of
from sweeper.planning.model import Plan
from sweeper.secrets import masked_config
from sweeper.spec import BudgetSpec, SweepSpec
from sweeper.study import Study
from sweeper.study_setup import open_study
from tests.core.drafting import BASE, ENGINE, FACTS, SPACE, run
from tests.core.specs import sweep_spec
from tests.fakes import FakeClock

pytestmark = pytest.mark.study

BUDGET = BudgetSpec(trials=8, baseline_every=4, finalists=1, confirm_launches=2)


def spec_of(folder: Path, sampler: str = "random", **changes: object) -> SweepSpec:
    spec = sweep_spec("sglang", SPACE, BASE.flags, sampler)
    places = {"dir": str(folder), "storage": f"sqlite:///{folder}/optuna.db"}
    study = spec.study.model_copy(update=places)
    engine = spec.engine.model_copy(update={"env": {"HF_TOKEN": "s3cret-value"}})
    return spec.model_copy(update={"study": study, "budget": BUDGET, "engine": engine, **changes})


def begun(spec: SweepSpec, trials: int) -> Study:
    """A study in which so many trials have been measured."""
    study, _ = open_study(spec, ENGINE, FACTS)
    run(study, spec.budget.model_copy(update={"trials": trials, "confirm_launches": 0}))
    return study


def plan(spec: SweepSpec, count: int = 3) -> Plan:
    return plan_of(spec, count, FakeClock())


def state_of(folder: Path) -> dict[str, str]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_a_new_study_is_planned_without_making_anything(tmp_path: Path) -> None:
    found = plan(spec_of(tmp_path / "sweeps"))
    assert found.stands == "new: nothing has been measured"
    assert [launch.purpose for launch in found.launches] == ["baseline", "search", "search", "search"]
    assert len({launch.name for launch in found.launches}) == 4
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("sampler", ["physics", "tpe", "random"])
def test_the_next_launch_of_a_study_is_the_one_that_a_start_makes(tmp_path: Path, sampler: str) -> None:
    spec = spec_of(tmp_path, sampler)
    study = begun(spec, 3)
    before = state_of(tmp_path)
    (first, *_) = plan(spec).launches
    assert state_of(tmp_path) == before
    proposal = study.ask(spec.budget)
    assert proposal is not None
    assert first.trial == proposal.trial_number == 3
    made = ENGINE.launch_spec(proposal.canonical, ENGINE.placed(first.commands[0].argv))
    assert first.commands[0].argv == made.argv
    assert first.commands[0].env == {**made.env, "HF_TOKEN": "***"}


def test_in_the_order_of_the_space_all_that_is_shown_is_what_follows(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, "grid")
    shown = [launch.name for launch in plan(spec, 4).launches]
    study = begun(spec, 5)
    names = [difference_text(trial.canonical, masked_config(study.baseline)) for trial in study.trials()]
    assert shown == names


def test_a_study_that_goes_on_says_what_is_done_and_times_its_own_launches(tmp_path: Path) -> None:
    spec = spec_of(tmp_path)
    study = begun(spec, 3)
    found = plan(spec)
    assert found.trials_done == 3
    assert found.stands.startswith("goes on: 3 of 8 trials done (3 complete)")
    times = [launch_s(launch) for trial in study.trials() for launch in trial.launches]
    assert found.launch_time.mean_s == pytest.approx(sum(times) / len(times))
    assert found.launch_time.source == "measured in 3 launches of this study"
    assert found.facts == "as study night saw the host at its last start"
    assert found.engine == "sglang 0.5.23"
    assert found.num_launches.search == 5


def test_a_new_study_is_timed_by_another_one_of_the_same_host_and_model(tmp_path: Path) -> None:
    begun(spec_of(tmp_path), 3)
    spec = spec_of(tmp_path)
    new = spec.model_copy(update={"study": spec.study.model_copy(update={"name": "new"})})
    found = plan(new)
    assert found.launch_time.source == "measured in 3 launches of study night, same host and model"
    assert found.stands.startswith("new")
    elsewhere = new.model_copy(update={"host": new.host.model_copy(update={"name": "there"})})
    assert plan(elsewhere).launch_time.mean_s is None


def test_the_size_in_a_models_name_is_a_guess_and_called_one(tmp_path: Path) -> None:
    spec = spec_of(tmp_path)
    named = spec.model_copy(update={"model": spec.model.model_copy(update={"name": "Qwen3-8B"})})
    time = plan(named, 0).launch_time
    assert time.is_guess
    assert "a guess" in time.source
    assert time.mean_s is not None
    assert not plan(spec, 0).launch_time.is_guess
    assert plan(spec, 0).launch_time.mean_s is None


def test_a_complete_study_has_nothing_to_launch(tmp_path: Path) -> None:
    spec = spec_of(tmp_path)
    study = begun(spec, 8)
    run(study, spec.budget)
    found = plan(spec)
    assert found.launches == ()
    assert found.num_launches.expected == 0
    assert found.stands.startswith("complete: 8 of 8")


def test_an_interrupted_trial_is_launched_again_first(tmp_path: Path) -> None:
    spec = spec_of(tmp_path)
    study = begun(spec, 2)
    proposal = study.ask(spec.budget)
    assert proposal is not None
    found = plan(spec)
    assert found.launches[0].trial == proposal.trial_number
    assert [launch.trial for launch in found.launches] == [2, 3, 4, 5]


def test_the_baseline_is_planned_again_when_it_is_due(tmp_path: Path) -> None:
    spec = spec_of(tmp_path)
    begun(spec, 5)
    first = plan(spec).launches[0]
    assert (first.trial, first.purpose, first.name) == (0, "control", "baseline")


def test_other_settings_are_refused_as_a_start_would(tmp_path: Path) -> None:
    begun(spec_of(tmp_path), 2)
    spec = spec_of(tmp_path)
    other = spec.model_copy(update={"workload": spec.workload.model_copy(update={"max_tokens": 9})})
    with pytest.raises(StudyMismatch, match=r"workload\.max_tokens: 8 then, 9 now"):
        plan(other)


def test_an_end_that_is_past_is_refused_as_a_start_would(tmp_path: Path) -> None:
    past = BUDGET.model_copy(update={"until": "2020-01-01T07:00"})
    with pytest.raises(ConfigError, match="is past"):
        plan(spec_of(tmp_path, budget=past))


def test_a_space_in_which_nothing_is_legal_is_refused_as_a_start_would(tmp_path: Path) -> None:
    flags = {**BASE.flags, "pp_size": 2}
    spec = spec_of(tmp_path).model_copy(update={"engine": sweep_spec("sglang", SPACE, flags, "tpe").engine})
    with pytest.raises(ConfigError, match="is legal"):
        plan(spec)


def test_no_secret_is_shown(tmp_path: Path) -> None:
    found = plan(spec_of(tmp_path))
    assert "s3cret-value" not in found.model_dump_json()
    assert found.launches[0].commands[0].env["HF_TOKEN"] == "***"


def test_a_prepared_model_has_no_path_yet(tmp_path: Path) -> None:
    spec = spec_of(tmp_path)
    prepared = spec.model_copy(update={"model": spec.model.model_copy(update={"prepare": ("make-it",)})})
    found = plan(prepared, 0)
    assert MODEL_UNKNOWN in found.launches[0].commands[0].argv
    assert any(MODEL_UNKNOWN in line for line in found.unchecked)


def test_a_study_that_a_start_would_refuse_as_damaged_has_no_plan(tmp_path: Path) -> None:
    spec = spec_of(tmp_path)
    begun(spec, 3).store.optuna.set_user_attr("launch:1:1", {"record": 5})
    for look in (lambda: plan(spec), lambda: open_study(spec, ENGINE, FACTS)):
        with pytest.raises(SpecsweepError, match="trial 1, launch 1: record: Input should be an object"):
            look()


def test_another_study_that_is_damaged_does_not_stop_a_plan(tmp_path: Path) -> None:
    spec = spec_of(tmp_path)
    begun(spec, 3).store.optuna.set_user_attr("launch:1:1", {"record": 5})
    other = spec.model_copy(update={"study": spec.study.model_copy(update={"name": "other"})})
    assert plan(other).facts == f"as study {spec.study.name} saw the host at its last start"
