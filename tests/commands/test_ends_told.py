"""Whoever wants to be told of a night hears of one that never began: by a real command and a real webhook."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from launchers.shell import LocalShell
from sweeper.__main__ import main
from sweeper.errors import ExitCode
from tests.chaos.sweeps import LLAMA, SHORT
from tests.core.receiver import Receiver, receiving
from tests.launchers.conftest import unused_port

pytestmark = [pytest.mark.host, pytest.mark.compose, pytest.mark.study]

HOOK = 'echo "$SPECSWEEP_EVENT $SPECSWEEP_STUDY $SPECSWEEP_HOST: $(head -1)" >> told\n'


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as server:
        yield server


@pytest.fixture
def words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, receiver: Receiver) -> tuple[str, ...]:
    """`run` on this machine with both hooks, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hook").write_text(HOOK)
    (tmp_path / "model.gguf").write_bytes(b"GGUF")
    return (
        "run", "--plain", *SHORT, f"engine.command=[python3,-S,-E,{LLAMA},{tmp_path}]", "model.path=model.gguf",
        f"host.state_dir={tmp_path}/state", "tracking=none", "budget.trials=1", "budget.confirm_launches=0",
        "notify.command=[sh,hook]", f"notify.webhook={receiver.url}",
    )  # fmt: skip


def told(receiver: Receiver) -> str:
    """What both were told, which is the same: the event, the study, the host, the text's first line."""
    (message,) = receiver.received
    (line,) = Path("told").read_text().splitlines()
    first = f"{message['event']} {message['study']} {message['host']}: {message['text'].splitlines()[0]}"
    assert line == first
    return line


def test_a_host_that_cannot_be_reached_is_told(words: tuple[str, ...], receiver: Receiver) -> None:
    nowhere = ("host=ssh", "host.ssh.destination=127.0.0.1", f"host.ssh.port={unused_port()}")
    assert main([*words, *nowhere, "host.ssh.reconnect_s=1"]) == ExitCode.ABORTED
    assert "aborted chaos 127.0.0.1: stopped: 127.0.0.1: ssh " in told(receiver)
    assert "the connection was refused" in told(receiver)


def test_a_database_that_cannot_be_reached_is_told_without_its_password(
    words: tuple[str, ...], receiver: Receiver, capsys: pytest.CaptureFixture[str]
) -> None:
    url = f"postgresql://me:hush-hush@127.0.0.1:{unused_port()}/sweeps"
    assert main([*words, f"study.storage={url}"]) == ExitCode.ABORTED
    line = told(receiver)
    assert "aborted chaos local: study.storage: 'postgresql+psycopg://***@127.0.0.1" in line
    assert "Connection refused" in line
    shown = capsys.readouterr().err
    assert "Nothing was changed; mend this, then give the same command again." in shown
    assert "hush-hush" not in shown + line
    assert "note: ended with exit code 5: study.storage" in Path("sweeps/chaos.local.log").read_text()


def test_a_host_that_is_busy_is_told(words: tuple[str, ...], receiver: Receiver, tmp_path: Path) -> None:
    with LocalShell("local").hold(f"{tmp_path}/state/host.lock"):
        assert main(words) == ExitCode.HOST_BUSY
    assert "aborted chaos local: local is held by another specsweep: pid " in told(receiver)


def test_a_host_without_its_model_is_told(words: tuple[str, ...], receiver: Receiver) -> None:
    Path("model.gguf").unlink()
    assert main(words) == ExitCode.USAGE
    assert "aborted chaos local: 1 mistake in the configuration:" in told(receiver)


def test_another_study_of_the_name_is_told(words: tuple[str, ...], receiver: Receiver) -> None:
    assert main([*words, "notify.events=[]"]) == ExitCode.OK
    assert main([*words, "workload.max_tokens=7"]) == ExitCode.MISMATCH
    assert told(receiver).startswith("aborted chaos local: ")
    assert "ended with exit code 3: " in Path("sweeps/chaos.log").read_text()


def test_a_mistake_in_the_configuration_is_told_to_who_typed_it_alone(
    words: tuple[str, ...], receiver: Receiver, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words, "budget.trials=none"]) == ExitCode.USAGE
    assert "budget.trials" in capsys.readouterr().err
    assert (receiver.received, Path("told").exists(), Path("sweeps").exists()) == ([], False, False)


def test_a_study_that_cannot_be_gone_on_with_is_told_by_the_folder_s_own_settings(
    words: tuple[str, ...], receiver: Receiver
) -> None:
    url = f"postgresql://me@127.0.0.1:{unused_port()}/sweeps"
    notify = f"notify: {{command: [sh, hook], webhook: '{receiver.url}'}}\n"
    Path("specsweep.yaml").write_text(f"study: {{storage: '{url}'}}\n{notify}")
    assert main(["resume", "night"]) == ExitCode.ABORTED
    assert "aborted night : study.storage: " in told(receiver)


def test_a_hook_that_hangs_holds_no_start_up(words: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "hook").write_text("sleep 600\n")
    with LocalShell("local").hold(f"{tmp_path}/state/host.lock"):
        assert main([*words, "notify.timeout_s=0.5", "notify.tries=1"]) == ExitCode.HOST_BUSY
