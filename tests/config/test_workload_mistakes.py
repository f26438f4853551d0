"""What can be wrong with workloads and with the objective over them: one line that helps, for each mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from sweeper.config import load
from tests.config.conftest import WriteFiles, mistakes
from tests.config.test_workloads import jsonl

BUSY = "more_workloads.busy.max_tokens=16"

pytestmark = pytest.mark.compose

RANDOM = Path(__file__).parents[1] / "data" / "texts" / "random_tokens.jsonl"

FILE = "workload.prompts_file"
# (overrides, how the line begins, what it must say)
MISTAKES = [
    # prompts
    ((f"{FILE}=copy_edt",), f"{FILE}: 'copy_edt' is no packaged set", "(did you mean copy_edit?)"),
    ((f"{FILE}=copy_edt",), f"{FILE}: ", "a file of your own is ./copy_edt"),
    ((f"{FILE}=3",), f"{FILE}: 3 ", "the name of a set or the path of a file"),
    ((f"{FILE}=null",), f"{FILE}: names no prompts", "or list them in workload.prompts"),
    ((f"{FILE}={'x' * 300}.jsonl",), f"{FILE}: 'xxx", "cannot be looked for"),
    ((f'{FILE}="~nobody-of-this-name/x.jsonl"',), f"{FILE}: '~nobody", "cannot be looked for"),
    ((f"{FILE}=/dev",), f"{FILE}: /dev: is not a file", ""),
    ((f"~{FILE}",), f"{FILE}: names no prompts", ""),
    (("workload.prompts=[{id: a, text: b}]",), f"{FILE}: 'copy_edit' stands beside", f"{FILE}=null"),
    (("workload.prompts.0.text=b",), f"{FILE}: 'copy_edit' stands beside", "~workload.prompts"),
    (("workload.num_prompts=5",), "workload.num_prompts: 5 of 4 prompts cannot be taken", "0 takes all"),
    (("workload.num_prompts=-1",), "workload.num_prompts: -1", "whole number"),
    (("workload.num_prompts=1.5",), "workload.num_prompts: 1.5", "whole number"),
    (("workload.num_prompts=true",), "workload.num_prompts: true", "whole number"),
    (("workload.prompt_file=chat",), "workload.prompt_file: unknown name", "did you mean prompts_file?"),
    (("workload.prompts=a,b",), "workload.prompts=a,b: a list", "'workload.prompts=[a,b]'"),
    # listed prompts are checked like those of a file
    (
        ("~workload.prompts_file", "workload.prompts=[{id: a, text: '  '}]"),
        "workload.prompts.0.text: '  ' is",
        "empty",
    ),
    (
        ("~workload.prompts_file", "workload.prompts=[{id: '', text: b}]"),
        "workload.prompts.0.id: '' ",
        "not be empty",
    ),
    (
        ("~workload.prompts_file", "workload.prompts=[{id: a, text: b}, {id: b, text: c, token_ids: [1, 2]}]"),
        "workload.prompts.1.token_ids: ",
        "given as text",
    ),
    # random tokens
    ((f"{FILE}=random",), f"{FILE}: 'random': random tokens tell nothing", "12 % of the drafts"),
    ((f"{FILE}=random-ids",), f"{FILE}: 'random-ids': random tokens", ""),
    ((f"{FILE}=generated-shared-prefix",), f"{FILE}: 'generated-shared-prefix': random tokens", ""),
    ((f"{FILE}=Synthetic",), f"{FILE}: 'Synthetic': random tokens", ""),
    ((f"{FILE}={RANDOM}",), f"{FILE}: 'smol-0' and ", "look like random tokens"),
    # settings
    (("workload.request_rate=2",), "workload.request_rate: 2 is wrong", "concurrency above 1"),
    (
        ("workload.request_rate=1e-9", "workload.concurrency=8"),
        "workload.request_rate: 1e-09 is wrong: 4 prompts arrive in",
        "more than max_measure_s (3600)",
    ),
    (("workload.concurrency=0",), "workload.concurrency: 0", "1 or greater"),
    # further workloads
    (
        ("more_workloads.busy.concurency=1",),
        "more_workloads.busy.concurency: unknown name",
        "did you mean concurrency?",
    ),
    (("more_workloads.busy.concurrency=no",), "more_workloads.busy.concurrency: 'no'", "whole number"),
    (("more_workloads.busy=3",), "more_workloads.busy: 3", "should be a mapping"),
    (("more_workloads=3",), "more_workloads: 3", "should be a mapping: NAME"),
    (("more_workloads.copy_edit.seed=1",), "more_workloads.copy_edit: the first workload", "choose another"),
    (("more_workloads.busy.name=x",), "more_workloads.busy.name: ", "rename the entry"),
    (("more_workloads.busy.prompts_file=nope",), "more_workloads.busy.prompts_file: 'nope'", "valid: chat"),
    (("more_workloads.busy.prompts=[{id: a}]",), "more_workloads.busy.prompts.0.text: is missing", ""),
    (
        ("more_workloads.busy.prompts=[{id: a, txt: b, text: c}]",),
        "more_workloads.busy.prompts.0.txt: ",
        "valid: id",
    ),
    (("more_workloads={a/b: {seed: 1}}",), "more_workloads.a/b.name: 'a/b' should match", ""),
    (("more_workloads.busy.seed=1,2",), "more_workloads.busy.seed=1,2", "one value"),
    # the objective
    (
        ("objective=bsy.output_throughput", BUSY),
        "objective: 'bsy.output_throughput': there is no",
        "did you mean busy?",
    ),
    (
        ("objective=busy.output_througput", BUSY),
        "objective: 'busy.output_througput' is not a metric",
        "did you mean",
    ),
    (("objective={ttft_ms: 1}",), "objective: 'ttft_ms' is recorded but cannot be ranked by", ""),
    (("objective=score",), "objective: 'score' is recorded but cannot", ""),
    (("objective={output_throughput: 0}",), "objective.output_throughput: 0", "greater than 0"),
    (("objective={output_throughput: -1.5}",), "objective.output_throughput: -1.5", "greater than 0"),
    (("objective={output_throughput: inf}",), "objective.output_throughput: inf", "greater than 0"),
    (("objective={output_throughput: 2000}",), "objective.output_throughput: 2000", "1000 or less"),
    (("objective={output_throughput: 1e-322}",), "objective.output_throughput: 1e-322", "1e-06 or greater"),
    (("objective={output_throughput: much}",), "objective.output_throughput: 'much'", "should be a number"),
    (("objective={output_throughput: true}",), "objective.output_throughput: true", "should be a number"),
    (("objective=3",), "objective: 3 should be a metric, WORKLOAD.METRIC", "mapping"),
    (("objective=null",), "objective: null should be a metric", ""),
    (("objective=[output_throughput]",), "objective: ['output_throughput'] should be a metric", ""),
    (("objective={}",), "objective: is empty", "valid: output_throughput"),
    (
        ("objective={output_throughput: 1, copy_edit.output_throughput: 1}",),
        "objective: 'copy_edit.output_throughput' is named twice",
        "",
    ),
]


@pytest.mark.parametrize(("overrides", "begins", "says"), MISTAKES, ids=[" ".join(o) for o, _, _ in MISTAKES])
def test_a_mistake_gives_one_helpful_line(overrides: tuple[str, ...], begins: str, says: str) -> None:
    (line,) = mistakes(*overrides)
    assert line.startswith(begins)
    assert says in line
    assert "\n" not in line
    assert len(line) < 400


def test_a_mistake_in_a_file_is_told_with_its_line_once_for_all_workloads(tmp_path: Path) -> None:
    path = tmp_path / "q.jsonl"
    path.write_text(jsonl("a", "b") + "{}\n", encoding="utf-8")
    (line,) = mistakes(f"workload.prompts_file={path}", BUSY)
    assert line.startswith(f"workload.prompts_file: {path}: line 3: has no text")


def test_half_a_character_in_a_listed_prompt_is_told_at_its_place(write_files: WriteFiles) -> None:
    listed = 'prompts:\n- {id: "a", text: "fine"}\n- {id: "b", text: "x\\ud800"}\n'
    folder = write_files({"workload/mine.yaml": f"prompts_file: null\nmax_tokens: 0\n{listed}"})
    first, second = sorted(mistakes("workload=mine", config_dir=folder))
    assert first.startswith("workload.max_tokens: 0 ")
    assert second == "workload.prompts.1.text: 'x\\ud800' holds half a character (a lone surrogate)"


def test_a_wrong_listed_prompt_is_not_told_again_for_the_other_workloads() -> None:
    (line,) = mistakes("~workload.prompts_file", "workload.prompts=[{id: a, text: ' '}]", BUSY)
    assert line.startswith("workload.prompts.0.text: ")


def test_requests_that_fill_the_places_are_counted_before_a_server_is_started() -> None:
    places = ("workload.concurrency=4096", "engine.flags.parallel=4096")
    for setting in ("repeats", "max_repeats"):
        (line,) = mistakes(*places, f"workload.{setting}=100")
        assert line.startswith(f"workload.{setting}: 100 is wrong: 4 prompts x 2,048")
        assert "819,200 requests in each launch" in line


def test_too_many_prompts_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "q.jsonl"
    path.write_text(jsonl(*(f"question {n}" for n in range(5001))), encoding="utf-8")
    (line,) = mistakes(f"workload.prompts_file={path}")
    assert "more than 5,000" in line
    assert "workload.num_prompts" in line
    assert len(load([f"workload.prompts_file={path}", "workload.num_prompts=5"]).spec.workload.prompts) == 5


def test_what_is_wrong_with_the_first_workload_is_not_told_again_for_the_others() -> None:
    lines = mistakes("workload.max_tokens=0", "workload.seed=x", BUSY, "more_workloads.edit.max_tokens=-1")
    assert [line.partition(":")[0] for line in lines] == [
        "more_workloads.edit.max_tokens",
        "workload.max_tokens",
        "workload.seed",
    ]


def test_mistakes_that_depend_on_other_settings_are_told_together_with_all_others() -> None:
    lines = mistakes(
        "workload.max_repeats=9999",
        "workload.request_rate=2",
        "workload.num_prompts=9",
        "more_workloads.busy.precision_pct=0",
        "objective=busy.speed",
        "budget.trials=0",
    )
    assert sorted(line.partition(":")[0] for line in lines) == [
        "budget.trials",
        "more_workloads.busy.precision_pct",
        "objective",
        "workload.max_repeats",
        "workload.num_prompts",
        "workload.request_rate",
    ]


def test_an_unknown_workload_hides_what_only_follows_from_it() -> None:
    lines = mistakes("workload=chatt", BUSY)
    assert [line.partition(":")[0] for line in lines] == ["workload"]


def test_more_requests_at_once_than_the_server_works_on_are_refused_with_the_flag_that_gives_it_more() -> None:
    (line,) = mistakes("more_workloads.busy.concurrency=16")
    assert line.startswith("more_workloads.busy.concurrency: 16, but the server works on 1 at once")
    assert "engine.flags.parallel=16" in line
    assert load(["more_workloads.busy.concurrency=16", "space.parallel=choice(16,32)"]).spec.more_workloads


def test_one_confirming_launch_tells_nothing_and_is_refused() -> None:
    (line,) = mistakes("budget.confirm_launches=1")
    assert line.startswith("budget.confirm_launches: 1")
    assert load(["budget.confirm_launches=0"]).spec.budget.confirm_launches == 0
