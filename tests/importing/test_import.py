"""CSV files into studies: what becomes of rows, what is refused, and what an imported study is good for."""

from __future__ import annotations

from pathlib import Path

import pytest

from sweeper.engines.registry import simplicity_of
from sweeper.errors import ConfigError, StudyMismatch
from sweeper.fingerprint import IMPORTED, require_same
from sweeper.importing.importer import Options
from sweeper.importing.launches import IMPORTED_ROW, IMPORTED_SHA256, NOT_TOLD
from sweeper.kept_search import KeptSearch
from sweeper.predicting.what_if import ask
from sweeper.records import Purpose, TrialState
from sweeper.searching.warm_start import differences, earlier_observations
from tests.analysis.studies import markdown
from tests.core.drafting import physics_of
from tests.importing.night import EAGLE3, bring, csv_file, place, stored, trials

pytestmark = pytest.mark.study

HEAD = "num_steps,topk,draft_tokens,accept_length,throughput"
ROWS = ("0,,,,100", "2,1,3,2.0,120", "3,1,4,2.4,130", "3,4,8,2.7,125")


def test_rows_become_trials_and_the_baseline_is_trial_0(tmp_path: Path) -> None:
    bring(tmp_path, csv_file(tmp_path, HEAD, *ROWS[1:], ROWS[0]))
    found = trials(tmp_path)
    assert [t.mean("output_throughput") for t in found] == [100, 120, 130, 125]
    assert found[0].canonical.flags == {}
    assert found[2].canonical.flags == {
        **EAGLE3,
        "speculative_num_steps": 3,
        "speculative_eagle_topk": 1,
        "speculative_num_draft_tokens": 4,
    }
    assert {t.state for t in found} == {TrialState.COMPLETE}
    assert found[2].mean("accept_length") == 2.4


def test_a_record_says_where_it_was_read_and_invents_nothing(tmp_path: Path) -> None:
    bring(tmp_path, csv_file(tmp_path, HEAD, *ROWS))
    launch = trials(tmp_path)[1].launches[0]
    assert launch.provenance[IMPORTED_ROW] == "3"
    assert len(launch.provenance[IMPORTED_SHA256]) == 64
    assert launch.host == NOT_TOLD
    assert launch.metrics == {"output_throughput": 120, "accept_length": 2.0}
    assert not {"engine_version", "gpus", "model"} & launch.provenance.keys()
    assert launch.phases == ()
    assert launch.argv == ()


def test_what_the_engine_rewrites_is_one_configuration(tmp_path: Path) -> None:
    """With one branch SGLang sets the number of draft tokens to steps + 1, whatever was asked for."""
    bring(tmp_path, csv_file(tmp_path, HEAD, ROWS[0], "3,1,4,2.4,130", "3,1,8,2.4,132"))
    assert [len(t.launches) for t in trials(tmp_path)] == [1, 2]


def test_repeats_are_launches_and_the_same_numbers_twice_are_one(tmp_path: Path) -> None:
    outcome = bring(tmp_path, csv_file(tmp_path, HEAD, ROWS[0], ROWS[1], ROWS[1], "2,1,3,2.1,121"))
    assert [len(t.launches) for t in trials(tmp_path)] == [1, 2]
    assert outcome.notes == ("r.csv, line 4: tells the same numbers as line 3; counted once",)
    repeated = csv_file(tmp_path, f"{HEAD},repeat", f"{ROWS[0]},0", f"{ROWS[1]},0", f"{ROWS[1]},1", name="b.csv")
    bring(tmp_path, repeated, name="b")
    assert [len(t.launches) for t in trials(tmp_path, "b")] == [1, 2]


def test_only_when_everything_was_repeated_the_repeats_carry_a_verdict(tmp_path: Path) -> None:
    some = csv_file(tmp_path, "num_steps,throughput", "0,100", "0,101", "2,120", "2,121", "3,90")
    bring(tmp_path, some)
    assert {n.purpose for t in trials(tmp_path) for n in t.launches} == {
        Purpose.BASELINE, Purpose.CONTROL, Purpose.SEARCH, Purpose.RECHECK,
    }  # fmt: skip
    every = csv_file(
        tmp_path, "num_steps,throughput", *(f"{n},{100 + 20 * n + i}" for n in (0, 2) for i in range(3))
    )
    outcome = bring(tmp_path, every, name="all")
    assert outcome.study is not None
    assert str(outcome.study.verdict_text()).startswith("Winner: trial 1")


def test_prompts_of_one_configuration_are_one_launch(tmp_path: Path) -> None:
    bring(
        tmp_path,
        csv_file(
            tmp_path,
            "num_steps,throughput,prompt,prompt_class",
            "0,100,,",
            "2,81.7,,",
            "2,80,a,code",
            "2,90,b,prose",
        ),
    )
    launch = trials(tmp_path)[1].launches[0]
    assert launch.metrics["output_throughput"] == 81.7
    assert launch.metrics["mean_prompt_throughput"] == 85
    assert launch.prompt_throughputs == {"a": 80, "b": 90}
    assert launch.provenance[IMPORTED_ROW] == "3 and 2 more, to 5"


def test_prompts_alone_give_a_throughput_only_from_tokens_and_times(tmp_path: Path) -> None:
    head = "num_steps,prompt,throughput,num_output_tokens,e2e_latency_s"
    bring(
        tmp_path,
        csv_file(
            tmp_path, head, *(f"{n},{p},50,{t},{t / 50}" for n in (0, 2) for p, t in (("a", 100), ("b", 300)))
        ),
    )
    launch = trials(tmp_path)[1].launches[0]
    assert launch.metrics["output_throughput"] == pytest.approx(50)
    without = csv_file(
        tmp_path, "num_steps,prompt,throughput", "0,a,50", "0,b,60", "2,a,70", "2,b,80", name="w.csv"
    )
    outcome = bring(tmp_path, without, name="w")
    assert outcome.study is not None
    assert outcome.study.objective == "mean_prompt_throughput"
    assert "output_throughput" not in trials(tmp_path, "w")[1].launches[0].metrics


def test_importing_the_same_file_again_adds_nothing(tmp_path: Path) -> None:
    path = csv_file(tmp_path, HEAD, *ROWS)
    bring(tmp_path, path)
    identity = stored(tmp_path).fact("identity")
    again = bring(tmp_path, path)
    assert (again.study, again.num_new, again.num_known) == (None, 0, 4)
    assert bring(tmp_path, path.rename(tmp_path / "moved.csv")).num_new == 0
    assert stored(tmp_path).fact("identity") == identity
    assert len(trials(tmp_path)) == 4


def test_a_further_file_adds_to_the_study_and_moves_no_trial(tmp_path: Path) -> None:
    bring(tmp_path, csv_file(tmp_path, HEAD, *ROWS[1:3]))
    before = {t.number: t.key for t in trials(tmp_path)}
    assert list(before) == [1, 2], "the place of the baseline is kept"
    identity = stored(tmp_path).fact("identity")
    bring(tmp_path, csv_file(tmp_path, HEAD, ROWS[3], ROWS[0], "3,1,4,2.41,131", name="more.csv"))
    after = {t.number: t.key for t in trials(tmp_path)}
    assert list(after) == [0, 1, 2, 3]
    assert before.items() <= after.items()
    assert [len(t.launches) for t in trials(tmp_path)] == [1, 1, 2, 1]
    assert stored(tmp_path).fact("identity") == identity


def test_bad_rows_are_told_with_their_lines_and_the_others_kept(tmp_path: Path) -> None:
    rows = (ROWS[0], "2,1,3,2.0,fast", "2,1,3", "2,1,3,0.5,120", "2,1,3,2.0,", "2,1,3,2.0,120")
    outcome = bring(tmp_path, csv_file(tmp_path, HEAD, *rows))
    assert outcome.num_new == 2
    assert [note.partition(": ")[0] for note in outcome.notes] == [f"r.csv, line {n}" for n in (4, 3, 5, 6)]
    assert "'fast' is no number" in outcome.notes[1]
    assert "accept_length is 0.5" in outcome.notes[2]
    assert "has no throughput" in outcome.notes[3]


def test_a_file_without_one_good_row_writes_nothing(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="has no throughput"):
        bring(tmp_path, csv_file(tmp_path, HEAD, "2,1,3,2.0,"))
    with pytest.raises(ConfigError, match=r"does not exist|is not in this storage"):
        stored(tmp_path)


def test_one_mistake_of_many_rows_is_told_once_with_the_first_of_them(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        bring(tmp_path, csv_file(tmp_path, HEAD, *["2,1,3,2.0,"] * 40))
    assert caught.value.mistakes == ("r.csv, lines 2, 3, 4, 5, 6 and 35 more: has no throughput",)


def test_different_mistakes_of_very_many_rows_are_told_in_part(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        bring(tmp_path, csv_file(tmp_path, HEAD, *[f"2,1,3,2.0,fast{n}" for n in range(100)]))
    assert len(caught.value.mistakes) == 21
    assert caught.value.mistakes[-1] == "and 80 more like these"


def test_every_file_that_is_no_table_is_told(tmp_path: Path) -> None:
    paths = [csv_file(tmp_path, "a,b", "1,2", name=name) for name in ("r.csv", "s.csv")]
    with pytest.raises(ConfigError) as caught:
        bring(tmp_path, *paths)
    assert [line.partition(":")[0] for line in caught.value.mistakes] == ["r.csv", "s.csv"]


def test_a_drafting_row_must_say_its_algorithm(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--set speculative_algorithm=NAME"):
        bring(tmp_path, csv_file(tmp_path, HEAD, ROWS[1]), options=Options())


def test_rows_of_several_loads_are_not_mixed(tmp_path: Path) -> None:
    path = csv_file(tmp_path, f"batch_size,{HEAD}", "1,0,,,,100", "8,0,,,,500", "1,2,1,3,2.0,120")
    with pytest.raises(ConfigError, match=r"rows differ in concurrency: '1' \(line 2\), '8' \(line 3\)"):
        bring(tmp_path, path)
    assert bring(tmp_path, path, options=Options(fixed=EAGLE3, where={"batch_size": "1"})).num_new == 2
    with pytest.raises(ConfigError, match="has results of concurrency '1', these are of '8'"):
        bring(tmp_path, path, options=Options(fixed=EAGLE3, where={"batch_size": "8"}))


def test_columns_become_flags_only_when_asked_for(tmp_path: Path) -> None:
    path = csv_file(
        tmp_path, "num_steps,throughput,tp_size,NCCL_PROTO", "0,100,8,LL", "2,120,8,LL", "2,110,8,Simple"
    )
    outcome = bring(tmp_path, path)
    assert any("not read: tp_size, NCCL_PROTO" in note for note in outcome.notes)
    bring(tmp_path, path, options=Options(fixed=EAGLE3, kept=("tp_size", "NCCL_PROTO")), name="kept")
    last = trials(tmp_path, "kept")[2]
    assert last.canonical.flags["tp_size"] == 8
    assert last.canonical.env == {"NCCL_PROTO": "Simple"}


def test_a_marked_row_is_the_baseline(tmp_path: Path) -> None:
    path = csv_file(tmp_path, "draft,num_steps,throughput,accept_length", "w/o,3,100,1.0", "e3,3,120,2.0")
    options = Options(fixed=EAGLE3, baseline=("draft", "w/o"))
    bring(tmp_path, path, options=options)
    assert trials(tmp_path)[0].canonical.flags == {}
    assert "accept_length" not in trials(tmp_path)[0].launches[0].metrics


def test_units_are_converted_by_the_name_of_the_role(tmp_path: Path) -> None:
    path = csv_file(tmp_path, "num_steps,throughput,first,rate", "0,100,0.25,", "2,120,0.3,55")
    options = Options(fixed=EAGLE3, columns={"ttft_s": "first", "accept_rate_pct": "rate"})
    bring(tmp_path, path, options=options)
    metrics = trials(tmp_path)[1].launches[0].metrics
    assert metrics["ttft_ms"] == pytest.approx(300)
    assert metrics["accept_rate"] == pytest.approx(0.55)


def test_a_study_that_a_sweep_measured_is_left_alone(tmp_path: Path) -> None:
    from tests.core.drafting import BUDGET, open_study, run

    study = open_study(tmp_path, name="old")
    run(study, BUDGET.model_copy(update={"trials": 2}))
    with pytest.raises(ConfigError, match="was measured by a sweep"):
        bring(tmp_path, csv_file(tmp_path, HEAD, *ROWS))


def test_no_sweep_goes_on_with_imported_results(tmp_path: Path) -> None:
    bring(tmp_path, csv_file(tmp_path, HEAD, *ROWS))
    facts = stored(tmp_path).fact("fingerprint")
    assert facts[IMPORTED] == "4 launches from r.csv"
    with pytest.raises(StudyMismatch, match=r"was imported .*r\.csv.*\n.*study\.warm_start=\[old\]"):
        require_same("old", facts, {"engine.name": "sglang"})


def test_a_later_sweep_learns_from_imported_results(tmp_path: Path) -> None:
    bring(tmp_path, csv_file(tmp_path, HEAD, *ROWS))
    here = {
        "engine.name": "sglang",
        "engine.version": "0.5.23",
        "host.name": "gpu1",
        "objective": "output_throughput",
    }
    spec = place(tmp_path, "new").model_copy(update={"warm_start": ("old",)})
    told, notes = earlier_observations(spec, physics_of(), here, "output_throughput")
    assert len(told) == 4
    assert {one.throughput for one in told} == {100, 120, 125, 130}
    assert "does not tell engine.version, host.name" in notes[1]
    facts = stored(tmp_path).fact("fingerprint")
    other = differences(facts, {**here, "engine.name": "vllm"})
    assert other == ["engine.name was sglang there and is vllm here"]


def test_an_imported_study_can_be_asked_and_reported(tmp_path: Path) -> None:
    bring(tmp_path, csv_file(tmp_path, HEAD, *ROWS))
    _, answer = ask(stored(tmp_path), {"num_steps": "3", "topk": "4", "draft_tokens": "8"})
    assert answer.measured is not None
    assert answer.measured.number == 3
    report = markdown(stored(tmp_path), simplicity_of("sglang"))
    assert "130.0" in report
    assert "differ in imported" not in report
    assert "**State:** imported" in report
    assert "from first start to last stop" not in report
    assert "no launch showed a reason" not in report
    assert "No gain over the baseline has been shown" in report


def test_a_switch_that_only_some_drafting_rows_have_is_off_in_the_others(tmp_path: Path) -> None:
    head = "algorithm,num_steps,topk,draft_tokens,cuda_graphs,throughput"
    rows = ("none,0,,,yes,90", "EAGLE3,3,4,16,no,53.2", "EAGLE3,3,4,16,yes,74.9", "EAGLE3,3,2,5,yes,92")
    bring(tmp_path, csv_file(tmp_path, head, *rows))
    _, answer = ask(stored(tmp_path), {"num_steps": "3"})
    assert answer.measured is not None, answer.config.flags
    assert answer.measured.number == answer.rest_of.number == 3
    _, without = ask(stored(tmp_path), {"num_steps": "3", "disable_cuda_graph": "true"})
    assert without.measured is None
    slower, faster = without.forecast.throughput, answer.forecast.throughput
    assert slower is not None
    assert faster is not None
    assert slower.mean < 0.9 * faster.mean


def test_the_report_of_imported_results_names_no_files_and_no_noise_that_was_not_seen(tmp_path: Path) -> None:
    bring(tmp_path, csv_file(tmp_path, HEAD, *ROWS))
    report = markdown(stored(tmp_path), simplicity_of("sglang"))
    assert "of their requests and servers' logs nothing is kept here" in report
    assert "Every measured request" not in report
    assert "starts of one configuration differ by 1.5 % is assumed" in report
    assert "Seen from the launches" not in report


def test_nobody_is_told_to_launch_what_was_imported(tmp_path: Path) -> None:
    bring(tmp_path, csv_file(tmp_path, HEAD, *ROWS), name="once")
    once = markdown(stored(tmp_path, "once"), simplicity_of("sglang"))
    assert "import repeats" in once
    assert "study.warm_start naming this study" in once
    head, none, close = "num_steps,topk,draft_tokens,throughput", "0,0,0,{}", "3,1,4,{}"
    lines = [none.format(value) for value in (99, 101.5)] + [close.format(value) for value in (100, 102)]
    bring(tmp_path, csv_file(tmp_path, head, *lines, name="twice.csv"), name="twice")
    twice = markdown(stored(tmp_path, "twice"), simplicity_of("sglang"))
    assert "not significant" in twice
    assert "importing more repeats narrows that down" in twice
    for report in (once, twice):
        assert "confirm_launches" not in report.replace("&#95;", "_")
        assert "same command" not in report


def test_what_cannot_be_foretold_says_why(tmp_path: Path) -> None:
    bring(tmp_path, csv_file(tmp_path, "num_steps,throughput", "0,100", "2,120"))
    assert "not told of every configuration" in KeptSearch.of(stored(tmp_path)).unknown
    with pytest.raises(ConfigError, match="nothing can be foretold"):
        ask(stored(tmp_path), {"num_steps": "2"})


def test_semicolons_and_tabs_separate_fields_too(tmp_path: Path) -> None:
    for name, mark in (("semicolon", ";"), ("tab", "\t")):
        lines = (mark.join(line.split(",")) for line in ("num_steps,throughput", "0,100", "2,120"))
        assert bring(tmp_path, csv_file(tmp_path, *lines, name=f"{name}.csv"), name=name).num_new == 2


def test_hostile_cells_stay_harmless(tmp_path: Path) -> None:
    nasty = "<script>|`x`\x1b[31m"
    path = csv_file(
        tmp_path, "num_steps,throughput,draft,date", "0,100,,0001-01-01", f"2,120,{nasty},never", "3,0,a,"
    )
    outcome = bring(tmp_path, path)
    assert outcome.notes == ("r.csv, line 4: output_throughput is 0: nothing was measured",)
    report = markdown(stored(tmp_path), simplicity_of("sglang"))
    assert "<script>" not in report
    assert "\x1b" not in report
