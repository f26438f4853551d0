"""`specsweep completion`."""

from __future__ import annotations

import argparse
import sys

from sweeper.errors import ConfigError, ExitCode
from sweeper.usage.completing import candidates
from sweeper.usage.completion_scripts import SCRIPTS
from sweeper.usage.table import SHELLS


def completion(arguments: argparse.Namespace) -> ExitCode:
    """Print a shell's script, or what may stand in the place of the last of some words. Raises ConfigError."""
    if arguments.words is not None:
        sys.stdout.write("".join(f"{word}\n" for word in candidates(arguments.words)))
        return ExitCode.OK
    if arguments.shell is None:
        raise ConfigError([f"SHELL: name one of {', '.join(SHELLS)}: specsweep completion bash"])
    sys.stdout.write(SCRIPTS[arguments.shell])
    return ExitCode.OK
