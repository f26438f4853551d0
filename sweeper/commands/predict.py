"""`specsweep predict`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from sweeper import config
from sweeper.commands.as_json import print_json
from sweeper.engines.registry import engine_for
from sweeper.errors import ConfigError, ExitCode
from sweeper.storage import StudyStore
from sweeper.what_if import as_data, ask
from sweeper.what_if import words as answer_lines


def predict(arguments: argparse.Namespace) -> ExitCode:
    """Print what a configuration of a study would do. Raises ConfigError."""
    settings, asked = split_question(arguments.overrides)
    place = config.load_place(settings, arguments.config_dir)
    store = StudyStore.of(place.study)
    kept, answer = ask(store, asked)
    baseline = engine_for(kept.engine).baseline(kept.base, kept.facts)
    if arguments.json:
        print_json({"study": store.name, **as_data(kept, answer)})
        return ExitCode.OK
    sys.stdout.write("\n".join(answer_lines(kept, answer, baseline)) + "\n")
    return ExitCode.OK


def split_question(words: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Which words are settings (of a group, or dotted), and the values that are asked about by name.

    Raises ConfigError for a word that is neither.
    """
    settings: list[str] = []
    asked: dict[str, str] = {}
    mistakes: list[str] = []
    for word in words:
        name, equals, value = word.partition("=")
        group = name.split("/")[0].split(".")[0].lstrip("+~")
        if group in config.GROUPS or ("." in name and group != "env"):
            settings.append(word)
        elif not equals or not value:
            mistakes.append(f"{word}: write NAME=VALUE, as in num_steps=5")
        elif name in asked:
            mistakes.append(f"{word}: {name} has two values")
        else:
            asked[name] = value
    if mistakes:
        raise ConfigError(mistakes)
    return settings, asked
