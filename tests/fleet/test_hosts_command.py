"""`hosts=[a,b]`: one command, one worker per host."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from launchers.children import run_side_by_side
from sweeper.commands.fleet import hosts_of, run_on_all
from sweeper.errors import ConfigError, ExitCode


def test_the_hosts_are_read_from_a_list() -> None:
    assert hosts_of(["budget.trials=4"]) is None
    assert hosts_of(["hosts=[a, b/c]"]) == ("a", "b/c")
    assert hosts_of(["hosts=a,b"]) == ("a", "b")


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (["hosts=[a,]"], "hosts: '[a,]' should be a list of options of host"),
        (["hosts=[a,a]"], "hosts: '[a,a]' names a host twice"),
        (["slurm.nodes=2"], "slurm.nodes: goes with hosts=slurm"),
        (["hosts=[a,b]", "host=c"], "host=c: hosts=[a,b] chooses the hosts already"),
    ],
)
def test_a_list_that_cannot_be_meant_is_one_message(overrides: Sequence[str], said: str) -> None:
    with pytest.raises(ConfigError) as seen:
        hosts_of(overrides)
    assert said in str(seen.value)


@pytest.mark.compose
def test_what_is_wrong_with_any_host_is_said_before_anything_starts(tmp_path: Path) -> None:
    (tmp_path / "host").mkdir()
    for name in "ab":
        (tmp_path / "host" / f"{name}.yaml").write_text("defaults: [local]\nname: same\n")
    arguments = argparse.Namespace(overrides=["hosts=[a,b]", "budget.trials=x"], config_dir=tmp_path)
    with pytest.raises(ConfigError, match=r"budget\.trials: 'x'"):
        run_on_all(("a", "b"), arguments)
    arguments = argparse.Namespace(overrides=["hosts=[a,b]"], config_dir=tmp_path)
    with pytest.raises(ConfigError) as seen:
        run_on_all(("a", "b"), arguments)
    assert "belongs to one process; hosts share postgresql://HOST/DATABASE" in str(seen.value)
    assert "host.name: 'same' is the name of several of a, b" in str(seen.value)


@pytest.mark.host
@pytest.mark.compose
def test_a_worker_that_was_killed_is_told_by_the_command_that_started_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "host").mkdir()
    for name in "ab":
        (tmp_path / "host" / f"{name}.yaml").write_text(f"defaults: [local]\nname: {name}\n")
    worker = tmp_path / "worker"
    worker.write_text('#!/bin/sh\ncase "$*" in *host=a) kill -9 $$ ;; esac\nexit 5\n')
    worker.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(worker))
    words = ["study.storage=postgresql://127.0.0.1:1/x", "study.name=night", "notify.command=[tee,-a,told]"]
    code = run_on_all(("a", "b"), argparse.Namespace(overrides=words, config_dir=tmp_path))
    assert code == ExitCode.ABORTED
    assert (tmp_path / "told").read_text() == "the worker was killed by signal 9\n", "the other has told it itself"


def shell(script: str) -> list[str]:
    return ["/bin/sh", "-c", script]


@pytest.mark.host
def test_lines_of_all_commands_are_handed_on_and_their_exit_codes_kept() -> None:
    seen: list[tuple[str, str]] = []
    commands = {"a": shell("echo one; echo two >&2; exit 3"), "b": shell("echo three; kill -9 $$")}
    codes = run_side_by_side(commands, lambda name, line: seen.append((name, line)))
    assert codes == {"a": 3, "b": -9}
    assert sorted(seen) == [("a", "one"), ("a", "two"), ("b", "three")]


@pytest.mark.host
def test_a_signal_reaches_every_command_once() -> None:
    seen: list[tuple[str, str]] = []
    program = (
        "import signal, sys, time\n"
        "count = 0\n"
        "def stop(*_):\n"
        "    print('stopping', flush=True); sys.exit(130)\n"
        "signal.signal(signal.SIGINT, stop)\n"
        "print('ready', flush=True)\n"
        "time.sleep(60)\n"
    )

    def on_line(name: str, line: str) -> None:
        seen.append((name, line))
        if [text for _, text in seen].count("ready") == 2 and line == "ready":
            threading.Timer(0, os.kill, (os.getpid(), signal.SIGINT)).start()

    argv = [sys.executable, "-c", program]
    assert run_side_by_side({"a": argv, "b": argv}, on_line) == {"a": 130, "b": 130}
    assert sorted(seen) == [("a", "ready"), ("a", "stopping"), ("b", "ready"), ("b", "stopping")]


@pytest.mark.host
def test_no_command_is_left_when_whoever_looks_gives_up(tmp_path: Path) -> None:
    def give_up(name: str, line: str) -> None:
        raise ValueError(line)

    with pytest.raises(ValueError) as seen:
        run_side_by_side({"a": shell("echo $$; exec sleep 60")}, give_up)
    assert not Path(f"/proc/{seen.value.args[0]}").exists()
