"""`specsweep resume`: the same settings again, without secrets that nobody kept."""

from __future__ import annotations

import argparse
import contextlib
import shutil
from pathlib import Path

import pytest

from launchers.masking import masked_words
from sweeper.__main__ import main
from sweeper.commands import resume as command
from sweeper.errors import ExitCode
from tests.commands.conftest import MakeStudy, kept

pytestmark = [pytest.mark.study, pytest.mark.compose]


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[argparse.Namespace]:
    """What `run` was called with, instead of running."""
    seen: list[argparse.Namespace] = []

    def run(arguments: argparse.Namespace) -> ExitCode:
        seen.append(arguments)
        return ExitCode.OK

    monkeypatch.setattr(command, "run", run)
    return seen


def test_a_full_disk_for_what_is_printed_keeps_no_night_from_beginning(
    make_study: MakeStudy, begun: list[argparse.Namespace], monkeypatch: pytest.MonkeyPatch
) -> None:
    make_study("night", "interrupted", ("preset=llamacpp_smoke",))
    with Path("/dev/full").open("w", encoding="utf-8") as full, monkeypatch.context() as patch:
        patch.setattr("sys.stdout", full)
        command.resume(argparse.Namespace(overrides=["night"], config_dir=None))
        patch.undo()
        with contextlib.suppress(OSError):
            full.close()
    assert begun[0].overrides == ["preset=llamacpp_smoke", "study.name=night"]


def test_the_only_interrupted_study_goes_on_with_its_settings(
    make_study: MakeStudy, begun: list[argparse.Namespace], capsys: pytest.CaptureFixture[str]
) -> None:
    make_study("done", "complete")
    make_study("night", "interrupted", ("preset=llamacpp_smoke", "budget.trials=40"))
    assert main(["resume"]) == ExitCode.OK
    assert begun[0].overrides == ["preset=llamacpp_smoke", "budget.trials=40", "study.name=night"]
    assert "specsweep run preset=llamacpp_smoke budget.trials=40 study.name=night" in capsys.readouterr().out


def test_added_settings_replace_kept_ones(make_study: MakeStudy, begun: list[argparse.Namespace]) -> None:
    make_study("night", "complete", ("preset=llamacpp_smoke", "budget.trials=40"))
    assert main(["resume", "night", "budget.trials=60", "--plain"]) == ExitCode.OK
    assert begun[0].overrides == ["preset=llamacpp_smoke", "study.name=night", "budget.trials=60"]
    assert begun[0].plain is True


def test_from_another_folder_it_goes_on_where_it_was_begun(
    make_study: MakeStudy, begun: list[argparse.Namespace], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_study("night", "interrupted")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    assert main(["resume", "night", f"study.dir={tmp_path}/sweeps"]) == ExitCode.OK
    assert Path.cwd() == tmp_path
    assert begun[0].overrides == ["study.name=night"]


def test_a_study_that_was_moved_goes_on_where_it_is(
    make_study: MakeStudy, begun: list[argparse.Namespace], tmp_path: Path
) -> None:
    study = make_study("night", "interrupted")
    kept(tmp_path / "gone", "study.name=night").keep(study.store)
    assert main(["resume", "night"]) == ExitCode.OK
    assert begun[0].overrides == ["study.name=night", "study.dir=sweeps"]
    assert Path.cwd() == tmp_path


def test_a_copy_that_is_named_is_gone_on_with_and_not_what_it_was_made_from(
    make_study: MakeStudy, begun: list[argparse.Namespace], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_study("night", "interrupted")
    copy = tmp_path / "copy"
    shutil.copytree(tmp_path / "sweeps", copy)
    assert main(["resume", "night", f"study.dir={copy}"]) == ExitCode.OK
    assert begun[0].overrides == ["study.name=night", f"study.dir={copy}"]
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert main(["resume", "night", f"study.dir={copy}"]) == ExitCode.OK
    assert begun[1].overrides == ["study.name=night", f"study.dir={copy}"]
    assert Path.cwd() == tmp_path / "elsewhere"


def test_a_copied_file_that_is_named_is_gone_on_with(
    make_study: MakeStudy, begun: list[argparse.Namespace], tmp_path: Path
) -> None:
    make_study("night", "interrupted", ("study.storage=sqlite:///sweeps/optuna.db",))
    shutil.copytree(tmp_path / "sweeps", tmp_path / "copy")
    (tmp_path / "copy" / "optuna.db").rename(tmp_path / "copy" / "other.db")
    named = "study.storage=sqlite:///copy/other.db"
    assert main(["resume", "night", "study.dir=copy", named]) == ExitCode.OK
    assert begun[0].overrides == ["study.name=night", "study.dir=copy", named]
    shutil.copy(tmp_path / "copy" / "other.db", tmp_path / "copy" / "optuna.db")
    assert main(["resume", "night", "study.dir=copy"]) == ExitCode.OK
    assert begun[1].overrides == ["study.name=night", "study.dir=copy"]


def test_a_study_that_was_moved_is_gone_on_with_where_it_is_named(
    make_study: MakeStudy, begun: list[argparse.Namespace], tmp_path: Path
) -> None:
    make_study("night", "interrupted")
    (tmp_path / "sweeps").rename(tmp_path / "new")
    assert main(["resume", "night", "study.dir=new"]) == ExitCode.OK
    assert begun[0].overrides == ["study.name=night", "study.dir=new"]


@pytest.mark.parametrize(
    "command_line",
    [
        "[/hook.sh,--token,***]",
        "[/hook.sh,--token,***,--loud]",
        "[--token,***,x]",
        '[curl,"api_key=***"]',
        '[curl,-H,"Authorization: Bearer ***"]',
    ],
)
def test_a_hook_whose_secret_is_not_kept_holds_no_resume_up(
    make_study: MakeStudy,
    begun: list[argparse.Namespace],
    capsys: pytest.CaptureFixture[str],
    command_line: str,
) -> None:
    secret = command_line.replace("***", "planted-secret-77")
    assert masked_words([f"notify.command={secret}"]) == (f"notify.command={command_line}",)
    make_study("night", "interrupted", (f"notify.command={secret}",))
    assert main(["resume", "night"]) == ExitCode.OK
    assert begun[0].overrides == [f"notify.command={command_line}", "study.name=night"]
    assert "planted" not in "".join(capsys.readouterr())


def test_a_secret_is_not_kept_and_asked_for(
    make_study: MakeStudy, begun: list[argparse.Namespace], capsys: pytest.CaptureFixture[str]
) -> None:
    make_study("night", "interrupted", ("engine.env.HF_TOKEN=***",))
    assert main(["resume"]) == ExitCode.USAGE
    assert "engine.env.HF_TOKEN: was secret and is not kept; give it again" in capsys.readouterr().err
    assert main(["resume", "engine.env.HF_TOKEN=new-secret"]) == ExitCode.OK
    assert begun[0].overrides == ["study.name=night", "engine.env.HF_TOKEN=new-secret"]
    assert "new-secret" not in capsys.readouterr().out


def test_hosts_of_one_study_go_on_together(
    make_study: MakeStudy, begun: list[argparse.Namespace], tmp_path: Path
) -> None:
    (tmp_path / "my" / "host").mkdir(parents=True)
    for host in ("gpu1", "gpu2"):
        (tmp_path / "my" / "host" / f"{host}.yaml").write_text(f"defaults: [local]\nname: {host}\n")
    storage = "study.storage=postgresql+psycopg://127.0.0.1/sweeps"
    study = make_study("night", "interrupted", ("host=gpu1", storage))
    kept(tmp_path, storage, "study.name=night", "host=gpu2", host="gpu2").keep(study.store)
    assert main(["resume", "night", "--config-dir", "my"]) == ExitCode.OK
    assert begun[0].overrides == [storage, "study.name=night", "hosts=[gpu1,gpu2]"]


def test_several_or_none_are_listed(
    make_study: MakeStudy, begun: list[argparse.Namespace], capsys: pytest.CaptureFixture[str]
) -> None:
    make_study("done", "complete")
    make_study("foreign").store.set_fact("fingerprint", None)
    assert main(["resume"]) == ExitCode.OK
    assert "nothing is left to do: done is complete; a larger total goes on: specsweep resume done" in (
        capsys.readouterr().out
    )
    make_study("lost", trials=0).store.set_fact("run:gpu1", None)
    assert main(["resume"]) == ExitCode.USAGE
    for name in ("a", "b"):
        make_study(name, "interrupted")
    assert main(["resume"]) == ExitCode.USAGE
    told = capsys.readouterr().err
    assert "several studies wait to go on: " in told
    assert {"a", "b"} <= set(told.replace(",", "").replace(";", "").split())


def test_a_file_that_cannot_be_read_is_not_taken_for_one_without_studies(
    make_study: MakeStudy, begun: list[argparse.Namespace], capsys: pytest.CaptureFixture[str]
) -> None:
    make_study("night", "interrupted")
    Path("sweeps/optuna.db").write_bytes(b"noise" * 4000)
    assert main(["resume"]) == ExitCode.ABORTED
    assert "sweeps/optuna.db: cannot be read: file is not a database" in capsys.readouterr().err
    assert begun == []


def test_what_cannot_be_read_may_wait_beside_what_is_complete(
    make_study: MakeStudy, begun: list[argparse.Namespace], capsys: pytest.CaptureFixture[str]
) -> None:
    make_study("done", "complete")
    Path("sweeps/other.db").write_bytes(b"noise" * 4000)
    assert main(["resume"]) == ExitCode.ABORTED
    assert "sweeps/other.db: cannot be read: file is not a database" in capsys.readouterr().err
    make_study("night", "interrupted")
    assert main(["resume"]) == ExitCode.OK
    assert begun[0].overrides == ["study.name=night"]
