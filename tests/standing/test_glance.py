from __future__ import annotations

import datetime
import json
from pathlib import Path

import pytest

from launchers.clock import SystemClock
from sweeper.__main__ import main
from sweeper.deciding.plan import progress
from sweeper.errors import ExitCode
from sweeper.records import Purpose
from sweeper.standing.beacon import Note
from sweeper.standing.glance import glance
from sweeper.standing.model import Left, Now, Standing
from sweeper.standing.process import this_process
from tests.core.drafting import BUDGET, measured, open_study, run
from tests.fakes import EPOCH, launch

pytestmark = pytest.mark.study

OBJECTIVE = "output_throughput"


def test_a_glance_agrees_with_what_the_sweep_itself_knows(tmp_path: Path) -> None:
    study = open_study(tmp_path, sampler="random")
    made = run(study, BUDGET)
    for number, value in ((0, 99.0), (3, 500.0), (4, 1.0)):
        again = launch(value, trial=number, number=1, purpose=Purpose.RECHECK if number else Purpose.CONTROL)
        study.save(again, {})
    asked = study.ask(BUDGET.model_copy(update={"trials": 20}))
    assert asked is not None
    known = progress(study.trials(), BUDGET, OBJECTIVE, True)
    seen = glance(study.store, tmp_path, EPOCH)
    assert known.best_trial is not None
    assert seen.best is not None
    assert (seen.best.trial, seen.best.value) == (known.best_trial.number, known.best_value)
    assert seen.baseline == known.baseline_value
    assert seen.trials == {"running": 1, "complete": len(made), "infeasible": 0, "failed": 0}
    assert seen.launches == {"baseline": 1, "search": len(made) - 1, "control": 1, "recheck": 2}
    assert seen.running == (asked.trial_number,)
    assert max(seen.course) == max(
        study.store.optuna.get_trials(deepcopy=False)[n].value or 0 for n in range(1, 8)
    )


def test_of_two_hosts_the_best_is_on_the_scale_of_the_first_and_both_baselines_count(tmp_path: Path) -> None:
    study = open_study(tmp_path, sampler="random")
    run(study, BUDGET.model_copy(update={"trials": 2}))
    first = study.trials()[0].mean(OBJECTIVE)
    assert first is not None
    slower = launch(first / 2, number=1, purpose=Purpose.BASELINE).model_copy(update={"host": "slower"})
    study.save(slower, {})
    again = launch(first * 0.75, trial=1, number=1, purpose=Purpose.RECHECK)
    study.save(again.model_copy(update={"host": "slower"}), {})
    seen = glance(study.store, tmp_path, EPOCH)
    assert seen.launches == {"baseline": 2, "search": 1, "recheck": 1}
    assert seen.baseline == pytest.approx(first)
    own = study.trials()[1].launches[0].metrics[OBJECTIVE]
    assert seen.best is not None
    assert seen.best.value == pytest.approx((own + 1.5 * first) / 2)
    assert seen.best.ratio == pytest.approx(seen.best.value / first)


def test_what_is_left_is_the_newest_word_of_any_host(tmp_path: Path) -> None:
    study = open_study(tmp_path, sampler="random")
    run(study, BUDGET)
    process = this_process()
    (tmp_path / "night-status").mkdir()
    for name, seconds, launches in (("a", 0, 1), ("b", 1, 0)):
        at = EPOCH + datetime.timedelta(seconds=seconds)
        now = Now(worker=name, host="here", pid=process.pid, is_alive=None, written_at=at)
        note = Note(process=process, now=now, left=Left(at=at, trials_total=8, launches=launches))
        (tmp_path / "night-status" / f"{name}.json").write_text(note.model_dump_json())
    left = glance(study.store, tmp_path, EPOCH).left
    assert left is not None
    assert left.launches == 0


def test_the_json_can_be_read_back_and_has_the_documented_keys(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study = open_study(tmp_path, sampler="random")
    proposal = study.ask(BUDGET)
    assert proposal is not None
    study.tell(proposal, study.save(measured(proposal), {}))
    place = [f"study.dir={tmp_path}", "study.name=night"]
    assert main(["status", "--json", *place]) == ExitCode.OK
    told = capsys.readouterr().out
    assert Standing.model_validate_json(told).trials["complete"] == 1
    page = Path("docs/status.md").read_text(encoding="utf-8")
    assert [name for name in json.loads(told) if f"`{name}`" not in page] == []
    assert main(["status", *place]) == ExitCode.OK
    assert "best    baseline 100.0 tok/s" in capsys.readouterr().out


def test_a_study_that_is_not_there_is_one_clear_mistake(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["status", f"study.dir={tmp_path}"]) == ExitCode.USAGE
    assert "study.storage" in capsys.readouterr().err
    assert main(["status", "--watch", "0.01", f"study.dir={tmp_path}"]) == ExitCode.USAGE
    assert "--watch: 0.01" in capsys.readouterr().err


def test_ctrl_c_ends_a_watch_as_it_ends_any_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    study = open_study(tmp_path, sampler="random")
    run(study, BUDGET)

    def interrupted(clock: SystemClock, seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(SystemClock, "sleep", interrupted)
    place = [f"study.dir={tmp_path}", "study.name=night"]
    assert main(["status", "--watch", "60", *place]) == ExitCode.INTERRUPTED
    told = capsys.readouterr()
    assert told.out.count("best ") == 1
    assert told.err.splitlines() == ["specsweep: interrupted; nothing was left half done"]
