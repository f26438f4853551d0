"""Secrets in text: which names hold them, how they look where they are shown, and `***` in their place. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

MASK = "***"

_WORDS = frozenset(
    {"token", "key", "secret", "password", "passwd", "passphrase", "credential", "credentials", "webhook"}
)
_NO_SECRET = r"(?!(?:none|null|true|false|-?[0-9.]+|optional|str)\b|\*{3}|[-<$(])"
_COMPOUND = r"(?:api|admin|access|secret|private|auth|hf|hub|bearer|session|refresh|bot)[_-]?(?:key|token)"
_SHAPES = (
    # What stands before the secret, then the secret itself. Each repetition is bounded: logs are long.
    # User and password of an address. A password may hold a slash, or an @; behind a port there is a path.
    re.compile(r"(://)([^/\s'\"]{1,500}|[^:/\s@'\"]{0,500}:(?!\d{1,5}/)[^\s@'\"]{1,500})(?=@)"),
    re.compile(r"(?i)(\bauthorization['\"]?\s{0,3}[:=]\s{0,3}['\"]?(?:bearer|basic) )([^\s'\",]{4,4000})"),
    re.compile(rf"(?i)({_COMPOUND}['\"]?\s{{0,3}}[:=]\s{{0,3}}['\"]?){_NO_SECRET}([^\s'\",;)}}&]{{4,4000}})"),
    re.compile(
        rf"(?i)((?:password|passwd|passphrase|secret|credentials?)(?:=|['\"]\s{{0,3}}[:=]\s{{0,3}})['\"]?){_NO_SECRET}"
        r"([^\s'\",;)}&]{1,4000})"
    ),
    re.compile(rf"(\b[A-Z][A-Z0-9_]{{0,80}}_(?:TOKEN|KEY|SECRET)=['\"]?){_NO_SECRET}([^\s'\",;)}}]{{4,4000}})"),
    re.compile(
        r"((?<![\w-])--(?:[a-z0-9]{1,40}[-_]){0,6}(?:key|token|password|passphrase|secret)"
        rf"(?:[ =]|['\"]?, ?)['\"]?){_NO_SECRET}([^\s'\",]{{1,4000}})"
    ),
    # Tokens that name their kind: Hugging Face, OpenAI, GitHub, GitLab, Slack, AWS.
    re.compile(r"(\b)(hf_[A-Za-z0-9]{16,200}|sk-[A-Za-z0-9_-]{20,200}|gh[pousr]_[A-Za-z0-9]{20,250})"),
    re.compile(r"(\b)(glpat-[A-Za-z0-9_-]{20,100}|xox[a-z]-[A-Za-z0-9-]{10,200}|AKIA[A-Z0-9]{16})\b"),
)


@lru_cache(maxsize=4096)
def is_secret_name(name: str) -> bool:
    """Whether a flag or variable of this name holds a secret: its last word says so (`HF_TOKEN`, `api-key`).

    Flags that count tokens (`num_draft_tokens`) end with another word.
    """
    return re.split(r"[_.-]", name.lower())[-1] in _WORDS


def hide_shapes(text: str) -> str:
    """`text` without what looks like a secret: an address's user, `api_key=...`, `--token ...`, `hf_...`."""
    for shape in _SHAPES:
        text = shape.sub(rf"\g<1>{MASK}", text)
    return text


@lru_cache(maxsize=4096)  # a study's command lines are the same few words, thousands of times
def shaped_secrets(text: str) -> tuple[str, ...]:
    """The values that `hide_shapes` would hide; of an address its password alone."""
    found = [(number, match[2]) for number, shape in enumerate(_SHAPES) for match in shape.finditer(text)]
    told = (value.partition(":")[2] if number == 0 else value for number, value in found)
    return tuple(filter(None, told))


def masked_words(words: Iterable[str]) -> tuple[str, ...]:
    """A command line's words, with the value of each flag or setting whose name is a secret's as `***`.

    That is `--api-key VALUE`, `--api-key=VALUE` and `engine.env.HF_TOKEN=VALUE`.
    """
    masked: list[str] = []
    for word, secret in _with_secrets(words):
        if secret is None:
            masked.append(hide_shapes(word))
        else:
            masked.append(f"{word.partition('=')[0]}={MASK}" if word != secret else MASK)
    return tuple(masked)


def secret_words(words: Iterable[str]) -> Iterator[str]:
    """The values that `masked_words` hides: of flags and settings, and whatever looks like a secret in a word."""
    for word, secret in _with_secrets(words):
        yield from shaped_secrets(word) if secret is None else (secret,)


def _with_secrets(words: Iterable[str]) -> Iterator[tuple[str, str | None]]:
    """Each word with the secret that it is or ends with; None: neither."""
    is_value = False
    for word in words:
        name, equals, value = word.partition("=")
        if is_value and not word.startswith("--"):
            yield word, word
        else:
            told = (
                equals and is_secret_name(name) and not value.strip("'\"").startswith("${")
            )  # that names it only
            yield word, value if told else None
        is_value = word.startswith("--") and not equals and is_secret_name(name)
