"""Secrets in text: which names hold them, how they look where they are shown, and `***` in their place. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from launchers.userinfo import hide_userinfos, userinfos

MASK = "***"

_WORDS = frozenset(
    {"token", "key", "secret", "password", "passwd", "passphrase", "credential", "credentials", "webhook"}
)
_NO_SECRET = r"(?!(?:none|null|true|false|-?[0-9.]+|optional|str)\b|\*{3}|[-<$(])"
_NO_PASSWORD = r"(?!(?:none|null|true|false|optional|str)(?:[\s'\",;)}\]&\\]|$)|\*{3}|<|\$(?:\{|[A-Z_]+\b))"
_COMPOUND = r"(?:api|admin|access|secret|private|auth|hf|hub|bearer|session|refresh|bot)[_-]?(?:key|token)"
_PASSWORD = r"(?:password|passwd|passphrase|secret|credentials?|[a-z0-9]_pwd)"
_FLAG = r"(?<![\w-])--(?:[a-z0-9]{1,40}[-_]){0,6}(?:key|token|password|passphrase|secret)"
_AUTHORIZATION = r"authorization['\"]?\s{0,3}[:=]\s{0,3}['\"]?(?:bearer|basic)"
_QUOTE = r"(?P<quote>\\{0,3}['\"])"
_QUOTED = r"((?:''|(?!(?P=quote))(?:\\.|[^\\\n]))" + r"{1,4000})"
"""Up to the quote that ends it, which may be escaped as the first one: a password may hold blanks and any sign."""
_OVER = r"[,;&]\s{0,3}[A-Za-z_][\w.-]{0,60}=|[,;)}\]]{1,3}(?:\s|$)"
_BARE = rf"(?!\\{{0,3}}['\"])((?:(?!{_OVER})(?:[^\s'\"]|['\"](?![\s,;:)}}\]'\"]|$))){{1,4000}})"
"""Up to a blank, a quote that ends something, or the next option; a mark that parts or closes is none of it."""
_END = r"(?<![)\]}])"
"""A bracket that closes last is the list's, in which the secret stands."""
_SHAPES = (
    # What stands before the secret, then the secret itself. Each repetition is bounded: logs are long.
    re.compile(
        r"(?i)(\bauthorization['\"]?\s{0,3}[:=]\s{0,3}['\"]?(?:bearer|basic) )([^\s'\",]{4,4000}" + _END + ")"
    ),
    re.compile(
        rf"(?i)({_COMPOUND}['\"]?\s{{0,3}}[:=]\s{{0,3}}['\"]?){_NO_SECRET}([^\s'\",;)}}&]{{4,4000}}{_END})"
    ),
    re.compile(rf"(?i)({_PASSWORD}(?:\\{{0,3}}['\"])?\s{{0,3}}[:=]\s{{0,3}}{_QUOTE}){_NO_PASSWORD}{_QUOTED}"),
    re.compile(rf"(?i)({_PASSWORD}(?:\s{{0,3}}=\s{{0,3}}|['\"]\s{{0,3}}[:=]\s{{0,3}})){_NO_PASSWORD}{_BARE}"),
    re.compile(
        rf"(\b[A-Z][A-Z0-9_]{{0,80}}_(?:TOKEN|KEY|SECRET)=['\"]?){_NO_SECRET}([^\s'\",;)}}]{{4,4000}}{_END})"
    ),
    re.compile(rf"({_FLAG}(?:[ =]|['\"]?, ?){_QUOTE}){_NO_PASSWORD}{_QUOTED}"),
    re.compile(rf"({_FLAG}[ =]){_NO_SECRET}{_BARE}"),
    re.compile(rf"({_FLAG}['\"]?, ?){_NO_SECRET}([^\s'\",]{{1,4000}}{_END})"),
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
    text = hide_userinfos(text, MASK)
    for shape in _SHAPES:
        text = shape.sub(rf"\g<1>{MASK}", text)
    return text


@lru_cache(maxsize=4096)  # a study's command lines are the same few words, thousands of times
def shaped_secrets(text: str) -> tuple[str, ...]:
    """The values that `hide_shapes` would hide; of an address its password alone."""
    passwords = [text[begin:end].partition(":")[2] for begin, end in userinfos(text)]
    spelt = [match[match.re.groups] for shape in _SHAPES for match in shape.finditer(text)]
    return tuple(filter(None, [*passwords, *spelt]))


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
