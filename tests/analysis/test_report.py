"""The report: readable in every state of a study, and honest about what is not known."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

import pytest

from sweeper.errors import FailureKind
from sweeper.records import Purpose, TrialState
from sweeper.storing.storage import StudyStore
from tests.analysis.builders import (
    OBJECTIVE,
    failed,
    fill,
    measured,
    new_night,
    ngram,
    plain_config,
    simplicity,
    trial,
    won_night,
)
from tests.analysis.studies import changed, confirmed, finish, markdown, report_of, section

pytestmark = pytest.mark.study

SNAPSHOT = Path(__file__).parent / "snapshots" / "report.md"


def test_snapshot(store: StudyStore) -> None:
    """To accept a change: SPECSWEEP_SNAPSHOTS=write pytest tests/analysis, then read the difference."""
    report = report_of(store, won_night())
    if os.environ.get("SPECSWEEP_SNAPSHOTS") == "write":
        SNAPSHOT.write_text(report, encoding="utf-8")
    assert report == SNAPSHOT.read_text(encoding="utf-8")


def test_the_verdict_comes_first() -> None:
    headings = re.findall(r"(?m)^## (.*)$", SNAPSHOT.read_text(encoding="utf-8"))
    assert headings == [
        "Verdict",
        "Compared with the baseline",
        "Prompt by prompt",
        "Why",
        "Ranking",
        "What the parameters do",
        "Drafts and step time",
        "The night",
        "What the launches cost",
        "Failures",
        "Surprises",
        "Noise and drift",
        "Doubts",
        "How to run it",
        "Why launches were made",
        "What the numbers depend on",
        "Raw data",
        "What the numbers mean",
    ]


def test_a_study_on_disk_is_read_by_a_later_process(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/optuna.db"
    fill(StudyStore.open(url, "night", str(tmp_path), create=True), won_night())
    again = StudyStore.open(url, "night", str(tmp_path), create=False)
    assert markdown(finish(again), simplicity) == SNAPSHOT.read_text(encoding="utf-8")


def test_an_empty_study_says_that_nothing_was_measured(store: StudyStore) -> None:
    report = markdown(store, simplicity)
    assert "nothing has been measured yet" in report
    assert "No verdict yet." in report
    assert "How to run it" not in report


def test_a_running_study_is_not_called_finished(store: StudyStore) -> None:
    night = new_night()
    trials = [
        trial(0, plain_config(), [measured(night, 40.0)]),
        trial(1, ngram(3, 4), [measured(night, 50.0)]),
        trial(2, ngram(3, 7), [], TrialState.RUNNING),
    ]
    report = report_of(store, trials)
    assert "not finished. Begun and not ended (trial 2)" in report
    assert "## Verdict so far" in report
    assert "3 (2 measured, 1 unfinished), 2 launches" in report
    assert "Without a score" not in report


def test_a_study_that_went_on_after_its_verdict_says_so(store: StudyStore) -> None:
    night = new_night()
    fill(store, [trial(0, plain_config(), [measured(night, 40.0)])])
    finish(store)
    launch = changed(measured(night, 44.0, Purpose.CONFIRM), launch_number=1)
    store.save_launch(launch, {})
    assert "Launches were made since the last verdict" in markdown(store, simplicity)


def test_a_study_whose_trials_all_failed_shows_why(store: StudyStore) -> None:
    night = new_night()
    lost = [failed(night, FailureKind.HOST_LOST, "no answer", ["ssh: timed out"]) for _ in range(3)]
    report = report_of(store, [trial(0, plain_config(), lost, TrialState.RUNNING)])
    assert "The baseline has not been measured" in report.replace("the baseline", "The baseline")
    assert "No configuration has been measured yet." in report
    assert "### host_lost: 3 launches, trial 0" in report
    assert "ssh: timed out" in report
    assert "Failed launches: 100.0 %" in report


def test_a_baseline_alone_is_reported_without_a_comparison(store: StudyStore) -> None:
    report = report_of(store, [trial(0, plain_config(), [measured(new_night(), 40.0)])])
    assert "Run the baseline" in report
    assert "nothing else has been measured yet" in report
    assert "## Compared" not in report
    assert "| **1** | **0** | **baseline** | **40.0** |" in report


def test_a_tie_advises_the_simplest(store: StudyStore) -> None:
    night = new_night()
    values = {0: (40.0, 40.2), 4: (50.0, 50.4), 8: (50.1, 50.5)}
    trials = [confirmed(night, 0, values[0])]
    trials += [trial(n, ngram(3, m), confirmed(night, n, values[m]).launches) for n, m in ((1, 8), (2, 4))]
    verdict = section(report_of(store, trials), "Verdict")
    assert "**Run trial 2, the simplest of 2 equals: 25." in verdict
    assert "cannot be told apart" in verdict


def test_an_interval_that_spans_one_is_not_significant(store: StudyStore) -> None:
    night = new_night()
    report = report_of(store, [confirmed(night, 0, (40.0, 44.0)), confirmed(night, 1, (42.0, 45.0))])
    assert "no gain from speculation has been shown" in section(report, "Verdict")
    assert "not significant" in section(report, "Verdict")
    assert "| not significant |" in section(report, "Compared with the baseline")
    assert "Trial 0 (baseline)" in section(report, "How to run it")


def test_a_slower_configuration_is_called_slower(store: StudyStore) -> None:
    night = new_night()
    report = report_of(store, [confirmed(night, 0, (40.0, 40.1)), confirmed(night, 1, (20.0, 20.1))])
    assert "| no: slower |" in report


def test_without_repeats_the_spread_is_unknown(store: StudyStore) -> None:
    night = new_night()
    once = [changed(measured(night, value), repeat_throughputs=()) for value in (40.0, 50.0)]
    report = report_of(store, [trial(0, plain_config(), once[:1]), trial(1, ngram(3, 4), once[1:])])
    assert "| 1.250 | – | unknown: not confirmed |" in report
    assert "not confirmed" in report


def test_what_was_not_measured_is_never_shown_as_zero(store: StudyStore) -> None:
    bare = changed(
        measured(new_night(), 40.0), metrics={OBJECTIVE: 40.0}, phases=(), repeat_throughputs=(), argv=()
    )
    report = report_of(store, [trial(0, plain_config(), [bare])])
    assert "| **40.0** | **1.000** | – | – | – | – | **1** |" in report
    assert "| start until ready | – | – | – |" in report
    assert not re.search(r"\| 0(\.0*)?( s| ms| %)? \|", section(report, "What the launches cost"))


def test_every_number_leads_to_files_that_exist(store: StudyStore, tmp_path: Path) -> None:
    raw = section(report_of(store, won_night()), "Raw data")
    names = re.findall(r"trial-\d+-launch-\d+-requests\.jsonl", raw)
    assert len(names) == 9
    assert "artifacts/night" in raw
    assert all((tmp_path / "artifacts" / "night" / name).is_file() for name in names)
    assert "| 51.3 | 51.0, 51.6 |" in raw


def test_another_objective_is_ranked_and_its_passes_are_not_mixed_in(store: StudyStore) -> None:
    night = new_night()
    slow, fast = (
        changed(measured(night, value), metrics={OBJECTIVE: value, "decode_throughput": rate})
        for value, rate in ((50.0, 60.0), (40.0, 80.0))
    )
    trials = [trial(0, plain_config(), [slow]), trial(1, ngram(3, 4), [fast])]
    report = markdown(fill(store, trials, {"objective": "decode_throughput"}), simplicity)
    assert "| 1 | 1 | ngram-simple n3 m4 | 80.0 | 1.333 |" in report
    assert "(passes:" not in report


def test_the_advised_command_is_the_one_that_was_measured(store: StudyStore) -> None:
    report = report_of(store, won_night())
    block = re.search(r"```bash\n(.*?)\n```", section(report, "How to run it"), re.DOTALL)
    assert block is not None
    assert tuple(shlex.split(block[1].replace("\\\n", ""))) == store.trials()[1].launches[2].argv


def test_a_retried_trial_is_not_counted_as_lost(store: StudyStore) -> None:
    night = new_night()
    launches = [failed(night, FailureKind.SERVER_CRASH, "signal 6"), measured(night, 50.0)]
    trials = [trial(0, plain_config(), [measured(night, 40.0)]), trial(1, ngram(3, 4), launches)]
    report = report_of(store, trials)
    assert "A trial is given up after 2 such launches; none has had so many." in report
    assert "Measured in another launch all the same: trial 1." in report
    assert "Without a score" not in report


def test_a_trial_during_which_specsweep_died_is_named(store: StudyStore) -> None:
    trials = [
        trial(0, plain_config(), [measured(new_night(), 40.0)]),
        trial(1, ngram(3, 4), [], TrialState.FAILED),
    ]
    assert "because specsweep itself died each time: trial 1." in report_of(store, trials)


def test_long_studies_and_long_logs_are_cut_and_say_so(store: StudyStore) -> None:
    night = new_night()
    trials = [trial(0, plain_config(), [measured(night, 10.0)])]
    trials += [trial(n, ngram(3, n), [measured(night, 50.0 + n)]) for n in range(1, 50)]
    evidence = [f"line {n}" for n in range(50)]
    trials.append(
        trial(50, ngram(9, 9), [failed(night, FailureKind.OUT_OF_MEMORY, "oom", evidence)], TrialState.INFEASIBLE)
    )
    report = report_of(store, trials)
    assert "19 slower trials left out." in report
    assert "| **50** | **0** | **baseline** |" in report
    assert "line 49" in report
    assert "line 37\n" not in report
    assert "38 earlier lines in the record" in report
