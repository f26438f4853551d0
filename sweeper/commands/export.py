"""`specsweep export`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from sweeper import config
from sweeper.commands.as_json import print_json
from sweeper.commands.screen import say_left_out
from sweeper.commands.writing import writing
from sweeper.engines.registry import engine_for
from sweeper.errors import ConfigError, ExitCode, Together
from sweeper.exporting.bundle import FORMATS, Bundle, OwnSide, bundle, write
from sweeper.exporting.chosen import ADVISED, BASELINE, BEST, Choice, choose, handover_of, loads_of
from sweeper.storing.storage import StudyStore
from sweeper.text import plain

ALL = "all"


def export(arguments: argparse.Namespace) -> ExitCode:
    """Write, or print, a measured configuration in the formats of other programs. Raises ConfigError."""
    settings, words = split_choice(arguments.overrides)
    formats = FORMATS if arguments.format == ALL else (arguments.format,)
    together = Together()
    if arguments.output == "-" and arguments.json:
        together.mistakes.append("--json: lists files that were written; --output - writes none")
    with together:
        asked = choice_of(words)
    with together:
        place = config.load_place(settings, arguments.config_dir)
        store = StudyStore.open(place.study.storage, place.study.name, place.study.dir, create=False)
    together.tell()
    damages = store.damages()
    say_left_out(store.name, damages)
    choice = choose(store, asked)
    handover = handover_of(choice)
    found = bundle(handover, formats, _own_side(store, choice))
    if arguments.output == "-":
        sys.stdout.write(_only_text(found))
        return ExitCode.OK
    folder = Path(arguments.output) if arguments.output else Path(place.study.dir) / f"{place.study.name}-export"
    with writing("--output" if arguments.output else "study.dir", folder):
        paths = write(found, folder)
    if arguments.json:
        files = {"folder": str(folder), "files": [str(path) for path in paths]}
        damaged = [damage.text for damage in damages]
        told = {"left_out": found.left_out, "damaged": damaged}
        print_json({"study": store.name, "trial": choice.trial.number, **files, **told})
        return ExitCode.OK
    lines = [*handover.about[:3], "", *(str(path) for path in paths)]
    lines += [f"left out: {line}" for line in found.left_out]
    sys.stdout.write("".join(f"{plain(line, 500)}\n" for line in lines))
    return ExitCode.OK


def split_choice(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Which words are settings, and which say what trial is asked for: its number, or a word."""
    settings = [word for word in words if word not in (BEST, BASELINE) and not word.startswith("trial=")]
    return settings, [word.removeprefix("trial=") for word in words if word not in settings]


def choice_of(asked: Sequence[str]) -> str:
    """The one trial that is asked for. Raises ConfigError when that is said twice, or a number is none."""
    if len(asked) > 1:
        raise ConfigError([f"{' '.join(asked)}: one configuration at a time: trial=N, {BEST} or {BASELINE}"])
    known = asked[0] if asked else ADVISED
    if not (known in (ADVISED, BEST, BASELINE) or (known.isascii() and known.isdecimal() and len(known) < 10)):
        raise ConfigError([f"trial={known[:80]}: write the number of a trial, or {BEST} or {BASELINE} alone"])
    return known


def _own_side(store: StudyStore, choice: Choice) -> OwnSide:
    kept = choice.kept
    version = choice.launch.provenance.get("engine_version", kept.facts.engine_version)
    return OwnSide(
        engine=engine_for(kept.engine),
        facts=replace(kept.facts, engine_version=version),
        measured=loads_of(choice, store.texts("fingerprint")),
        noise_pct=choice.verdict.noise.expected_launch.pct,
    )


def _only_text(found: Bundle) -> str:
    """The text of the one file. Raises ConfigError when there are several."""
    if len(found.files) != 1:
        raise ConfigError([f"--output: - prints one file, and there are {len(found.files)}; name a folder"])
    return next(iter(found.files.values()))
