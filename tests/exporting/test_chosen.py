"""Which configuration is handed over, and what its files say of the numbers behind it."""

from __future__ import annotations

from pathlib import Path

import pytest

from sweeper.engines.base import HostFacts
from sweeper.engines.registry import engine_for
from sweeper.errors import ConfigError, FailureKind
from sweeper.exporting.bundle import FORMATS, OwnSide, bundle
from sweeper.exporting.chosen import choose, handover_of, loads_of
from sweeper.exporting.handover import plain_name
from sweeper.records import GpuWindow, Purpose, TrialRecord, TrialState, WorkloadResult
from sweeper.storing.storage import StudyStore
from tests.analysis import builders as made
from tests.analysis.builders import FINGERPRINT
from tests.analysis.studies import confirmed
from tests.exporting.made import FACTS, kept, launched, study

pytestmark = pytest.mark.study


def tied_night() -> list[TrialRecord]:
    night = made.new_night()
    values = ((41.8, 41.7), (51.5, 51.4), (51.4, 51.5))
    return [confirmed(night, number, pair) for number, pair in enumerate(values)]


def searched_night() -> list[TrialRecord]:
    """Nothing was confirmed yet."""
    night = made.new_night()
    return [
        made.trial(0, made.plain_config(), [made.measured(night, 41.8, Purpose.BASELINE, drafted=False)]),
        made.trial(1, made.ngram(3, 4), [made.measured(night, 51.5)]),
        made.trial(2, made.ngram(3, 7), [made.measured(night, 61.5)]),
    ]


def about(store: StudyStore, asked: str = "advised") -> tuple[int, str]:
    choice = choose(store, asked)
    return choice.trial.number, "\n".join(handover_of(choice).about)


def test_the_winner_is_handed_over_with_its_interval(tmp_path: Path) -> None:
    number, text = about(study(tmp_path, made.won_night()))
    assert number == 1
    assert "Advised: the winner" in text
    assert "51.4 tok/s against 41.8 tok/s of the baseline: 1.231 times, 90 % interval 1.2" in text
    assert "(2 launches)" in text
    assert "engine_version: b11549" in text


def test_of_equals_the_simplest_is_handed_over(tmp_path: Path) -> None:
    number, text = about(study(tmp_path, tied_night()))
    assert number in (1, 2)
    assert "Advised: the simplest of 2" in text


def test_without_confirmation_the_baseline_is_handed_over_and_says_why(tmp_path: Path) -> None:
    number, text = about(study(tmp_path, searched_night()))
    assert number == 0
    assert "UNCONFIRMED" in text
    assert "the baseline, without speculative decoding" in text


def test_the_best_is_the_fastest_and_says_that_it_is_not_confirmed(tmp_path: Path) -> None:
    number, text = about(study(tmp_path, searched_night()), "best")
    assert number == 2
    assert "NOT what is advised, but asked for: the verdict advises the baseline." in text
    assert "not confirmed" in text


def test_a_trial_can_be_named_and_so_can_the_baseline(tmp_path: Path) -> None:
    store = study(tmp_path, made.won_night())
    assert about(store, "2")[0] == 2
    assert "the verdict advises trial 1" in about(store, "2")[1]
    assert about(store, "baseline")[0] == 0


@pytest.mark.parametrize(
    ("asked", "told"),
    [("3", "it ended in out_of_memory"), ("99", r"no such trial; measured: 0, 1, 2")],
)
def test_a_trial_without_a_launch_to_show_is_refused(asked: str, told: str, tmp_path: Path) -> None:
    store = study(tmp_path, made.won_night())
    with pytest.raises(ConfigError, match=told):
        choose(store, asked)


def test_a_study_without_a_measured_baseline_advises_nothing(tmp_path: Path) -> None:
    night = made.new_night()
    failed = made.trial(0, made.plain_config(), [made.failed(night, FailureKind.HOST_LOST)], TrialState.RUNNING)
    store = study(tmp_path, [failed])
    for asked in ("advised", "best"):
        with pytest.raises(ConfigError, match=r"before the baseline|nothing was measured"):
            choose(store, asked)


def test_a_study_that_says_nothing_of_its_search_is_refused(tmp_path: Path) -> None:
    store = made.fill(made.in_memory(tmp_path), made.won_night())
    with pytest.raises(ConfigError, match="does not say how it was searched"):
        choose(store, "advised")


def test_no_secret_of_the_study_is_in_any_file(tmp_path: Path) -> None:
    night = made.new_night()
    config = made.ngram(3, 4, api_key="s3cret!", note="uses s3cret! inside")
    launches = [made.measured(night, value).model_copy(update={"doubts": ("saw s3cret!",)}) for value in (50.0,)]
    trials = [made.trial(0, made.plain_config(), [made.measured(night, 41.8)]), made.trial(1, config, launches)]
    choice = choose(study(tmp_path, trials), "best")
    own = OwnSide(engine_for("llamacpp"), FACTS, loads_of(choice, FINGERPRINT), 1.0)
    found = bundle(handover_of(choice), FORMATS, own)
    assert "s3cret" not in "".join(found.files.values())
    assert any("hydra: api_key is secret" in line for line in found.left_out)
    assert "Not in this file, since it is secret: api_key" in found.files["llama-server.ini"]


def test_a_secret_in_the_program_itself_is_refused(tmp_path: Path) -> None:
    night = made.new_night()
    trials = [made.trial(0, made.plain_config().with_flags({"api_key": "s3cret!"}), [made.measured(night, 41.8)])]
    store = made.fill(made.in_memory(tmp_path), launched(trials, command=("llama-server", "-s3cret!")))
    kept().keep(store)
    with pytest.raises(ConfigError, match="a secret stands in it"):
        handover_of(choose(store, "baseline"))


def test_text_that_no_file_can_carry_is_refused(tmp_path: Path) -> None:
    night = made.new_night()
    bad = made.trial(1, made.ngram(3, 4, note="bell \x07"), [made.measured(night, 2)])
    trials = [made.trial(0, made.plain_config(), [made.measured(night, 1)]), bad]
    with pytest.raises(ConfigError, match=r"flags\.note: holds the character U\+0007"):
        handover_of(choose(study(tmp_path, trials), "1"))


def test_the_gpus_are_named_where_only_some_were_used(tmp_path: Path) -> None:
    night = made.new_night()
    search = kept(facts=HostFacts(engine_version="1", gpu_names=("A", "B", "C")))
    launch = made.measured(night, 41.8).model_copy(update={"gpu": GpuWindow(gpus=(0, 2))})
    store = study(tmp_path, [made.trial(0, made.plain_config(), [launch])], search)
    found = handover_of(choose(store, "baseline"))
    assert (found.gpus, found.serving.num_gpus) == ((0, 2), 2)


def test_the_loads_of_all_trials_are_gathered_the_chosen_one_first(tmp_path: Path) -> None:
    fingerprint = {
        **FINGERPRINT,
        "workload.concurrency": "1",
        "more_workloads.busy.concurrency": "16",
        "more_workloads.open.concurrency": "64",
        "more_workloads.open.request_rate": "2.5",
    }
    others = {name: WorkloadResult(metrics={"output_throughput": 300.0}) for name in ("busy", "open")}
    trials = [
        record.model_copy(
            update={"launches": tuple(n.model_copy(update={"others": others}) for n in record.launches)}
        )
        for record in searched_night()
    ]
    found = loads_of(choose(study(tmp_path, trials, fingerprint=fingerprint), "best"), fingerprint)
    expected = [{1: 61.5, 16: 300.0}, {1: 41.8, 16: 300.0}, {1: 51.5, 16: 300.0}]
    assert [each.throughputs for each in found] == expected


@pytest.mark.parametrize(
    ("text", "name"), [("Night_2.v1", "night-2-v1"), ("-.-", "study"), ("a" * 99, "a" * 40), ("é", "study")]
)
def test_services_have_plain_names(text: str, name: str) -> None:
    assert plain_name(text) == name
