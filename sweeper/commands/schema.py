"""`specsweep schema`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from sweeper.commands.writing import writing
from sweeper.config.mistakes import shown, valid_names
from sweeper.errors import ConfigError, ExitCode
from sweeper.schemas.files import FOLDER, schemas, text_of, write


def schema(arguments: argparse.Namespace) -> ExitCode:
    """Write all schemas beside a folder's groups, print one, or list them. Raises ConfigError."""
    made = schemas()
    if wrong := [
        f"{shown(name)} is no schema; {valid_names(name, made)}"
        for name in arguments.overrides
        if name not in made
    ]:
        raise ConfigError(wrong)
    if arguments.write is not None:
        folder = Path(arguments.write) / FOLDER
        with writing("--write", folder):
            write(folder)
        sys.stdout.write(f"{folder}: {', '.join(made)}\n")
        sys.stdout.write(
            f"A file of a group begins with: # yaml-language-server: $schema=../{FOLDER}/GROUP.json\n"
        )
    elif arguments.overrides:
        sys.stdout.write("".join(text_of(made[name]) for name in arguments.overrides))
    else:
        sys.stdout.write("".join(f"{name:16} {one['title']}\n" for name, one in made.items()))
    return ExitCode.OK
