"""The flags that a server's own `--help` lists."""

from __future__ import annotations

import re

_LONG_FLAG = re.compile(r"(?<![\w-])--([A-Za-z0-9](?:[\w-]*\w)?)")


def long_flags(help_text: str, witness: str) -> frozenset[str]:
    """Every long flag in the text, with underscores; empty without `witness`: then another program spoke."""
    found = frozenset(name.replace("-", "_") for name in _LONG_FLAG.findall(help_text))
    return found if witness in found else frozenset()
