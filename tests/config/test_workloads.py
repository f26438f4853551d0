"""Workloads in the configuration: prompts from files, further workloads, the objective over them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from sweeper.config import load
from sweeper.objective import Term
from sweeper.spec import SweepSpec
from sweeper.workload_spec import WorkloadSpec
from tests.config.conftest import WriteFiles, mistakes

pytestmark = pytest.mark.compose

CONF = Path(__file__).parents[2] / "conf"
GLOBAL = "# @package _global_\n"


def spec(*overrides: str, config_dir: Path | None = None) -> SweepSpec:
    places = "engine.flags.parallel=16"  # for as many requests at once as any of these tests asks for
    return load((places, *overrides), config_dir).spec


def jsonl(*texts: str) -> str:
    return "".join(json.dumps({"id": f"q{n}", "text": text}) + "\n" for n, text in enumerate(texts))


def names(workload: WorkloadSpec) -> list[str]:
    return [prompt.id for prompt in workload.prompts]


def test_what_the_root_shows_is_what_the_schema_does_without_it() -> None:
    packaged = spec().workload
    fields = WorkloadSpec.model_fields
    shown = {name for name, field in fields.items() if not field.is_required()}
    assert {n for n in shown if getattr(packaged, n) != fields[n].default} == {"max_repeats"}
    assert packaged.max_repeats == 2  # the embedded sweep is done in minutes


@pytest.mark.parametrize("option", sorted(path.stem for path in (CONF / "workload").glob("*.yaml")))
def test_a_packaged_workload_is_called_like_its_file_and_has_the_set_of_that_name(option: str) -> None:
    workload = spec(f"workload={option}").workload
    rows = [json.loads(line) for line in (CONF / "prompts" / f"{option}.jsonl").read_text("utf-8").splitlines()]
    assert workload.name == option
    assert [(p.id, p.text, p.prompt_class) for p in workload.prompts] == [
        (row["id"], row["text"], row["prompt_class"]) for row in rows
    ]


def test_long_edits_have_room_for_their_answers() -> None:
    workload = spec("workload=copy_edit_long").workload
    words = [len(re.findall(r"\w+|[^\w\s]", prompt.text)) for prompt in workload.prompts]
    assert min(words) >= 200
    assert max(words) <= 600
    assert workload.max_tokens == 1024
    assert {prompt.prompt_class for prompt in workload.prompts} == {"edit_code", "edit_data", "edit_text"}


def test_a_workload_of_the_users_own_is_two_lines(write_files: WriteFiles) -> None:
    folder = write_files({"workload/mine.yaml": "prompts_file: mine.jsonl\n", "mine.jsonl": jsonl("a", "b")})
    workload = spec("workload=mine", config_dir=folder).workload
    assert (workload.name, names(workload), workload.max_tokens) == ("mine", ["q0", "q1"], 256)


def test_prompts_are_looked_for_beside_the_configuration_and_then_here(
    write_files: WriteFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_files({"both.jsonl": jsonl("beside"), "prompts/chat.jsonl": jsonl("mine")})
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    for name in ("both", "only"):
        (here / f"{name}.jsonl").write_text(jsonl("here"), encoding="utf-8")

    def first(name: str, config_dir: Path | None = folder) -> str:
        return spec(f"workload.prompts_file={name}", config_dir=config_dir).workload.prompts[0].text

    assert first("both.jsonl") == "beside"
    assert first("both.jsonl", None) == "here"
    assert first("only.jsonl") == "here"
    assert first("./only.jsonl", None) == "here"
    assert first(str(here / "only.jsonl")) == "here"
    assert first("chat") == "mine"
    (line,) = mistakes("workload.prompts_file=sub/none.jsonl", config_dir=folder)
    wanted = f"looked for {folder / 'sub/none.jsonl'} and {here / 'sub/none.jsonl'}"
    assert line == f"workload.prompts_file: 'sub/none.jsonl': there is no such file; {wanted}"


def test_so_many_prompts_are_taken_by_seed() -> None:
    fewer = spec("workload=copy_edit_long", "workload.num_prompts=3").workload
    other = spec("workload=copy_edit_long", "workload.num_prompts=3", "workload.seed=5").workload
    assert {prompt.prompt_class for prompt in fewer.prompts} == {"edit_code", "edit_data", "edit_text"}
    assert names(fewer) == names(spec("workload=copy_edit_long", "workload.num_prompts=3").workload)
    assert names(fewer) != names(other)


def test_of_listed_prompts_some_are_taken_too() -> None:
    assert len(spec("preset=llamacpp_smoke", "workload.num_prompts=1").workload.prompts) == 1


def test_the_study_knows_the_prompts_and_not_their_file(tmp_path: Path) -> None:
    one, other = tmp_path / "one.jsonl", tmp_path / "other.json"
    one.write_text(jsonl("a", "b"), encoding="utf-8")
    other.write_text(json.dumps([{"id": "q0", "text": "a"}, {"id": "q1", "prompt": "b"}]), encoding="utf-8")
    assert spec(f"workload.prompts_file={one}") == spec(f"workload.prompts_file={other}")


@pytest.mark.parametrize("plus", ["", "+", "++"])
def test_a_further_workload_is_the_first_with_some_settings_changed(plus: str) -> None:
    found = spec(f"{plus}more_workloads.busy.concurrency=16")
    (busy,) = found.more_workloads
    assert busy == found.workload.model_copy(update={"name": "busy", "concurrency": 16})
    assert [workload.name for workload in found.workloads] == ["copy_edit", "busy"]


def test_what_the_first_workload_is_told_on_the_command_line_the_others_inherit() -> None:
    found = spec("more_workloads.busy={concurrency: 8, request_rate: 2.5}", "workload.max_tokens=7")
    assert (found.more_workloads[0].max_tokens, found.more_workloads[0].request_rate) == (7, 2.5)


def test_prompts_of_the_first_give_way_to_a_file_and_the_other_way_round() -> None:
    listed = spec("preset=llamacpp_smoke", "more_workloads.edit.prompts_file=copy_edit")
    assert names(listed.more_workloads[0]) == names(spec().workload)
    filed = spec("workload.num_prompts=3", "more_workloads.own.prompts=[{id: a, text: hello}]")
    assert (len(filed.workload.prompts), names(filed.more_workloads[0])) == (3, ["a"])


def test_further_workloads_of_a_preset_are_kept_changed_and_removed(write_files: WriteFiles) -> None:
    entries = "more_workloads:\n  busy: {concurrency: 16}\n  edit: {prompts_file: copy_edit_long}\n"
    folder = write_files({"preset/mine.yaml": GLOBAL + entries})
    found = spec("preset=mine", "more_workloads.busy.concurrency=4", config_dir=folder)
    assert [(w.name, w.concurrency) for w in found.more_workloads] == [("busy", 4), ("edit", 1)]
    left = spec("preset=mine", "~more_workloads.busy", config_dir=folder)
    assert [w.name for w in left.more_workloads] == ["edit"]
    assert spec("preset=mine", "~more_workloads", config_dir=folder).more_workloads == ()


BUSY = "more_workloads.busy.concurrency=16"


def test_the_objective_may_be_another_workloads() -> None:
    found = spec(BUSY, "objective=busy.decode_throughput")
    assert found.objective.terms == (Term(workload="busy", metric="decode_throughput"),)
    assert found.objective_metric == "score"


@pytest.mark.parametrize(
    "overrides",
    [
        ("objective={output_throughput: 2, busy.output_throughput: 1}",),
        ("objective={copy_edit.output_throughput: 2, busy: {output_throughput: 1}}",),
        ("objective.output_throughput=2", "objective.busy.output_throughput=1"),
    ],
)
def test_the_objective_may_be_weighted(overrides: tuple[str, ...]) -> None:
    assert spec(BUSY, *overrides).objective.terms == (
        Term(workload="copy_edit", metric="output_throughput", weight=2),
        Term(workload="busy", metric="output_throughput", weight=1),
    )


def test_an_objective_on_the_command_line_replaces_that_of_a_file(write_files: WriteFiles) -> None:
    entries = "more_workloads: {busy: {concurrency: 16}}\n"
    weighted = "objective:\n  output_throughput: 2\n  busy.output_throughput: 1\n"
    folder = write_files({"preset/mine.yaml": GLOBAL + entries + weighted})
    assert len(spec("preset=mine", config_dir=folder).objective.terms) == 2
    assert spec("preset=mine", "objective={decode_throughput: 1}", config_dir=folder).objective.terms == (
        Term(workload="copy_edit", metric="decode_throughput"),
    )
