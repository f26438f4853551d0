"""Planted secrets, each of its own kind, and the search for them in everything that a sweep wrote."""

from __future__ import annotations

from pathlib import Path
from secrets import token_hex
from urllib.parse import quote

TOKEN = "hf_PLANTEDtokenPLANTED1234"
PASSWORD = "pa55/wörd@planted"
PROXY_PASSWORD = "proxy-planted-77"
INHERITED = "inherited-planted-88"
PASSPHRASE = "passphrase planted 99"
CLOUD_KEY = "cloud/planted+key=="
COMMAND_KEY = f"command-planted-{token_hex(4)}"  # it stands on command lines, which other runs of tests see

ALL = (TOKEN, PASSWORD, PROXY_PASSWORD, INHERITED, PASSPHRASE, CLOUD_KEY, COMMAND_KEY)


def spellings(secret: str) -> set[bytes]:
    """The forms in which a secret may be written: as it is, in an address, in JSON, in a Python literal."""
    return {
        form.encode()
        for form in (secret, quote(secret, safe=""), quote(secret), repr(secret)[1:-1], ascii(secret)[1:-1])
    }


def found_in(content: bytes) -> list[str]:
    """The planted secrets that stand in `content`."""
    return [secret for secret in ALL if any(form in content for form in spellings(secret))]


def found_below(folder: Path) -> dict[str, list[str]]:
    """File to the planted secrets in it or in its name, for everything below a folder."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    seen = {str(path): found_in(str(path).encode() + path.read_bytes()) for path in files}
    return {path: secrets for path, secrets in seen.items() if secrets}
