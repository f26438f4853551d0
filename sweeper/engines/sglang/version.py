"""SGLang's version: reading it from a command's output, and which rules hold for it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

_STAGES = {"dev": 0, "a": 1, "b": 1, "rc": 2, "": 3, "post": 4}

_VERSION = re.compile(
    r"(?P<release>\d{1,4}\.\d{1,4}\.\d{1,4})"
    r"(?:\.?(?P<stage>a|b|rc|post|dev)(?P<number>\d{0,9}))?"
    r"(?:\.dev\d{0,9})?(?:\+[A-Za-z0-9._-]{0,80})?"
)
_LINE = re.compile(rf"^\s*(?:sglang[ =:]+)?v?({_VERSION.pattern})\s*$", re.MULTILINE)


@dataclass(frozen=True, order=True)
class Version:
    """A version in the order of PEP 440: 0.5.10.dev1 < 0.5.10rc0 < 0.5.10 < 0.5.10.post1 < 0.5.11.

    Rules compare `release`: a preview (dev, rc) is treated as the release that it leads to.
    """

    release: tuple[int, int, int]
    stage: int = _STAGES[""]
    number: int = 0

    @property
    def is_preview(self) -> bool:
        """Whether this is a development build or a release candidate."""
        return self.stage < _STAGES[""]

    def since(self, *release: int) -> bool:
        """Whether the rules of `release` hold: this is that release or a later one."""
        return self.release >= release


OLDEST = Version((0, 5, 8))
NEWEST = Version((0, 5, 23))
"""The newest version whose argument handling was run (tests/sglang_oracle)."""


@lru_cache(maxsize=64)
def version_of(text: str) -> Version:
    """`text` as a Version; the newest known one when it says nothing. Never raises: see `parse_version`."""
    found = _VERSION.fullmatch(text.strip()[:200])
    if found is None:
        return NEWEST
    major, minor, patch = (int(part) for part in found["release"].split("."))
    return Version((major, minor, patch), _STAGES[found["stage"] or ""], int(found["number"] or 0))


def parse_version(text: str) -> str:
    """The version in the output of a command: the last line that is nothing but a version.

    Raises ValueError when there is none, or when it is older than the oldest one whose rules are known.
    """
    found = _LINE.findall(text[-100_000:])
    if not found:
        raise ValueError(f"no line with a version in {text.strip()[:200]!r}")
    version = str(found[-1][0])
    if version_of(version).release < OLDEST.release:
        raise ValueError(f"SGLang {version} is too old: its rules are known from 0.5.8 on")
    return version


def version_notice(version: str) -> str:
    """What a person should know about the rules for this version; empty when they were run on it."""
    parsed = version_of(version)
    if not _VERSION.fullmatch(version.strip()[:200]):
        return f"the version of SGLang is unknown ({version[:80]!r}): the rules of 0.5.23 are applied"
    if parsed.release > NEWEST.release:
        return f"SGLang {version} is newer than the rules, which end with 0.5.23: what it changed is not foreseen"
    if parsed.is_preview:
        return f"SGLang {version} is a preview: the rules of the release that it leads to are applied"
    return ""
