"""Mistakes in the user's own YAML files name the file, the line where there is one, and the way out."""

from __future__ import annotations

from pathlib import Path

import pytest

from sweeper.config import load
from sweeper.config.files import trap_mistakes
from sweeper.errors import ConfigError
from tests.config.conftest import WriteFiles, mistakes

pytestmark = pytest.mark.compose

GLOBAL = "# @package _global_\n"

BROKEN_FILES = [
    ("not closed", "budget: [1\nx: 2\n", "preset/mine.yaml:3: not valid YAML: expected ',' or ']'"),
    ("twice", "objective: a\nobjective: b\n", "preset/mine.yaml:3: not valid YAML: found duplicate key objective"),
    ("tab", "budget:\n\ttrials: 3\n", "preset/mine.yaml:3: not valid YAML: found character '\\t'"),
    ("alias", "budget: *nowhere\n", "preset/mine.yaml:2: not valid YAML: found undefined alias 'nowhere'"),
    ("object", "x: !!python/object:os.system {}\n", "preset/mine.yaml:2: not valid YAML: could not determine"),
    (
        "no option",
        "defaults: [override /workload: nope]\n",
        "mine.yaml:2: `defaults` name nope here, but there is no workload/nope.yaml; valid: ",
    ),
    ("no group", "defaults: [override /worklod: chat]\n", "Could not override 'worklod'"),
    ("defaults", "defaults: chat\n", "defaults must be a list"),
    ("itself", "defaults: [mine]\n", "the files cannot be combined"),
    ("interpolation", "objective: ${x\n", "the files cannot be combined"),
    ("list", "- objective\n", "preset/mine.yaml:2: should be a mapping: NAME: VALUE"),
    ("text of a part", "host: {ssh: gpu1}\n", "host.ssh: 'gpu1' should be a mapping with destination"),
    (
        "name in a part",
        "host: {ssh: {destination: h, prot: 1}}\n",
        "host.ssh.prot: unknown name; valid: destination",
    ),
    ("unknown name", "budget: {trails: 3}\n", "budget.trails: unknown name; valid: trials"),
    ("group is a number", "workload: 3\n", "workload: 3 should be a mapping with name, prompts"),
    ("option by number", "limits: {1: 2}\n", "limits.1: unknown name"),
    ("prompts", "workload: {prompts: [hello]}\n", "workload.prompts.0: 'hello' should be a mapping with id, text"),
    ("missing", "defaults: [override /model: gguf]\n", "model.path: is missing; give it"),
    ("to missing", "model: {path: '???'}\nobjective: ${model.path}\n", "model.path: is missing; give it"),
    ("space", "space: 3\n", "space: 3 should be a mapping with"),
    ("empty space", "space: null\n", "space: null should be a mapping"),
    ("sweep", "budget: {trials: 'choice(1,2)'}\n", "budget.trials: 'choice(1,2)' should be a whole number"),
    ("name", 'workload: {name: "a\\ud800"}\n', "workload.name: 'a\\ud800' holds half a character"),
    ("flag", 'engine: {flags: {alias: "\\ud800"}}\n', "engine.flags.alias: '\\ud800' holds half a character"),
    ("in the space", 'space: {spec_type: "\\udfff"}\n', "space.spec_type: '\\udfff' holds half a character"),
    ("condition", "space: {when: {spec_typ: {x: 1}}}\n", "space.when.spec_typ: not a parameter of the space"),
]


def test_a_preset_without_its_first_line_is_told_which(write_files: WriteFiles) -> None:
    folder = write_files({"preset/mine.yaml": "defaults: [override /workload: chat]\n"})
    (line,) = mistakes("preset=mine", config_dir=folder)
    assert line.endswith("; the first line of a preset is: # @package _global_")


def test_defaults_that_name_no_file_say_so(write_files: WriteFiles) -> None:
    folder = write_files({"model/mine.yaml": "defaults: [nothing]\nname: m\n"})
    (line,) = mistakes("model=mine", config_dir=folder)
    assert "In 'model/mine'" in line
    assert line.endswith("; its `defaults` name a file that is not there")


def test_a_folder_named_like_a_file_is_no_file(write_files: WriteFiles, tmp_path: Path) -> None:
    folder = write_files({"model/mine.yaml": "name: m\npath: /m\n", "space/a.yaml/b.yaml": "x: 1\n"})
    (folder / "model" / "mine.yaml").write_bytes(b"\xff\xfe")
    (line,) = mistakes("model=mine", config_dir=folder)
    assert "is not UTF-8" in line


@pytest.mark.parametrize(
    ("text", "says"), [(text, says) for _, text, says in BROKEN_FILES], ids=[i for i, *_ in BROKEN_FILES]
)
def test_a_broken_file_gives_a_line_that_helps(text: str, says: str, write_files: WriteFiles) -> None:
    folder = write_files({"preset/mine.yaml": GLOBAL + text})
    lines = mistakes("preset=mine", config_dir=folder)
    assert any(says in line for line in lines), lines
    assert not any("\n" in line for line in lines)


TRAPS = [
    ("space: {spec_type: off}", "off without quotes is read as false"),
    ("space: {flash_attn: [on, auto]}", "on without quotes is read as true"),
    ("engine: {flags: {grammar: NO}}", "NO without quotes is read as false"),
    ("engine: {flags: {yes: 1}}", "yes without quotes is read as true"),
    ("engine: {flags: {seed: 010}}", "010 without quotes is read as 8"),
    ("engine: {flags: {at: 1:30}}", "1:30 without quotes is read as 90"),
    ("engine: {flags: {at: 1:30.5}}", "1:30.5 without quotes is read as 90.5"),
]


@pytest.mark.parametrize(("text", "says"), TRAPS)
def test_what_yaml_reads_as_something_else_must_be_quoted(text: str, says: str, write_files: WriteFiles) -> None:
    folder = write_files({"preset/mine.yaml": f"{GLOBAL}\n{text}\n"})
    (line,) = mistakes("preset=mine", config_dir=folder)
    assert line.startswith(f"{folder / 'preset' / 'mine.yaml'}:3: {says}")
    assert "in quotes" in line


def test_quoted_words_and_plain_numbers_are_no_trap(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(
        "a: 'off'\nb: \"010\"\nc: true\nd: False\ne: 10\nf: 0\ng: 0.5\nh: null\ni: 1e-3\nj: choice(on, off)\n"
    )
    assert trap_mistakes(path) == []


def test_a_trap_in_a_file_that_takes_no_part_is_left_alone(write_files: WriteFiles) -> None:
    folder = write_files({"preset/other.yaml": "x: off\n", "workload/broken.yaml": "x: [\n"})
    assert load([], folder).groups["preset"] == "llamacpp_ngram"


def test_a_file_that_points_back_at_itself_is_read(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("a: &here\n  b: *here\n  c: off\n")
    assert len(trap_mistakes(path)) == 1


def test_a_file_that_is_not_text_is_refused(write_files: WriteFiles) -> None:
    folder = write_files({"preset/mine.yaml": ""})
    (folder / "preset" / "mine.yaml").write_bytes(b"x: \xff\xfe")
    (line,) = mistakes("preset=mine", config_dir=folder)
    assert "preset/mine.yaml: is not UTF-8" in line
    assert str(folder) in line


def test_a_folder_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    (line,) = mistakes(config_dir=tmp_path / "nowhere")
    assert line.startswith("--config-dir: ")
    assert "is not a directory" in line


def test_a_preset_without_its_first_line_says_which_line_is_missing(write_files: WriteFiles) -> None:
    folder = write_files({"preset/mine.yaml": "budget: {trials: 3}\n"})
    (line,) = mistakes("preset=mine", config_dir=folder)
    assert "# @package _global_" in line


def test_a_root_without_groups_lists_what_is_missing(write_files: WriteFiles) -> None:
    folder = write_files({"config.yaml": "objective: output_throughput\n"})
    (line,) = mistakes(config_dir=folder)
    missing = "engine, host, model, space, workload, study, budget, limits, tracking"
    assert (
        line
        == f"{folder / 'config.yaml'}: takes the place of the packaged one, and lacks {missing}; make it a preset"
    )


@pytest.mark.parametrize(
    ("file", "text", "lacks", "base"),
    [
        ("host/mine", "kind: ssh\nssh: {destination: gpu1}\n", "name, state_dir, port_low, port_high", "ssh"),
        ("host/mine", "ssh: {destination: gpu1}\nport_low: 3\n", "name, state_dir, port_high", "ssh"),
        ("host/mine", "name: box\n", "state_dir, port_low, port_high", "local"),
        ("engine/mine", "name: sglang\n", "command", "sglang"),
        ("study/mine", "name: a\n", "dir, storage, seed, startup_trials", "default"),
        ("tracking/mine", "uri: sqlite:///x.db\n", "artifact_location, sync_s", "mlflow"),
    ],
)  # fmt: skip
def test_a_file_that_leaves_out_what_the_packaged_one_has_is_one_message(
    write_files: WriteFiles, file: str, text: str, lacks: str, base: str
) -> None:
    folder = write_files({f"{file}.yaml": text})
    group, _, option = file.partition("/")
    (line,) = mistakes(f"{group}={option}", config_dir=folder)
    begin = f"let it begin with the line: defaults: [{base}]"
    assert line == f"{folder / file}.yaml: lacks {lacks}; {begin}"
    (folder / f"{file}.yaml").write_text(f"defaults: [{base}]\n{text}", encoding="utf-8")
    told: tuple[str, ...] = ()
    try:
        load((f"{group}={option}",), folder)
    except ConfigError as error:
        told = error.mistakes
    assert [line for line in told if "lacks" in line or "a value must be given" in line] == []


def test_another_mistake_beside_what_a_file_leaves_out_is_told(write_files: WriteFiles) -> None:
    folder = write_files({"host/mine.yaml": "kind: ssh\nprot_low: 3\n"})
    first, *rest = mistakes("host=mine", "budget.trials=many", config_dir=folder)
    assert "defaults: [ssh]" in first
    assert any("host.prot_low: unknown name" in line for line in rest)
    assert any("budget.trials: 'many'" in line for line in rest)


def test_options_of_the_users_own_are_listed_with_the_packaged_ones(write_files: WriteFiles) -> None:
    (line,) = mistakes("workload=mien", config_dir=write_files({"workload/mine.yaml": ""}))
    assert "valid: chat, copy_edit, copy_edit_long, mine, single_stream (did you mean mine?)" in line


def test_a_wrong_file_and_a_wrong_override_are_reported_together(write_files: WriteFiles) -> None:
    folder = write_files({"preset/mine.yaml": GLOBAL + "x: [\n"})
    assert len(mistakes("preset=mine", "--multirun", config_dir=folder)) == 2


def test_a_file_that_is_not_utf8_is_named(write_files: WriteFiles) -> None:
    folder = write_files({"workload/good.yaml": "name: x\n"})
    (folder / "space").mkdir()
    (folder / "space" / "mine.yaml").write_bytes(b"# caf\xe9\nspec_type: choice(a, b)\n")
    (line,) = mistakes("space=mine", config_dir=folder)
    assert line.startswith(f"{folder / 'space' / 'mine.yaml'}: is not UTF-8 (byte 5")
