"""The report of a night in which a lot happened: estimates, several workloads, GPUs, why launches were made."""

from __future__ import annotations

import re

import pytest

from sweeper.measuring.doubts import SERVER_GAP_MS, SERVER_GAP_PCT
from sweeper.records import GpuWindow, WorkloadResult
from sweeper.storing.storage import StudyStore
from tests.analysis.builders import (
    FINGERPRINT,
    OBJECTIVE,
    fill,
    in_memory,
    new_night,
    ngram,
    plain_config,
    simplicity,
    trial,
)
from tests.analysis.eventful import WINDOW, eventful_night, rich
from tests.analysis.studies import changed, finish, markdown, report_of, section

pytestmark = pytest.mark.study


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    return report_of(in_memory(tmp_path_factory.mktemp("night")), eventful_night())


def test_an_estimate_is_marked_everywhere_explained_once_a_table_and_never_bold(report: str) -> None:
    ranking = section(report, "Ranking")
    assert "| ngram-simple n3 m7 | ≈ 31.9 | ≈ 0.764 |" in ranking
    assert ranking.count("≈ marks an estimate") == 1
    assert "**≈" not in report
    assert not re.search(r"(?<!≈ )31\.9", report)


def test_a_lossy_configuration_is_marked_in_the_ranking(report: str) -> None:
    assert "| ngram-simple q4_0 n3 m5 &#91;lossy&#93; |" in section(report, "Ranking")
    assert "first workload" not in section(report, "Ranking")


def test_an_accept_length_from_few_steps_says_so(store: StudyStore) -> None:
    night = new_night()
    base, few, many = (rich(night, value) for value in (41.8, 50.0, 51.0))
    few = changed(few, metrics={**few.metrics, "accept_length": 9.67, "num_verify_steps": 3.0})
    many = changed(many, metrics={**many.metrics, "accept_length": 2.5, "num_verify_steps": 20.0})
    trials = [trial(n, c, [one]) for n, c, one in ((0, plain_config(), base), (1, ngram(3, 4), few))]
    text = section(report_of(store, [*trials, trial(2, ngram(3, 5), [many])]), "Ranking")
    assert "| 9.67 (3 steps) |" in text
    assert "| 2.50 |" in text
    assert text.count("drawn from so few verify steps") == 1


def test_the_files_of_further_workloads_are_listed_where_they_are(store: StudyStore) -> None:
    trials = [trial(0, plain_config(), [rich(new_night(), 41.8)])]
    fill(store, trials)
    assert "| trial-0-launch-0-requests.jsonl |" in section(markdown(store, simplicity), "Raw data")
    again = changed(trials[0].launches[0], launch_number=1)
    store.save_launch(again, {"requests.jsonl": b"{}\n", "requests-busy.jsonl": b"{}\n"})
    raw = section(markdown(store, simplicity), "Raw data")
    assert "| trial-0-launch-1-requests.jsonl, trial-0-launch-1-requests-busy.jsonl |" in raw


def test_each_workload_has_a_table_with_the_columns_it_has_numbers_for(report: str) -> None:
    text = section(report, "Workload by workload")
    first, busy = text.split("### busy")
    assert "### chat" in first
    assert "requests/s" not in first
    assert (
        "| trial | configuration | throughput (tok/s) | vs baseline (x) | requests/s (1/s) | TTFT p99 (ms) |"
        in busy
    )
    assert "| **0** | **baseline** | **270.6** | **1.000** | **4.18** | **910.0** |" in busy
    assert "| 328.4 | 1.213 |" in busy


def test_one_workload_needs_no_such_part(store: StudyStore) -> None:
    night = new_night()
    assert "## Workload by workload" not in report_of(
        store, [trial(0, plain_config(), [rich(night, 41.8, others={})])]
    )


def test_a_further_workload_that_ended_early_is_marked(store: StudyStore) -> None:
    night = new_night()
    guess = WorkloadResult(metrics={OBJECTIVE: 100.0}, estimated="stopped")
    rival = rich(night, 50.0, others={"busy": guess})
    trials = [trial(0, plain_config(), [rich(night, 41.8)]), trial(1, ngram(3, 4), [rival])]
    text = section(report_of(store, trials), "Workload by workload")
    assert "| ≈ 100.0 | ≈ 0.369 |" in text.split("### busy")[1]
    assert "≈ marks an estimate" in text


def test_a_combined_objective_is_spelt_out_and_ranked_on_its_score(store: StudyStore) -> None:
    night = new_night()
    trials = [
        trial(number, config, [changed(launch, metrics={**launch.metrics, "score": score})])
        for number, config, launch, score in (
            (0, plain_config(), rich(night, 41.8), 81.2),
            (1, ngram(3, 4), rich(night, 40.0), 90.0),
        )
    ]
    asked = "output_throughput x 2, busy.request_throughput x 1"
    text = markdown(finish(fill(store, trials, {**FINGERPRINT, "objective": asked})), simplicity)
    assert f"- **Ranked by:** {asked}: their weighted geometric mean, the score" in text
    ranking = section(text, "Ranking")
    assert "| 1 | 1 | ngram-simple n3 m4 | 90.00 | 1.108 |" in ranking
    assert "Spread, accept_len, TTFT and TPOT are those of the first workload alone, chat." in ranking
    assert "Passes and prompts are those of the first workload alone, chat." in section(text, "Noise and drift")
    assert "(tok/s) | each launch" not in text


def test_kinds_of_prompts_are_paired_with_the_baseline(report: str) -> None:
    text = section(report, "Prompt by prompt")
    assert "| kind | baseline (tok/s) | trial 1 (tok/s) | vs baseline (x) |" in text
    assert re.search(r"\| code \| 46\.0 \| 56\.5 \| 1\.2\d\d \|", text)


def test_spreads_are_separate_figures_and_the_baseline_is_shown_over_the_night(report: str) -> None:
    text = section(report, "Noise and drift")
    assert len(re.findall(r"(?m)^\| (?:from one start|between the|of a prompt)", text)) == 4
    assert "drift" in text
    rows = re.findall(r"(?m)^\| (\d) \| (\w+) \| 2026", text)
    assert rows == [("1", "control"), ("2", "control"), ("3", "confirm"), ("4", "confirm")]
    assert "+0.3 |" in text


def test_what_was_never_seen_twice_has_no_spread(store: StudyStore) -> None:
    night = new_night()
    once = rich(night, 41.8, repeat_throughputs=(), prompt_throughputs={})
    text = section(report_of(store, [trial(0, plain_config(), [once])]), "Noise and drift")
    assert text.count("| – | – | nothing was seen twice |") == 4
    assert "over the night" not in text


def test_gpus_show_clocks_temperatures_power_and_what_slowed_them_down(report: str) -> None:
    text = section(report, "GPUs")
    assert "asked 360 times while 12 launches were measured" in text
    assert "| 0 | 1,965 | 1,410 | 61 | 83 | 612 |" in text
    assert "- slowed down (hw_thermal_slowdown): in 1 launch of 12, at most 40 %" in text
    assert "- at its power limit, as under load it may be (sw_power_cap)" in text
    assert "somebody else used a GPU during trial 4, launch 0: pid 7 (python)" in text


def test_the_gpus_of_several_hosts_are_told_apart_and_what_is_unknown_is_a_dash(store: StudyStore) -> None:
    window = changed_window(gpus=(0, 0), power_w=())
    text = section(report_of(store, [trial(0, plain_config(), [rich(new_night(), 41.8, gpu=window)])]), "GPUs")
    assert "| 0 | 1,965 | 1,410 | 61 | 83 | – |" in text
    assert "| 0 of node 1 | 1,980 | 1,980 | 58 | 64 | – |" in text
    assert "Nobody else was seen" in text


def changed_window(**update: object) -> GpuWindow:
    return WINDOW.model_copy(update=update)


def test_without_nvidia_smi_there_is_no_such_part(store: StudyStore) -> None:
    cold = rich(new_night(), 41.8, gpu=GpuWindow())
    assert "## GPUs" not in report_of(store, [trial(0, plain_config(), [cold])])


def test_warm_up_and_the_clients_cost_are_shown_per_workload(report: str) -> None:
    text = section(report, "How it was measured")
    assert "| chat: warm-ups | 5 | 5 | 5 | 12 | left out of every number |" in text
    assert "| busy: client CPU (%) | 12.5 |" in text
    assert "| chat: client - server (%) | 0.31 |" in text
    limits = f"more than {SERVER_GAP_PCT:g} % (and {SERVER_GAP_MS:g} ms) apart"
    assert f"| {limits} is a doubt where requests follow one another |" in text


def test_why_launches_were_made_is_counted(report: str) -> None:
    text = section(report, "Why launches were made")
    assert "| search | 5 | 1 | 1 | 2 min 50 s |" in text
    assert "| control | 2 | 0 | 0 |" in text
    assert "| 1 | ngram-simple n3 m4 | 0 | 1 | 0 | 1 | 2 | 4 |" in text


def test_the_provenance_of_every_launch_is_listed(report: str) -> None:
    text = section(report, "What the numbers depend on")
    assert "| gpu_driver | 550.54; 570.86.15 |" in text
    assert "- trial 0, launch 0: gpu_driver 550.54 instead of 570.86.15" in text
    assert "- trial 5, launch 0: gpu_driver 550.54 instead of 570.86.15" in text


def test_the_metrics_that_appear_are_explained_and_no_others(report: str) -> None:
    text = section(report, "What the numbers mean")
    assert "- throughput (`output_throughput`, in tok/s): all output tokens over all time" in text
    assert "`server_gap_pct`" in text
    assert "`num_verify_steps`" not in text
    assert len(re.findall(r"(?m)^- ", text)) == len(set(re.findall(r"(?m)^- .*", text)))


def test_the_same_study_gives_the_same_report(store: StudyStore) -> None:
    report = report_of(store, eventful_night())
    assert markdown(store, simplicity) == report
