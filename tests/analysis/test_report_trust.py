"""The report can be trusted: hostile text stays text, secrets stay out, a file is whole, differences are shown."""

from __future__ import annotations

from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from analysis.report import write
from sweeper.errors import FailureKind
from sweeper.records import TrialState
from sweeper.spec import ServerConfig
from sweeper.storing.kept_run import KeptRun
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
from tests.analysis.studies import changed, finish, markdown, report_of, section
from tests.fakes import EPOCH

pytestmark = pytest.mark.study


def test_surprises_name_their_trials(store: StudyStore) -> None:
    night = new_night()
    odd = changed(measured(night, 50.0), surprises=("threads: asked for 1, the server reports 2",))
    trials = [trial(0, plain_config(), [measured(night, 40.0)]), trial(1, ngram(3, 4), [odd])]
    assert "- threads: asked for 1, the server reports 2 (trial 1)" in report_of(store, trials)


def test_a_server_that_reports_nothing_is_not_taken_for_an_obedient_one(store: StudyStore) -> None:
    mute = changed(measured(new_night(), 40.0), effective={})
    report = report_of(store, [trial(0, plain_config(), [mute])])
    assert "Unknown: no server reported" in section(report, "Surprises")


def test_numbers_of_different_provenance_are_not_compared_silently(store: StudyStore) -> None:
    night = new_night()
    newer = changed(measured(night, 50.0), provenance={"engine_version": "b2", "host": "gpu1"})
    trials = [trial(0, plain_config(), [measured(night, 40.0)]), trial(1, ngram(3, 4), [newer])]
    report = report_of(store, trials)
    verdict = section(report, "Verdict")
    assert "**Careful: launches differ in engine_version:** b2, b11549." in verdict
    assert "differ in host" not in verdict
    assert "Left out of every comparison: 1 launch" in verdict
    assert "ngram-simple n3 m4" not in section(report, "Ranking")
    assert "trial 1, launch 0: engine_version b2 instead of b11549" in section(
        report, "What the numbers depend on"
    )


HOSTILE = "\x1b[31m</td></table><script>x</script> | ``` ![p](http://evil/p) [l](http://evil) \n\n# Owned\n```"


def test_hostile_text_stays_text_everywhere(store: StudyStore) -> None:
    night = new_night()
    odd = changed(measured(night, 50.0), surprises=(HOSTILE,), host=HOSTILE, prompt_throughputs={HOSTILE: 50.0})
    broken = failed(night, FailureKind.SERVER_CRASH, HOSTILE, [HOSTILE, "~~~", "````"])
    trials = [
        trial(0, plain_config(), [changed(measured(night, 40.0), prompt_throughputs={HOSTILE: 40.0})]),
        trial(1, ngram(3, 4, model=HOSTILE), [changed(odd, provenance={"engine": HOSTILE})]),
        trial(2, ngram(3, 5), [broken], TrialState.INFEASIBLE),
    ]
    report = markdown(finish(fill(store, trials, {"objective": OBJECTIVE, HOSTILE: HOSTILE})), simplicity)
    assert "\x1b" not in report
    tokens = MarkdownIt("gfm-like", {"linkify": False}).parse(report)
    flat = [t for token in tokens for t in (token, *(token.children or []))]
    assert not {t.type for t in flat} & {"html_inline", "html_block", "image"}
    assert {str(t.attrs.get("href", "")) for t in flat if t.type == "link_open"} <= {"#how-to-run-it"}
    titles = [flat[i + 1].content for i, t in enumerate(flat) if t.type == "heading_open"]
    assert not [title for title in titles if "Owned" in title]
    rows = [len(line.split(" | ")) for line in report.splitlines() if line.startswith("| 1 | 1 |")]
    assert rows == [10]


def test_secrets_are_not_in_the_report(store: StudyStore) -> None:
    night = new_night()
    config = ServerConfig(flags=plain_config().flags, env={"HF_TOKEN": "hf_SECRET"})
    keyed = changed(measured(night, 40.0), argv=("serve", "--api-key", "sk-SECRET", "--port", "1"))
    said = failed(night, FailureKind.SERVER_CRASH, "bad key sk-SECRET", ["env HF_TOKEN=hf_SECRET"])
    trials = [trial(0, config, [said, keyed])]
    report = markdown(finish(fill(store, trials, {"engine.env.HF_TOKEN": "'hf_SECRET'"})), simplicity)
    assert "SECRET" not in report
    assert "--api-key '***'" in report
    assert "**State:** finished" in report


@pytest.mark.parametrize(
    ("how", "state"),
    [
        ("complete", "finished."),
        ("interrupted", "not finished (interrupted)"),
        ("night over", "not finished (night over)"),
    ],
)
def test_a_sweep_that_ended_early_is_not_called_finished(store: StudyStore, how: str, state: str) -> None:
    run = KeptRun(host="gpu1", overrides=(), folder="/", machine="m", began_at=EPOCH, trials_total=20, ended=how)
    run.keep(store)
    assert f"**State:** {state}" in report_of(store, won_night())


def test_a_damaged_fact_does_not_stop_the_report(store: StudyStore) -> None:
    fill(store, won_night())
    store.set_fact("verdict", ["not", "a verdict"])
    store.set_fact("fingerprint", "gone")
    assert "Nothing has been written down yet." in markdown(store, simplicity)


def test_write_replaces_the_file_and_leaves_nothing_else(store: StudyStore, tmp_path: Path) -> None:
    target = tmp_path / "new" / "report.md"
    assert write(markdown(store, simplicity), target) == target
    fill(store, won_night())
    write(markdown(store, simplicity), target)
    assert target.read_text(encoding="utf-8") == markdown(store, simplicity)
    assert list(target.parent.iterdir()) == [target]


def test_a_failed_write_leaves_nothing_behind(store: StudyStore, tmp_path: Path) -> None:
    target = tmp_path / "folder"
    (target / "in the way").mkdir(parents=True)
    with pytest.raises(OSError):
        write(markdown(store, simplicity), target)
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []
