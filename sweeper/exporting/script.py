"""A launch script for /bin/sh, one per rank: ready to paste, and ended by the server itself."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Iterable, Sequence

from sweeper.exporting.comments import comments
from sweeper.exporting.handover import Handover, Setting, Word

_CONTINUED = " \\\n  "
_WIDTH = 100


def scripts(handover: Handover) -> dict[str, str]:
    """File name to text."""
    return {f"run{handover.suffix(rank)}.sh": _script(handover, rank) for rank in range(handover.num_ranks)}


def _script(handover: Handover, rank: int) -> str:
    settings = [handover.host_setting, handover.port_setting]
    names = " and ".join(setting.name for setting in settings)
    usage = f"Set {names} to listen elsewhere than at 127.0.0.1:{settings[1].default}."
    lines = [f": {shell_word(secret)}" for secret in handover.secrets]
    unset = _lines(handover.serving.unset_env)
    env = [f"{name}={shell_word(word)}" for name, word in handover.env.items() if not isinstance(word, Setting)]
    if handover.gpus:
        gpus = ",".join(map(str, handover.gpus))
        env.insert(0, f'CUDA_VISIBLE_DEVICES="${{CUDA_VISIBLE_DEVICES:-{gpus}}}"')
    groups = [_shown(handover.serving.command), *_arguments(handover, rank)]
    command = _CONTINUED.join(["exec env", *unset, *env, *groups])
    head = ["#!/bin/sh", comments([*handover.about, "", usage]).rstrip(), "set -eu"]
    return "\n".join([*head, *lines, "", command]) + "\n"


def _arguments(handover: Handover, rank: int) -> list[str]:
    return [_shown(group) for group in handover.arguments(handover.host_setting, handover.port_setting, rank)]


def _lines(names: Sequence[str]) -> list[str]:
    """`-u NAME` for each name, several on a line."""
    words = " ".join(f"-u\N{NO-BREAK SPACE}{name}" for name in names)
    wrapped = textwrap.wrap(words, _WIDTH, break_long_words=False, break_on_hyphens=False)
    return [line.replace("\N{NO-BREAK SPACE}", " ") for line in wrapped]


def _shown(words: Iterable[Word]) -> str:
    return " ".join(map(shell_word, words))


def shell_word(word: Word) -> str:
    """One word for a POSIX shell, whatever is in it."""
    if isinstance(word, str):
        return shlex.quote(word)
    if word.is_secret:
        return f'"${{{word.name}:?holds {word.holds}, which is secret}}"'
    return f'"${{{word.name}:-{word.default}}}"'
