"""`specsweep.yaml` in the working directory: what holds there unless the command line says otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest

from sweeper.config import load, load_place
from sweeper.config.own_file import OWN_FILE
from tests.config.conftest import WriteFiles, mistakes

pytestmark = pytest.mark.compose


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(text: str) -> None:
    Path(OWN_FILE).write_text(text, encoding="utf-8")


def test_it_sets_groups_and_values_for_every_command() -> None:
    write("preset: llamacpp_chat\nstudy.name: mine\nbudget:\n  trials: 5\nstudy: {seed: 7}\n")
    loaded = load([])
    assert loaded.groups["preset"] == "llamacpp_chat"
    assert (loaded.spec.study.name, loaded.spec.study.seed, loaded.spec.budget.trials) == ("mine", 7, 5)
    assert load_place([]).study.name == "mine"


def test_the_command_line_wins() -> None:
    write("preset: llamacpp_chat\nbudget.trials: 5\nspace.threads: choice(1, 2)\nengine.flags.threads: 1\n")
    loaded = load(["preset=llamacpp_ngram", "budget.trials=6", "~space.threads"])
    assert loaded.groups["preset"] == "llamacpp_ngram"
    assert loaded.spec.budget.trials == 6
    assert "threads" not in {parameter.name for parameter in loaded.spec.space.parameters}


def test_its_folder_is_searched_first_and_gives_way_to_another_one(
    write_files: WriteFiles, tmp_path: Path
) -> None:
    folder = write_files({"preset/mine.yaml": "# @package _global_\nbudget:\n  trials: 3\n"})
    write(f"config_dir: {folder.name}\npreset: mine\n")
    assert load([]).spec.budget.trials == 3
    other = tmp_path / "other" / "preset"
    other.mkdir(parents=True)
    (other / "mine.yaml").write_text("# @package _global_\nbudget:\n  trials: 4\n")
    assert load([], tmp_path / "other").spec.budget.trials == 4


def test_a_folder_above_has_no_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write("budget.trials: 5\n")
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    assert load([]).spec.budget.trials == 12


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("config_dir: nowhere\n", "specsweep.yaml: config_dir: 'nowhere' is not a directory"),
        ("- preset=mine\n", "should be a mapping"),
        ("just words\n", "should be a mapping"),
        ("a: [\n", "specsweep.yaml:2: not valid YAML"),
        ("budget.until: 22:30\n", "without quotes is read as 1350"),
        ("preset: mine\npreset: other\n", "duplicate key"),
        ("1: x\n", "1 is not the name of a setting"),
        ("+space.threads: 1\n", "'+space.threads' is not the name of a setting"),
        ("hydra.run.dir: x\n", "Hydra's own settings"),
        ("space: [a, b]\n", "takes the name of one option"),
        ("preset: nonesuch\n", "preset: 'nonesuch' is no option"),
        ("budget.trails: 5\n", "budget.trails: unknown name"),
        ("budget.trials: many\n", "budget.trials: 'many' should be a whole number"),
        ("budgett.trials: 3\n", "budgett: unknown name"),
        ("budgett: {trials: 3}\n", "budgett: unknown name"),
    ],
)
def test_a_mistake_in_it_is_one_message_that_names_the_file(text: str, told: str) -> None:
    write(text)
    (line,) = mistakes()
    assert told in line
    assert OWN_FILE in line


def test_several_mistakes_in_it_are_told_at_once() -> None:
    write("config_dir: 5\n1: x\n")
    assert len(mistakes()) == 2


def test_a_mistake_that_was_typed_does_not_name_the_file() -> None:
    write("budget.trials: 5\n")
    (line,) = mistakes("budget.finalists=0")
    assert OWN_FILE not in line


def test_what_is_no_text_at_all_is_said() -> None:
    Path(OWN_FILE).write_bytes(b"preset: \xff\xfe\n")
    (line,) = mistakes()
    assert "is not UTF-8" in line
