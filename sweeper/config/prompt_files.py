"""Where the prompts of a workload come from: a packaged set, a file of the user's own, or the configuration."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from pathlib import Path

from sweeper.config.mistakes import shown, valid_names
from sweeper.prompts.files import read_prompts
from sweeper.prompts.rows import RANDOM_REASON, text_mistake
from sweeper.workload_spec import Prompt

_NAME = re.compile(r"[A-Za-z0-9_-]{1,200}")
_RANDOM = re.compile(
    r"random(-(ids|tokens|image|mm|rerank))?|synthetic|dummy|(generated-)?shared-prefix|prefix-repetition"
)
"""What load generators call prompts that they make up of random tokens (`--dataset-name`)."""

ReadPrompts = Callable[[str], tuple[Prompt, ...]]
"""The prompts behind a `prompts_file`. Raises ValueError."""


class PromptReader:
    """Reads packaged sets and files, each once; `config_dir` is looked into first.

    `notes`: a line for each file of which rows were left out.
    """

    def __init__(self, config_dir: Path | None) -> None:
        self._config_dir = config_dir
        self._known: dict[str, tuple[Prompt, ...]] = {}
        self.notes: list[str] = []

    def __call__(self, name: str) -> tuple[Prompt, ...]:
        """The prompts behind a `prompts_file`. Raises ValueError."""
        if name not in self._known:
            found = read_prompts(_find(name, self._config_dir))
            self._known[name] = found.prompts
            self.notes += [f"prompts_file {name}: {found.left_out}"] if found.left_out else []
        return self._known[name]


def packaged_sets(config_dir: Path | None = None) -> list[str]:
    """The names of the sets that can be named without a path."""
    return sorted({path.stem for folder in _folders(config_dir) for path in folder.glob("*.jsonl")})


def check_listed(place: str, listed: Sequence[object]) -> tuple[list[object], list[str]]:
    """The prompts listed at `place`, and what of them would be refused in a file, or left out of it.

    An entry with such a mistake is replaced by one that the schema takes. What the schema tells itself (types,
    empty texts, missing and unknown names) is left to it.
    """
    entries: list[object] = []
    lines: list[str] = []
    for index, entry in enumerate(listed):
        wrong = _entry_mistakes(entry) if isinstance(entry, Mapping) else {}
        lines += [f"{place}.{index}.{name}: {reason}" for name, reason in wrong.items()]
        entries.append({"id": f"{place}.{index}", "text": "?"} if wrong else entry)
    return entries, lines


def _entry_mistakes(entry: Mapping[str, object]) -> dict[str, str]:
    """By name, what is wrong with one listed prompt that the schema does not see."""
    texts = {name: entry.get(name) for name in ("id", "text", "prompt_class")}
    reasons = {name: text_mistake(value) for name, value in texts.items() if isinstance(value, str) and value}
    wrong = {name: f"{shown(texts[name])} {reason}" for name, reason in reasons.items() if reason}
    if "token_ids" in entry:
        wrong["token_ids"] = "a prompt is given as text; its tokens are the model's to make"
    return wrong


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
