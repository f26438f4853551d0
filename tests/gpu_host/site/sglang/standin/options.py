"""The command line of each version: which flags there are, their types, choices and defaults.

The tables beside this package (options/VERSION.json) were read from the source of the published wheels. A row is
[field, default, type, names, choices, replaced by]; default "-" marks a second spelling of the field above.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import lines, log, settings
from .settings import Args

FILES = {
    (0, 5, 8): "0.5.8",
    (0, 5, 10): "0.5.10.post1",
    (0, 5, 15): "0.5.15.post1",
    (0, 5, 20): "0.5.20",
    (0, 5, 23): "0.5.23",
}
BANNER = "This is a stand-in for tests: it behaves like SGLang, loads no model, and its speed is planted."
TYPES = {"int": int, "float": float, "str": str}


class _Deprecated(argparse.Action):
    """Stores the value, or a constant, and says which flag to use instead."""

    def __init__(self, option_strings: Sequence[str], dest: str, **kwargs: Any) -> None:
        self.replacement = kwargs.pop("replacement")
        super().__init__(option_strings, dest, **kwargs)

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option: str | None = None,
    ) -> None:
        text = (
            f"'{option}' is deprecated and will be removed in a future release. Use '{self.replacement}' instead."
        )
        text, stamped = lines.deprecated(settings.version(), text)
        (log.say if stamped else log.raw)(text)
        setattr(namespace, self.dest, self.const if self.nargs == 0 else values)


def rows() -> list[list[Any]]:
    """The table of the imitated version."""
    path = Path(__file__).parents[1] / "options" / f"{FILES[settings.version()]}.json"
    table: list[list[Any]] = json.loads(path.read_text())
    return table


def build(hidden: str = "") -> argparse.ArgumentParser:
    """The parser of the imitated version, without the flag `hidden`."""
    prog = "sglang serve" if settings.version() >= (0, 5, 15) else "launch_server.py"
    parser = argparse.ArgumentParser(prog=prog, description=BANNER)
    for row in rows():
        field, _, kind, names, choices, replacement = row + [None] * (6 - len(row))
        names = names or ["--" + field.replace("_", "-")]
        if kind is not None and hidden not in names:
            _add(parser, names, field, kind, choices, replacement)
    return parser


def _add(
    parser: argparse.ArgumentParser, names: list[str], field: str, kind: str, choices: Any, replacement: str | None
) -> None:
    more: dict[str, Any] = {"dest": field, "default": argparse.SUPPRESS, "required": field == "model_path"}
    deprecated = {"action": _Deprecated, "replacement": replacement} if replacement else {}
    word, _, value = kind.partition(":")
    if word == "bool":
        more |= {"nargs": 0, "const": True, **deprecated} if deprecated else {"action": "store_true"}
    elif word == "const":
        more |= (
            {"nargs": 0, "const": value, **deprecated} if deprecated else {"action": "store_const", "const": value}
        )
    elif word == "false":
        more |= {"action": "store_false"}
    elif word == "optbool":
        more |= {"action": argparse.BooleanOptionalAction}
    elif word == "none":
        more |= {"action": "store_const", "const": None}
    else:
        more |= {"type": TYPES[value or word], "choices": choices, **deprecated}
        if word == "list":
            more["nargs"] = "+"
        elif not deprecated:
            more["metavar"] = None if choices else field.upper()
    parser.add_argument(*names, **more)


def parse(argv: Sequence[str], hidden: str = "") -> Args:
    """All fields, as given or by default. Exits with 2 as argparse does."""
    given = vars(build(hidden).parse_args(list(argv)))
    args = {row[0]: row[1] for row in rows() if row[1] != "-"}
    return {name: given.get(name, default) for name, default in args.items()}
