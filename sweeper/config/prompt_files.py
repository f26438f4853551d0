"""Where the prompts of a workload come from: a packaged set, or a file of the user's own."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from importlib import resources
from pathlib import Path

from sweeper.config.mistakes import shown, valid_names
from sweeper.prompts.files import read_prompts
from sweeper.prompts.rows import RANDOM_REASON
from sweeper.workload_spec import Prompt

_NAME = re.compile(r"[A-Za-z0-9_-]+")
_RANDOM = re.compile(
    r"random(-(ids|tokens|image|mm|rerank))?|synthetic|dummy|(generated-)?shared-prefix|prefix-repetition"
)
"""What load generators call prompts that they make up of random tokens (`--dataset-name`)."""

ReadPrompts = Callable[[str], tuple[Prompt, ...]]
"""The prompts behind a `prompts_file`. Raises ValueError."""


def prompt_reader(config_dir: Path | None) -> ReadPrompts:
    """Reads packaged sets and files, each once; `config_dir` is looked into first."""
    return cache(lambda name: read_prompts(_find(name, config_dir)))


def packaged_sets(config_dir: Path | None = None) -> list[str]:
    """The names of the sets that can be named without a path."""
    return sorted({path.stem for folder in _folders(config_dir) for path in folder.glob("*.jsonl")})


def _folders(config_dir: Path | None) -> list[Path]:
    own = [config_dir / "prompts"] if config_dir else []
    return [*own, Path(str(resources.files("conf"))) / "prompts"]


def _find(name: str, config_dir: Path | None) -> Path:
    """The file that is meant. Raises ValueError.

    A bare word is a set: prompts/NAME.jsonl of the user's configuration folder, else of the package. Anything else
    is a path, from that folder or, if it is not there, from the working directory.
    """
    if _RANDOM.fullmatch(name.lower().replace("_", "-")):
        raise ValueError(f"{shown(name)}: {RANDOM_REASON}")
    if _NAME.fullmatch(name):
        for folder in _folders(config_dir):
            if (folder / f"{name}.jsonl").is_file():
                return folder / f"{name}.jsonl"
        known = valid_names(name, packaged_sets(config_dir))
        raise ValueError(f"{shown(name)} is no packaged set; {known}; a file of your own is ./{name}")
    try:
        path = Path(name).expanduser()
        beside = [config_dir / path] if config_dir else []
        places = [path] if path.is_absolute() else [*beside, Path.cwd() / path]
        found = next((place for place in places if place.exists()), None)
    except (OSError, RuntimeError) as error:  # a name that is too long, a user that does not exist
        reason = error.strerror if isinstance(error, OSError) else error
        raise ValueError(f"{shown(name)}: cannot be looked for: {reason}") from None
    if found is None:
        raise ValueError(f"{shown(name)}: there is no such file; looked for {' and '.join(map(str, places))}")
    return found
