"""Learning from an earlier study of the same host, and only of the same host."""

from __future__ import annotations

from pathlib import Path

import pytest

from sweeper.errors import ConfigError, FailureKind
from sweeper.records import TrialState
from sweeper.searching.choice import sampler_mistakes
from sweeper.searching.warm_start import differences, earlier_observations
from sweeper.spec import BudgetSpec, Choice, Parameter, ServerConfig, SpaceSpec, StudySpec
from tests.core.drafting import BASE, ENGINE, SPACE, open_study, physics_of, run
from tests.core.specs import sweep_spec
from tests.fakes import trial

pytestmark = pytest.mark.study

HERE = {
    "engine.name": "sglang",
    "engine.version": "0.5.23",
    "engine.flags.tp_size": "8",
    "host.name": "gpu1",
    "host.gpus": "H200, H200",
    "model.content": "aa",
    "model.draft /draft": "bb",
    "objective": "output_throughput",
    "workload.concurrency": "1",
    "workload.prompts": "2 prompts",
}


def spec_of(directory: Path, *names: str) -> StudySpec:
    url = f"sqlite:///{directory}/optuna.db"
    return StudySpec(name="new", dir=str(directory), storage=url, seed=0, startup_trials=1, warm_start=names)


def test_what_another_study_tried_is_told_in_terms_of_this_space(tmp_path: Path) -> None:
    study = open_study(tmp_path, name="old")
    run(study, BudgetSpec(trials=3, finalists=1, confirm_launches=0))
    study.store.set_fact("fingerprint", HERE)
    told, notes = earlier_observations(spec_of(tmp_path, "old"), physics_of(), HERE, "output_throughput")
    assert notes == ["warm start: 3 configurations that old has tried"]
    own = [physics_of().observe(frozen) for frozen in study.store.optuna.get_trials()]
    assert list(told) == own


def test_a_new_study_that_knows_an_old_one_needs_no_probe(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    (tmp_path / "new").mkdir()
    old = open_study(tmp_path / "old")
    made = run(old, BudgetSpec(trials=4, finalists=1, confirm_launches=0))
    physics = physics_of()
    seen = [physics.observe_record(record, "output_throughput") for record in old.trials()]
    warm = open_study(tmp_path / "new", earlier=tuple(one for one in seen if one is not None))
    few = BudgetSpec(trials=2, finalists=1, confirm_launches=0)
    first = run(warm, few)[1]
    forecast, probe = first.forecast, made[1].forecast
    assert forecast is not None
    assert probe is not None
    assert "probe" in probe.reason
    assert "probe" not in forecast.reason
    assert forecast.throughput is not None


def test_failures_and_foreign_values_are_told_and_lost_trials_are_not() -> None:
    physics = physics_of()
    failed = trial(
        3,
        state=TrialState.INFEASIBLE,
        failure=FailureKind.OUT_OF_MEMORY,
        speculative_algorithm="EAGLE3",
        speculative_num_steps=12,
    )
    seen = physics.observe_record(failed, "output_throughput")
    assert seen is not None
    assert seen.failed
    drafting = {"speculative_algorithm": "EAGLE3", "speculative_num_steps": 12}
    assert seen.config == {**drafting, "disable_cuda_graph": False}
    lost = failed.model_copy(update={"state": TrialState.FAILED})
    assert physics.observe_record(lost, "output_throughput") is None
    plain = physics.config_of(ServerConfig(flags=BASE.flags, env={"NCCL_PROTO": "Simple"}))
    assert plain == {"speculative_algorithm": "none", "disable_cuda_graph": False, "env.NCCL_PROTO": "Simple"}


def test_numbers_in_the_environment_keep_the_spelling_of_the_space() -> None:
    space = SpaceSpec(
        parameters=(
            *SPACE.parameters,
            Parameter(name="NCCL_MIN_NCHANNELS", domain=Choice(values=(8, 16)), is_env=True),
        )
    )
    config = physics_of(space).config_of(ServerConfig(env={"NCCL_MIN_NCHANNELS": "16"}))
    assert config["env.NCCL_MIN_NCHANNELS"] == 16


@pytest.mark.parametrize("path", [path for path in HERE if path != "workload.prompts"])
def test_another_host_engine_or_model_is_refused_by_name(tmp_path: Path, path: str) -> None:
    old = open_study(tmp_path, name="old", sampler="random").store
    old.set_fact("fingerprint", {**HERE, path: "other"})
    with pytest.raises(ConfigError) as caught:
        earlier_observations(spec_of(tmp_path, "old"), physics_of(), HERE, "output_throughput")
    assert caught.value.mistakes == (
        f"study.warm_start: 'old' cannot be used: {path} was other there and is {HERE[path]} here",
    )


def test_a_study_that_is_not_there_is_named(tmp_path: Path) -> None:
    open_study(tmp_path, name="old", sampler="random")
    with pytest.raises(ConfigError, match=r"'odl' is not in this storage; its studies: old"):
        earlier_observations(spec_of(tmp_path, "odl"), physics_of(), HERE, "output_throughput")


def test_another_workload_and_what_is_searched_may_differ() -> None:
    theirs = {**HERE, "workload.prompts": "9 prompts", "engine.flags.disable_cuda_graph": "True"}
    assert differences(theirs, {**HERE, "space.disable_cuda_graph": "choice(false, true)"}) == []
    assert len(differences(theirs, HERE)) == 1
    without = {path: value for path, value in HERE.items() if path != "host.gpus"}
    assert differences(without, HERE) == []


def test_only_the_physics_learns_and_never_from_its_own_study() -> None:
    steps = SpaceSpec(parameters=(Parameter(name="mem_fraction_static", domain=Choice(values=(0.8, 0.9))),))
    spec = sweep_spec("sglang", steps, {}, "auto")
    warm = spec.model_copy(update={"study": spec.study.model_copy(update={"warm_start": ("old",)})})
    (mistake,) = sampler_mistakes(warm, ENGINE)
    assert mistake.startswith("study.warm_start: only physics learns from others, and this is tpe (not physics: ")
    own = spec.model_copy(update={"study": spec.study.model_copy(update={"warm_start": ("night",)})})
    assert sampler_mistakes(own, ENGINE) == ["study.warm_start: 'night' is this study itself"]
