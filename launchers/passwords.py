"""Passwords that stand in addresses on command lines."""

from __future__ import annotations

import re

_PASSWORDS = re.compile(r"(://[^:@/\s'\"]*:)[^@\s'\"]*(?=@)|([?&](?:ssl)?password=)[^&\s'\"]*")


def without_passwords(words: str) -> str:
    """Text in which the password of every address is replaced by `***`."""
    return _PASSWORDS.sub(r"\1\2***", words)
