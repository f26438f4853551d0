"""The table at the end: in order, marked, and without broken words."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from sweeper.errors import FailureKind
from sweeper.records import TrialRecord, TrialState, WorkloadResult
from sweeper.result_table import result_table
from tests.fakes import trial

OBJECTIVE = "output_throughput"
TRIALS = (
    trial(0, [50]),
    trial(1, [60], spec_type="ngram-simple", spec_n=3),
    trial(2, state=TrialState.INFEASIBLE, failure=FailureKind.OUT_OF_MEMORY, spec_type="ngram-simple", spec_n=9),
)


def printed(*trials: TrialRecord, width: int = 80, objective: str = OBJECTIVE, asked: str = "") -> str:
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=True, color_system=None, legacy_windows=False)
    console.print(result_table(trials, objective, width, asked))
    return out.getvalue()


def marked(of: TrialRecord, **changes: object) -> TrialRecord:
    launches = tuple(launch.model_copy(update=changes) for launch in of.launches)
    return of.model_copy(update={"launches": launches})


def test_it_ranks_and_marks_what_has_no_score() -> None:
    text = printed(*TRIALS)
    lines = text.splitlines()
    order = [line.split()[0] for line in lines if line.split()[:1] and line.split()[0].isdigit()]
    assert order == ["1", "0", "2"]
    assert "1.20 x" in text
    assert "ngram-simple n9" in text
    assert "[out_of_memory]" in text
    assert max(map(len, lines)) <= 80


def test_equals_stay_in_the_order_of_their_numbers() -> None:
    equals = [trial(number, [50.0], spec_n=number) for number in (4, 1, 3)]
    order = [line.split()[0] for line in printed(*equals).splitlines() if line.split()[:1]]
    assert [word for word in order if word.isdigit()] == ["1", "3", "4"]


def test_estimates_and_lossy_configurations_are_marked_and_explained() -> None:
    text = printed(TRIALS[0], marked(TRIALS[1], estimated="stopped", lossy=("kv_cache_dtype fp8: rounds",)))
    assert "≈ 60.0" in text
    assert "≈ 1.20 x" in text
    assert "[lossy]" in text
    words = " ".join(text.split())
    assert "≈: estimated, measuring ended early" in words
    assert "lossy: may write other text than the baseline" in words
    assert "≈" not in printed(*TRIALS)
    assert "lossy" not in printed(*TRIALS)


def test_a_combined_objective_is_spelt_out() -> None:
    scored = marked(trial(0, [50]), metrics={"score": 81.234})
    text = printed(scored, objective="score", asked="output_throughput x 2, busy.request_throughput x 1")
    assert "output_throughput x 2, busy.request_throughput x 1" in " ".join(text.split())
    assert "81.23" in text
    assert [line.split()[2] for line in text.splitlines() if line.split()[:1] == ["trial"]] == ["score"]


@pytest.mark.parametrize("width", [40, 60, 80, 100, 120])
def test_no_word_of_a_name_is_broken_where_it_fits(width: int) -> None:
    word = "x" * (width - 32)
    text = printed(TRIALS[0], trial(1, [1234.5], mode=word), TRIALS[2], width=width)
    assert word in text
    assert "[out_of_memory]" in text or width < 60
    assert max(map(len, text.splitlines())) <= width


def test_the_noise_of_the_night_stands_below() -> None:
    text = printed(trial(0, [50.0, 50.5], repeats=(49.9, 50.1)), TRIALS[1])
    assert "seen: 0.7 % from start to start, 0.3 % between passes" in " ".join(text.split())
    assert "seen" not in printed(*TRIALS)


def test_a_column_that_nobody_has_a_value_for_is_left_out() -> None:
    assert "accept_len" not in printed(*TRIALS)
    drafted = marked(TRIALS[1], metrics={OBJECTIVE: 60.0, "accept_length": 2.5})
    assert "accept_len" in printed(TRIALS[0], drafted)


FRESH = "means over all launches; the verdict counts fresh ones"


def test_what_the_verdict_counts_is_said_where_it_is_not_all() -> None:
    confirmed = (trial(0, [50], confirm=[50.1, 49.9]), trial(1, [60], confirm=[60.1, 59.8], m=1))
    assert FRESH in " ".join(printed(*confirmed).split())
    assert FRESH not in " ".join(printed(*TRIALS).split())


def test_beside_a_score_of_several_workloads_the_first_ones_numbers_are_named_as_such() -> None:
    metrics = {OBJECTIVE: 50.0, "accept_length": 2.5, "repeat_spread_pct": 1.0, "score": 81.0}
    once = marked(trial(0, [50]), metrics=metrics)
    scored = marked(once, others={"busy": WorkloadResult()})
    assert "of the first workload alone: spread, accept_len" in " ".join(
        printed(scored, objective="score").split()
    )
    twice = marked(scored, repeat_throughputs=(49.9, 50.1))
    assert "spread, accept_len, passes, prompts" in " ".join(printed(twice, objective="score").split())
    assert "prompts" not in printed(scored, objective="score")
    assert "first workload" not in printed(scored)
    assert "first workload" not in printed(once, objective="score")
