"""Every command line of the documentation is run; composed and checked where it would start a server."""

from __future__ import annotations

import argparse
import importlib.util
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from sweeper import config
from sweeper.__main__ import main
from sweeper.commands.fleet import HOSTS, SLURM, hosts_of, is_for_slurm
from sweeper.commands.slurm import slurm_words
from sweeper.errors import ConfigError, ExitCode
from sweeper.usage.command_line import parse
from tests.docs.conftest import place_study
from tests.docs.pages import ROOT, all_commands, blocks, inline, words_of
from tests.docs.studies import make

pytestmark = [pytest.mark.compose, pytest.mark.study]

Made = Callable[[str], Path]
COMMANDS = {command.replace(".venv/bin/", ""): place for place, command in reversed(all_commands())}
"""Each command line once, with the first place that has it."""

COMPOSED = ("run", "stop", "plan", "resume")
"""Commands whose settings are those of a run."""

PARSED = ("ui", "doctor", "init", "completion")
"""Commands that ask a host or a person, or serve until they are ended: what they take is checked."""

ELLIPSIS = ("host.ssh.destination=gpu1", "model.path=/m", "space.speculative_draft_model_path=/m-eagle3")
"""What `...` stands for in a command."""

TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))


def parsed(words: list[str]) -> argparse.Namespace:
    """The arguments, as the command line reads them; SystemExit where it refuses them."""
    return parse(words)


def composed(arguments: argparse.Namespace) -> None:
    """What `run` and `stop` check before they start anything. Raises ConfigError."""
    hosts = None
    if is_for_slurm(arguments.overrides):
        assert slurm_words(arguments.overrides)
    else:
        hosts = hosts_of(arguments.overrides)
    rest = [word for word in arguments.overrides if not word.startswith((HOSTS, SLURM))]
    for host in hosts or ("",):
        words = [*rest, *([f"host={host}"] if host else [])]
        assert config.load(words, arguments.config_dir).spec.space.parameters


def looked_at(words: list[str], folder: Path, made: Made) -> ExitCode:
    """Run a command that reads studies, on studies of the names that it says; all folders lie below `folder`."""
    moved = [re.sub(r"(?<![\w.])/(data|tmp)/", rf"{folder}/\1/", word) for word in words]
    arguments = parsed(moved)
    own = [word for word in arguments.overrides if re.match(r"(study|tracking|preset)[=./]", word)]
    place = config.load_place(own, arguments.config_dir)
    place_study(folder, made(place.study.name), place.study.dir)
    for other in getattr(arguments, "others", []):
        into, _, name = other.rpartition(":")
        other_folder = folder / (into or place.study.dir)
        if into or not (other_folder / "optuna.db").exists():
            place_study(folder, made(name), str(other_folder))
        else:
            make(other_folder, name)
    if "--watch" in moved:  # again and again, until Ctrl-C
        moved = moved[: moved.index("--watch")]
    return ExitCode(main(moved))


def checked(words: list[str], folder: Path, made: Made) -> None:
    """One command line of any program. Fails for one that nothing here knows how to check."""
    program, *rest = words
    if program == "source":  # in a shell, what a command prints
        checked(" ".join(rest).removeprefix("<(").removesuffix(")").split(), folder, made)
    elif "|" in rest:
        checked([program, *rest[: rest.index("|")]], folder, made)
    elif program == "specsweep" and rest[0] in COMPOSED:
        composed(parsed([word for given in rest for word in (ELLIPSIS if given == "..." else [given])]))
    elif program == "specsweep" and rest[0] in PARSED:
        assert parsed(rest).command == rest[0]
    elif program == "specsweep" and rest[0] in ("schema", "import"):
        assert main(rest) == ExitCode.OK
    elif program == "specsweep":
        assert looked_at(rest, folder, made) == ExitCode.OK
    elif program == "make":
        assert rest[0] in TARGETS
    elif program == "python":
        assert rest[0] == "-m"
        assert importlib.util.find_spec(rest[1])
    elif program == "cp":
        assert (ROOT / rest[0]).is_file()
    else:
        assert (program, rest[0]) in {("docker", "compose"), ("ssh", "gpu1"), ("pipx", "install")}, (
            "no test knows this command"
        )


@pytest.mark.parametrize("command", COMMANDS, ids=COMMANDS.values())
def test_a_command_line_does_what_the_page_says(
    command: str, reader: Path, made: Made, capsys: pytest.CaptureFixture[str]
) -> None:
    checked(words_of(command), reader, made)


def test_a_planted_typo_is_found(reader: Path, made: Made, capsys: pytest.CaptureFixture[str]) -> None:
    for command in (
        "specsweep run budget.trails=20",
        "specsweep run preset=llamacpp_chta",
        "specsweep run --confg-dir my space=mine",
        "specsweep statsu",
        "specsweep report study.nam=night",
        "specsweep export bets",
        "make sweeep",
        "python -m tests.bench.serach table",
        "speecsweep run",
    ):
        with pytest.raises((ConfigError, SystemExit, AssertionError)):
            checked(shlex.split(command), reader, made)


def test_the_slurm_script_is_a_script_whose_worker_is_a_valid_run(reader: Path) -> None:
    (script,) = [block for block in blocks("bash") if block.page == "docs/fleet.md"]
    assert script.text.startswith("#!/bin/bash\n")
    found = re.search(r"exec specsweep (run .*?)'", script.text.replace("\\\n", " "), re.S)
    assert found
    composed(parsed(shlex.split(found[1].replace("$(hostname -s)", "node7"))))


def test_commands_in_running_text_exist() -> None:
    for page, text in inline():
        if re.match(r"(\.venv/bin/)?specsweep [a-z]", text):
            words = [
                word for word in shlex.split(text) if word not in ("...", "COMMAND", "--help", "--config-dir")
            ]
            if len(words) > 1:
                parsed(words[1:])
        elif found := re.match(r"make ([a-z-]+)", text):
            assert found[1] in TARGETS, f"{page}: {text}"
        elif found := re.match(r"python -m (tests[\w.]+)", text):
            assert importlib.util.find_spec(found[1]), f"{page}: {text}"
