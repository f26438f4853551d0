"""`specsweep predict`."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence

from rich.text import Text

from sweeper import config
from sweeper.commands.as_json import print_json
from sweeper.commands.screen import say_left_out, screen
from sweeper.config.mistakes import shown
from sweeper.engines.registry import ENGINE_NAMES, engine_for
from sweeper.errors import ExitCode, Together
from sweeper.predicting.what_if import ask
from sweeper.predicting.what_if_words import as_data
from sweeper.predicting.what_if_words import words as answer_lines
from sweeper.storing.storage import StudyStore

_NARROW = 60
"""Below so many columns the numbers stand close to one another."""


def predict(arguments: argparse.Namespace) -> ExitCode:
    """Print what a configuration of a study would do. Raises ConfigError."""
    settings, asked, mistakes = split_question(arguments.overrides)
    together = Together()
    with together:
        store = StudyStore.of(config.load_place(settings, arguments.config_dir).study)
    if together.mistakes:
        mistakes += number_mistakes(asked)  # else the study says what each of them may be
    together.mistakes += mistakes
    together.tell()
    kept, answer = ask(store, asked)
    baseline = engine_for(kept.engine).baseline(kept.base, kept.facts)
    damages = store.damages()
    say_left_out(store.name, damages)
    if arguments.json:
        damaged = [damage.text for damage in damages]
        print_json({"study": store.name, **as_data(kept, answer), "damaged": damaged})
        return ExitCode.OK
    console = screen()
    for line in answer_lines(kept, answer, baseline):
        shown = re.sub(" {2,}", "  ", line) if console.width < _NARROW else line
        console.print(Text(shown), soft_wrap=not console.is_terminal)
    return ExitCode.OK


def split_question(words: Sequence[str]) -> tuple[list[str], dict[str, str], list[str]]:
    """Which words are settings (of a group, or dotted), the values that are asked about by name, and a line for
    each word that is neither."""
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
    return settings, asked, mistakes


def number_mistakes(asked: Mapping[str, str]) -> list[str]:
    """What is wrong with the values whatever the study: steps, branches and draft tokens are counted."""
    counted = {
        name
        for engine in ENGINE_NAMES
        if (roles := engine_for(engine).speculation()) is not None
        for name in roles.numbers
    }
    return [
        f"{word}: {shown(text)} should be a whole number, 1 or greater"
        for word, text in asked.items()
        if any(name == word or name.endswith(f"_{word}") for name in counted) and not _is_count(text)
    ]


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdecimal() and int(text) > 0
