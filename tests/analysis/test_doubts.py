"""Doubts are grouped, placed, and come with what to do."""

from __future__ import annotations

from pathlib import Path

from analysis.reading import read
from analysis.sections.doubts import advice_on, doubts
from sweeper.measuring.doubts import passes_doubt, server_doubt
from sweeper.records import LaunchRecord, WorkloadResult
from tests.analysis import builders as b
from tests.analysis.studies import text_of


def lines_of(folder: Path, *launches: LaunchRecord) -> str:
    trials = [
        b.trial(number, b.ngram(3, number) if number else b.plain_config(), [launch])
        for number, launch in enumerate(launches)
    ]
    return text_of(doubts(read(b.fill(b.in_memory(folder), trials), b.simplicity)))


def doubtful(night: b.Night, *texts: str, busy: tuple[str, ...] = ()) -> LaunchRecord:
    others = {"busy": WorkloadResult(doubts=busy)} if busy else {}
    return b.measured(night, 40.0).model_copy(update={"doubts": texts, "others": others})


def test_doubts_that_differ_in_numbers_alone_are_one(tmp_path: Path) -> None:
    night = b.new_night()
    text = lines_of(
        tmp_path,
        doubtful(night, "later passes are faster by 4 %: still warming up"),
        doubtful(night),
        doubtful(night, "later passes are faster by 7.5 %: still warming up"),
    )
    assert text.count("later passes") == 1
    assert "by 7.5 %: still warming up (trial 0 launch 0; trial 2 launch 0)" in text
    assert "2 of 3 measured launches" in text


def test_a_further_workloads_doubts_bear_its_name(tmp_path: Path) -> None:
    assert "- busy: lag (trial 0 launch 0)" in lines_of(tmp_path, doubtful(b.new_night(), busy=("lag",)))


def test_the_most_frequent_comes_first(tmp_path: Path) -> None:
    night = b.new_night()
    text = lines_of(tmp_path, doubtful(night, "rare", "often"), doubtful(night, "often"))
    assert text.index("often") < text.index("rare")


def test_no_doubts_are_said_to_be_none(tmp_path: Path) -> None:
    assert "None: no launch showed a reason" in lines_of(tmp_path, doubtful(b.new_night()))


def test_hostile_doubts_stay_text(tmp_path: Path) -> None:
    text = lines_of(tmp_path, doubtful(b.new_night(), "<script>\n# x"))
    assert "<script>" not in text
    assert "\n# x" not in text


def test_what_the_benchmark_doubts_has_advice() -> None:
    requests = [
        b.request(prompt, repeat).model_copy(
            update={"e2e_latency_ms": 1000.0 - 200 * repeat, "server_e2e_ms": 700.0}
        )
        for repeat in range(2)
        for prompt in b.PROMPTS
    ]
    found = (server_doubt(requests), passes_doubt(requests))
    assert all(found)
    assert all(advice_on(text) for text in found)
    assert advice_on("something new") == ""


def test_advice_on_a_server_that_was_warming_up_does_not_assume_that_a_limit_was_met() -> None:
    advice = advice_on("later passes are faster by 7 % than the first: the server was still warming up")
    assert "only where warm-up ended at that limit" in advice
    assert "`workload.repeats`" in advice
