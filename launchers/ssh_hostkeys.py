"""Whether a host is the one it claims to be: its key against known_hosts. Nothing unknown is ever accepted."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import paramiko
from paramiko.pkey import UnknownKeyType

from launchers.errors import SshRefused
from launchers.ssh_config import Hop


@dataclass(frozen=True)
class KnownKey:
    """One line of known_hosts that is about the host; `where` is for messages."""

    key: paramiko.PKey
    is_revoked: bool
    where: str


def known_keys(hop: Hop) -> tuple[KnownKey, ...]:
    """Every key that the files know for this host. Lines that cannot be read are passed over, as in OpenSSH."""
    return tuple(known for name in hop.known_hosts for known in _read(Path(name), hop.key_name))


def prefer_known(transport: paramiko.Transport, known: tuple[KnownKey, ...]) -> None:
    """Ask the host for a key of a type that is known; it would otherwise pick one that cannot be compared."""
    names = {entry.key.get_name() for entry in known}
    if "ssh-rsa" in names:  # the same key under newer signatures
        names |= {"rsa-sha2-512", "rsa-sha2-256"}
    options = transport.get_security_options()
    options.key_types = sorted(options.key_types, key=lambda name: name not in names)


def check_host_key(hop: Hop, offered: paramiko.PKey, known: tuple[KnownKey, ...]) -> None:
    """Return when the key is known and good. Raises SshRefused with what was offered and what to do."""
    shown = f"{offered.get_name()} {offered.fingerprint}"
    if any(entry.is_revoked and entry.key == offered for entry in known):
        raise SshRefused(f"{hop}: the host offered a key that known_hosts marks as revoked: {shown}")
    good = [entry for entry in known if not entry.is_revoked]
    if any(entry.key == offered for entry in good):
        return
    if good:
        raise SshRefused(
            f"{hop}: THE HOST KEY HAS CHANGED. {good[0].where} has {good[0].key.get_name()} "
            f"{good[0].key.fingerprint}, the host offered {shown}. Either the host was set up anew, or somebody "
            "answers in its place; nothing was sent to it",
            "Ask whoever runs the host which fingerprint is right, and only then take out the old key: "
            f"ssh-keygen -R {shlex.quote(hop.key_name)} -f {_file(hop)}",
        )
    raise SshRefused(
        f"{hop}: the host key is unknown: {shown}",
        f"Compare the fingerprint with the host's own (there: ssh-keygen -lf "
        f"/etc/ssh/ssh_host_{_kind(offered)}_key.pub). If it is the same, accept the key with: "
        f"{_accepting(hop, offered)}",
    )


def _kind(key: paramiko.PKey) -> str:
    """The type as it stands in the names of sshd's own key files, and as ssh-keyscan takes it."""
    return next((kind for kind in ("ed25519", "ecdsa") if kind in key.get_name()), "rsa")


def _file(hop: Hop) -> str:
    return shlex.quote(hop.known_hosts[0]) if hop.known_hosts else "FILE"


def _accepting(hop: Hop, offered: paramiko.PKey) -> str:
    """The command that adds the host's key to the file that is read here."""
    if hop.via or hop.key_name not in (hop.host, f"[{hop.host}]:{hop.port}"):
        return f"ssh {hop.alias}  (once, by hand)"  # ssh-keyscan does not get there, or writes another name
    return f"ssh-keyscan -t {_kind(offered)} -p {hop.port} {hop.host} >> {_file(hop)}"


def _read(path: Path, name: str) -> Iterator[KnownKey]:
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        return
    except OSError as error:
        raise SshRefused(f"the known hosts in {path} cannot be read: {error}") from error
    for number, line in enumerate(lines, 1):
        words = line.split()
        marker = words.pop(0) if words and words[0].startswith("@") else ""
        if len(words) < 3 or words[0].startswith("#") or marker not in ("", "@revoked"):
            continue  # @cert-authority has no effect: paramiko does not check what an authority signed
        if _is_named(name, words[0]) and (key := _parse(words[1], words[2])) is not None:
            yield KnownKey(key, bool(marker), f"line {number} of {path}")


def _parse(kind: str, text: str) -> paramiko.PKey | None:
    try:
        return paramiko.PKey.from_type_string(kind, base64.b64decode(text))
    except (paramiko.SSHException, UnknownKeyType, ValueError):
        return None


def _is_named(name: str, patterns: str) -> bool:
    """Whether the first word of a line is about this host: names, wildcards and negations, or a hash."""
    if patterns.startswith("|1|"):
        _, _, salt, digest = [*patterns.split("|"), "", ""][:4]
        try:
            made = hmac.new(base64.b64decode(salt), name.encode(), hashlib.sha1).digest()
            return hmac.compare_digest(made, base64.b64decode(digest))
        except binascii.Error:
            return False
    parts = patterns.split(",")
    return any(_matches(part, name) for part in parts) and not any(
        part.startswith("!") and _matches(part[1:], name) for part in parts
    )


def _matches(pattern: str, name: str) -> bool:
    """Only * and ? are special: the brackets of [host]:port are not."""
    return (
        re.fullmatch(re.escape(pattern).replace(r"\*", ".*").replace(r"\?", "."), name, re.IGNORECASE) is not None
    )
