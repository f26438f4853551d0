from __future__ import annotations

import dataclasses
import json
import os
import sys
from pathlib import Path

import pytest

from sweeper.config import load, load_place
from sweeper.config.files import trap_mistakes
from sweeper.errors import ConfigError
from sweeper.space import contains, num_combinations
from sweeper.spec import Choice, IntRange, Parameter
from tests.config.conftest import WriteFiles

pytestmark = pytest.mark.compose

CONF = Path(__file__).parents[2] / "conf"
SNAPSHOTS = Path(__file__).parent / "snapshots"
GIVEN = {
    "kimi_k25_eagle3_8gpu": ("host.ssh.destination=gpu1",),
    "sglang_any": (
        "host.ssh.destination=gpu1",
        "model.path=/models/m",
        "space.speculative_draft_model_path=/models/d",
    ),
    "vllm_any": ("host.ssh.destination=gpu1", "model.path=/models/m", "space.spec_model=/models/d"),
}
"""What a preset leaves to its user."""
ENGINES = {"vllm_any": "vllm"}
PRESETS = sorted(path.stem for path in (CONF / "preset").glob("*.yaml"))


def parameters(*overrides: str) -> dict[str, Parameter]:
    return {parameter.name: parameter for parameter in load(overrides).spec.space.parameters}


@pytest.mark.parametrize("preset", PRESETS)
def test_each_preset_resolves_to_its_snapshot(preset: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/state")
    spec = load([f"preset={preset}", *GIVEN.get(preset, ())]).spec
    text = (
        json.dumps(spec.model_dump(mode="json"), indent=2).replace(json.dumps(sys.executable), '"PYTHON"') + "\n"
    )
    snapshot = SNAPSHOTS / f"{preset}.json"
    if os.environ.get("SPECSWEEP_SNAPSHOTS") == "write":
        snapshot.write_text(text, encoding="utf-8")
    assert text == snapshot.read_text(encoding="utf-8")


@pytest.mark.parametrize("preset", GIVEN)
def test_what_a_preset_leaves_to_its_user_is_asked_for_and_nothing_else_is_wrong(preset: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load([f"preset={preset}"])
    asked = [f"{given.partition('=')[0]}: is missing; give it:" for given in GIVEN[preset]]
    assert len(caught.value.mistakes) == len(asked)
    assert all(any(line.startswith(start) for start in asked) for line in caught.value.mistakes)


def test_the_kimi_night_can_be_searched_as_it_was_published() -> None:
    searched = parameters("preset=kimi_k25_eagle3_8gpu", *GIVEN["kimi_k25_eagle3_8gpu"])
    published = {
        "speculative_num_steps": (2, 3, 8),
        "speculative_num_draft_tokens": (5, 16, 32),
        "speculative_eagle_topk": (1, 2, 4),
        "disable_cuda_graph": (False, True),
        "speculative_algorithm": ("none", "EAGLE3"),
    }
    for name, values in published.items():
        assert all(contains(searched[name].domain, value) for value in values), name
    workload = load(["preset=kimi_k25_eagle3_8gpu", *GIVEN["kimi_k25_eagle3_8gpu"]]).spec.workload
    assert (len(workload.prompts), workload.max_tokens) == (5, 1024)
    assert all(12 <= len(prompt.text.split()) <= 24 for prompt in workload.prompts)


def test_without_arguments_the_embedded_sweep_is_loaded() -> None:
    loaded = load([])
    assert loaded.groups == {
        "engine": "llamacpp",
        "host": "local",
        "model": "smollm2_f16",
        "space": "llamacpp_ngram",
        "workload": "copy_edit",
        "study": "default",
        "study/sampler": "auto",
        "tracking": "mlflow",
        "preset": "llamacpp_ngram",
    }
    assert loaded == load(["preset=llamacpp_ngram"])


def test_what_is_loaded_is_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        load([]).spec = load([]).spec  # type: ignore[misc]


def test_the_packaged_files_hold_no_trap() -> None:
    assert [line for path in CONF.rglob("*.yaml") for line in trap_mistakes(path)] == []


def test_prompts_to_copy_have_a_sensible_length_and_chat_prompts_are_short() -> None:
    copied = [len(prompt.text.split()) for prompt in load([]).spec.workload.prompts]
    asked = [len(prompt.text.split()) for prompt in load(["workload=chat"]).spec.workload.prompts]
    assert min(copied) >= 20
    assert max(copied) <= 80
    assert max(asked) <= 20


def test_values_are_overridden() -> None:
    spec = load(["budget.trials=20", "engine.flags.ctx_size=4096", "engine.env.OMP_NUM_THREADS=1"]).spec
    assert spec.budget.trials == 20
    assert spec.engine.flags["ctx_size"] == 4096
    assert spec.engine.env == {"OMP_NUM_THREADS": "1"}


@pytest.mark.parametrize("plus", ["", "+", "++"])
def test_a_parameter_is_added_with_or_without_plus(plus: str) -> None:
    assert parameters(f"{plus}space.threads=range(1,3)")["threads"].domain == IntRange(low=1, high=2)


def test_overriding_values_keeps_the_condition() -> None:
    changed = parameters("space.spec_ngram_simple_size_m=choice(3,4,6)")["spec_ngram_simple_size_m"]
    assert changed.domain == Choice(values=(3, 4, 6))
    assert changed.when == {"spec_type": ("ngram-simple",)}


def test_fixing_a_conditional_parameter_keeps_its_condition() -> None:
    fixed = parameters("space.spec_ngram_simple_size_n=3")["spec_ngram_simple_size_n"]
    assert fixed.domain == Choice(values=(3,))
    assert fixed.when == {"spec_type": ("ngram-simple",)}


def test_a_condition_is_overridden() -> None:
    changed = parameters("space.when.spec_ngram_simple_size_n.spec_type=[ngram-simple,ngram-map-k]")
    assert changed["spec_ngram_simple_size_n"].when == {"spec_type": ("ngram-simple", "ngram-map-k")}


def test_fixing_what_conditions_ask_for_leaves_the_others_away() -> None:
    spec = load(["space.spec_type=ngram-simple"]).spec
    assert [parameter.name for parameter in spec.space.parameters] == [
        "spec_ngram_simple_size_n",
        "spec_ngram_simple_size_m",
    ]
    assert not any(parameter.when for parameter in spec.space.parameters)
    assert spec.engine.flags["spec_type"] == "ngram-simple"


def test_narrowing_a_choice_leaves_away_what_depended_on_the_rest() -> None:
    found = parameters("space.spec_type=choice(ngram-map-k,ngram-map-k4v)")
    assert "spec_ngram_simple_size_n" not in found
    assert "spec_ngram_map_k_size_n" in found


def test_a_parameter_is_removed_with_its_condition() -> None:
    assert "spec_ngram_map_k_size_m" not in parameters("~space.spec_ngram_map_k_size_m")


def test_a_plain_value_in_the_space_becomes_a_flag() -> None:
    spec = load(["space.threads=2", "space.env.MODE='fast'", "+space.mlock=true"]).spec
    assert spec.engine.flags["threads"] == 2
    assert spec.engine.flags["mlock"] is True
    assert spec.engine.env["MODE"] == "fast"


def test_environment_variables_are_searched() -> None:
    found = parameters("space.env.OMP_WAIT_POLICY=choice(active,passive)")["OMP_WAIT_POLICY"]
    assert found.is_env
    assert found.domain == Choice(values=("active", "passive"))


@pytest.mark.parametrize("text", ["choice(2,4)", "2,4", "[2,4]", "'choice(2, 4)'"])
def test_a_choice_is_written_in_four_ways(text: str) -> None:
    assert parameters(f"space.threads={text}")["threads"].domain == Choice(values=(2, 4))


def test_the_end_of_a_range_is_not_included() -> None:
    assert parameters("space.threads=range(1,8)")["threads"].domain == IntRange(low=1, high=7)


@pytest.mark.parametrize(
    ("folder", "storage"),
    [
        ("sweeps", "sqlite:///sweeps/optuna.db"),
        ("/data/s", "sqlite:////data/s/optuna.db"),
        ("'/my data'", "sqlite:////my data/optuna.db"),
    ],
)
def test_the_databases_follow_the_folder(folder: str, storage: str) -> None:
    spec = load([f"study.dir={folder}"]).spec
    assert spec.study.storage == storage
    assert spec.tracking.uri == storage.replace("optuna", "mlflow")
    assert spec.tracking.artifact_location == f"{spec.study.dir}/mlflow-artifacts"


def test_a_tilde_means_home_where_no_shell_expands_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    spec = load(['study.dir="~/s"', "model=gguf", 'model.path="~/m.gguf"']).spec
    assert spec.study.storage == "sqlite:////home/me/s/optuna.db"
    assert spec.model.path == "/home/me/m.gguf"


@pytest.mark.parametrize(("state_home", "state_dir"), [("/x", "/x"), ("", "/home/me/.local/state"), ("rel", None)])
def test_state_lives_where_xdg_says(
    state_home: str, state_dir: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", state_home)
    monkeypatch.setenv("HOME", "/home/me")
    assert load([]).spec.host.state_dir == f"{state_dir or '/home/me/.local/state'}/specsweep"


def test_tracking_can_be_turned_off() -> None:
    assert load(["tracking=none"]).spec.tracking.uri == ""


def test_the_study_is_called_like_the_preset_unless_it_is_named() -> None:
    assert load(["preset=llamacpp_chat"]).spec.study.name == "llamacpp_chat"
    assert load(["preset=llamacpp_chat", "study.name=mine"]).spec.study.name == "mine"


def test_a_folder_of_the_users_own_goes_before_the_packaged_one(write_files: WriteFiles) -> None:
    folder = write_files(
        {
            "workload/chat.yaml": "defaults: [copy_edit]\nname: my chat\nrepeats: 3\n",
            "preset/mine.yaml": (
                "# @package _global_\ndefaults:\n  - override /workload: chat\nbudget: {trials: 5}\n"
                "space: {spec_ngram_simple_size_n: [2, 3]}\n"
            ),
        }
    )
    loaded = load(["preset=mine", "budget.finalists=1"], folder)
    assert loaded.groups["preset"] == loaded.spec.study.name == "mine"
    assert loaded.spec.workload.name == "my chat"
    assert loaded.spec.workload.repeats == 3
    assert len(loaded.spec.workload.prompts) == 4
    assert (loaded.spec.budget.trials, loaded.spec.budget.finalists) == (5, 1)
    assert num_combinations(loaded.spec.space) == 2 * 7 + 42 + 21
    assert load([]).spec.workload.repeats == 2


def test_a_config_of_the_users_own_replaces_the_packaged_root(write_files: WriteFiles) -> None:
    root = (CONF / "config.yaml").read_text(encoding="utf-8").replace("trials: 12", "trials: 4")
    assert load([], write_files({"config.yaml": root})).spec.budget.trials == 4


def test_loading_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    load(["preset=llamacpp_smoke"])
    assert list(tmp_path.iterdir()) == []


def test_loading_again_gives_the_same() -> None:
    assert load(["space.threads=2"]) == load(["space.threads=2"])


@pytest.mark.parametrize("preset", GIVEN)
def test_looking_at_a_sweep_needs_nothing_that_launching_does(preset: str) -> None:
    place = load_place([f"preset={preset}", "study.dir=elsewhere"])
    assert (place.study.name, place.study.dir, place.engine_name) == (
        preset,
        "elsewhere",
        ENGINES.get(preset, "sglang"),
    )
    assert place.tracking.uri.startswith("sqlite:///elsewhere/")


def test_what_is_wrong_with_the_place_itself_is_told() -> None:
    with pytest.raises(ConfigError, match=r"study\.sampler.*should be"):
        load_place(["preset=sglang_any", "study.sampler=magic"])
    with pytest.raises(ConfigError, match="unknown name"):
        load_place(["study.naem=x"])


@pytest.mark.parametrize("name", ["auto", "tpe", "random", "grid", "brute_force"])
def test_a_sampler_is_chosen_as_an_option_or_as_a_value(name: str) -> None:
    assert load([f"study/sampler={name}"]).spec == load([f"study.sampler={name}"]).spec
    assert load([f"study/sampler={name}"]).spec.study.sampler == name


def test_a_study_of_the_users_own_may_name_the_sampler_itself(write_files: WriteFiles) -> None:
    text = (CONF / "study" / "default.yaml").read_text(encoding="utf-8")
    own = text.replace("defaults:", "# defaults:").replace("  - ", "#  - ") + "sampler: random\n"
    assert load(["study=mine"], write_files({"study/mine.yaml": own})).spec.study.sampler == "random"
