"""One row of a file of prompts: what of it is sent, under which name, as which kind.

    {"id": "queue", "text": "Write a ...", "prompt_class": "code"}      our own; "prompt" is "text", too
    {"id": "x_0", "conversations": [{"from": "human", "value": ...}]}   ShareGPT: the first turn, a human's;
                                                                        as {"role": "user", "content": ...}, too
    {"question_id": 81, "category": "writing", "turns": [...]}          MT-bench, Spec-Bench: the first turn
    {"messages": [{"role": "user", "content": ...}]}                    OpenAI: the only turn of a user

A workload sends single messages. The first turn of a conversation makes sense without the later ones; a system's
message, or a later turn without those before it, would be another question: such rows are refused. ShareGPT rows
that do not begin with a human turn are left out: the common files have thousands of them, cut out of the middle of
longer conversations. So are those whose question is empty.

An `id` of the file is kept; a row without one is named by its text. `category` is `prompt_class`.
"""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sweeper.text import plain
from sweeper.workload_spec import MAX_TEXT

RANDOM_REASON = (
    "random tokens tell nothing: no draft model can guess them (12 % of the drafts are accepted where real text "
    "has 52 %), so configurations would be ranked for what nobody serves; give prompts that people send"
)

_MAX_NAME = 100
_TOKEN_IDS = ("token_ids", "prompt_token_ids", "input_ids", "prompt_ids", "tokens")


@dataclass(frozen=True)
class Row:
    """One prompt as the file has it. `named`: under an id that the file's author is to keep distinct."""

    name: str
    named: bool
    text: str
    prompt_class: str


class LeftOut(enum.StrEnum):
    """Why a conversation has no prompt. It is the file's author's to mend, so it is counted and not refused."""

    EMPTY = "without a question"
    CUT = "cut out of the middle of a conversation"


def read_row(row: object) -> Row | LeftOut:
    """The prompt of a row, or why a conversation has none. Raises ValueError."""
    if _are_token_ids(row):
        raise ValueError(f"holds token ids instead of text: {RANDOM_REASON}")
    if not isinstance(row, dict):
        raise ValueError(f"should be an object with a text, not {plain(repr(row), 60)}")
    text = _text_of(row)
    if isinstance(text, LeftOut):
        return text
    if not isinstance(text, str):
        raise ValueError(f"its text should be text, not {plain(repr(text), 60)}")
    if reason := text_mistake(text):
        raise ValueError(f"its text {reason}")
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    given = _name(row, ("id", "question_id"))
    kind = _name(row, ("prompt_class", "category"))
    return Row(given or f"p{digest}", bool(given) and "conversations" not in row, text, kind or "default")


def text_mistake(text: str) -> str:
    """Why the text can be no prompt, nor a prompt's name: "is empty", ...; empty when it can."""
    if len(text) > MAX_TEXT:
        return f"has {len(text):,} characters, more than {MAX_TEXT:,}"
    try:
        text.encode()
    except UnicodeEncodeError:
        return "holds half a character (a lone surrogate)"
    return "is empty" if _is_blank(text) else ""


def _is_blank(text: str) -> bool:
    return not any(character.isprintable() and not character.isspace() for character in text)


def _text_of(row: Mapping[str, object]) -> object:
    """What is sent of a row, or why a conversation has nothing. Raises ValueError."""
    text = row["text"] if "text" in row else row.get("prompt")
    if text is not None:
        if _are_token_ids(text):
            raise ValueError(f"holds token ids instead of text: {RANDOM_REASON}")
        return text
    if any(_are_token_ids(row.get(name)) for name in _TOKEN_IDS):
        raise ValueError(f"holds token ids instead of text: {RANDOM_REASON}")
    if "conversations" in row:
        return _first_question(_objects(row["conversations"], "conversations"))
    if "turns" in row:
        turns = row["turns"] if isinstance(row["turns"], list) else []
        if not turns:
            raise ValueError("turns should be a list whose first entry is the question")
        return turns[0]
    if "messages" in row:
        return _only_question(_objects(row["messages"], "messages"))
    raise ValueError('has no text: "text", "prompt", "conversations", "turns" or "messages"')


def _first_question(turns: Sequence[Mapping[str, object]]) -> object:
    """The question that a conversation begins with; `CUT` when something else, that would be lost, comes first."""
    said = [
        (who, what)
        for turn in turns
        for who, what in [(turn.get("from", turn.get("role")), turn.get("value", turn.get("content")))]
        if who != "system" or what
    ]
    if not said:
        return LeftOut.EMPTY
    who, what = said[0]
    if who not in ("human", "user"):
        return LeftOut.CUT
    return LeftOut.EMPTY if what is None or (isinstance(what, str) and _is_blank(what)) else what


def _only_question(messages: Sequence[Mapping[str, object]]) -> object:
    """The one user's message. Raises ValueError when something before it would be lost."""
    roles = [message.get("role") for message in messages]
    if roles[:1] != ["user"] or roles.count("user") > 1:
        asked = ", ".join(plain(str(role), 20) for role in roles[:5]) or "nothing"
        raise ValueError(f"its messages ({asked}) are more than one question; a prompt is one user's message")
    content = messages[0].get("content")
    if not isinstance(content, list):
        return content
    parts = [part.get("text") for part in _objects(content, "content") if part.get("type") == "text"]
    if len(parts) < len(content) or not all(isinstance(part, str) for part in parts):
        raise ValueError("its message holds something other than text")
    return "".join(map(str, parts))


def _objects(value: object, name: str) -> list[dict[str, object]]:
    if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
        raise ValueError(f"{name} should be a list of objects")
    return value


def _are_token_ids(value: object) -> bool:
    entries = value if isinstance(value, list) else [value]
    return bool(entries) and all(isinstance(entry, int) and not isinstance(entry, bool) for entry in entries)


def _name(row: Mapping[str, object], keys: Sequence[str]) -> str:
    """The first of `keys` that the row has, on one bounded line; empty without any. Raises ValueError."""
    for key in keys:
        value = row.get(key)
        if value is None or value == "":
            continue
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise ValueError(f"{key} should be text or a whole number, not {plain(repr(value), 60)}")
        return plain(str(value), _MAX_NAME)
    return ""
