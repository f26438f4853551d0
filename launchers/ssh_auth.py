"""Logs in: keys of the agent and of files, then a password, and one message that tells all that was tried."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import paramiko
from paramiko.pkey import UnknownKeyType

from launchers.errors import HostLost, SshRefused
from launchers.ssh_config import Hop

_NO_ANSWER = "Authentication timeout."  # how paramiko words it; its class is that of a rejected key
_MAX_AUTH_TRIES = 6  # sshd's default: with the last of them it hangs up


@dataclass(frozen=True)
class Secrets:
    """What may be used to log in beside keys; never in a repr. `*_env` name the variables for messages."""

    password_env: str
    passphrase_env: str
    may_use_password: bool

    def password(self) -> str | None:
        """The password, when there is one and it may be used."""
        return os.environ.get(self.password_env) or None if self.may_use_password else None

    def passphrase(self) -> str | None:
        """The passphrase of private keys."""
        return os.environ.get(self.passphrase_env) or None


def log_in(transport: paramiko.Transport, hop: Hop, secrets: Secrets) -> None:
    """Try keys, then the password, until the host is satisfied.

    Raises SshRefused with everything that was tried, HostLost when the connection broke or fell silent meanwhile.
    """
    tried: list[str] = []
    num_rejected = 0
    for label, key in _keys(hop, secrets, tried):
        outcome = _offer(transport, hop, key)
        if outcome == "":
            return
        tried.append(f"{label}: {outcome}")
        num_rejected += 1
        if outcome == "accepted, and a password is wanted as well" or not transport.is_active():
            break
    password = secrets.password()
    if transport.is_active() and password is not None:
        if _offer(transport, hop, password) == "":
            return
        tried.append(f"the password in {secrets.password_env}: rejected")
    what = "; ".join(tried) or "no key was found and no password is set"
    if not transport.is_active() and num_rejected < _MAX_AUTH_TRIES - 1:
        raise HostLost(f"{hop}: the connection broke during the login ({what})")
    raise SshRefused(
        f"{hop}: the login was refused. Tried: {what}",
        "Name the right key (IdentityFile, with IdentitiesOnly yes when there are many), load it into the agent, "
        f"or put the password into {secrets.password_env}",
    )


def _offer(transport: paramiko.Transport, hop: Hop, proof: paramiko.PKey | str) -> str:
    """Try one key or password: "" when the login is complete, else how it ended. Raises HostLost for no answer."""
    try:
        if isinstance(proof, str):
            more = transport.auth_password(hop.user, proof)  # also answers a keyboard-interactive prompt with it
        else:
            more = transport.auth_publickey(hop.user, proof)
    except paramiko.BadAuthenticationType as error:
        return f"not a way to log in there (it takes {', '.join(error.allowed_types)})"
    except (paramiko.SSHException, EOFError, OSError) as error:
        if str(error) == _NO_ANSWER:
            raise HostLost(f"{hop}: no answer to the login within {transport.auth_timeout:g} s") from error
        return "rejected" if isinstance(error, paramiko.AuthenticationException) else f"failed ({error})"
    return "accepted, and a password is wanted as well" if more else ""


def _keys(hop: Hop, secrets: Secrets, notes: list[str]) -> Iterator[tuple[str, paramiko.PKey]]:
    """Keys in OpenSSH's order: those of the agent that are named, files, the agent's others.

    What is wrong with a file is added to `notes`.
    """
    with closing(paramiko.Agent()) as agent:
        offered: set[bytes] = set()
        held = {key.asbytes(): key for key in agent.get_keys()}
        named = [blob for path in hop.identities if (blob := _public_blob(path)) in held]
        for blob in named:
            offered.add(blob)
            yield "a named key of the agent", held[blob]
        for path in hop.identities:
            if _public_blob(path) in offered:
                continue
            key = _load(path, secrets, notes)
            if key is not None and key.asbytes() not in offered:
                offered.add(key.asbytes())
                yield path, key
        for blob, agent_key in held.items():
            if blob not in offered and not hop.identities_only:
                yield f"key {agent_key.fingerprint} of the agent", agent_key


def _load(path: str, secrets: Secrets, notes: list[str]) -> paramiko.PKey | None:
    """The private key in a file, with its certificate if it has one; None (and a note) when it cannot be used."""
    passphrase = secrets.passphrase()
    try:
        try:
            return paramiko.PKey.from_path(path)
        except TypeError:  # cryptography's way to say that there must be a passphrase
            if passphrase is None:
                notes.append(f"{path}: protected by a passphrase; put that into {secrets.passphrase_env}")
                return None
            # The stubs and the documentation say str; what works (paramiko 5.1, cryptography) is bytes.
            return paramiko.PKey.from_path(path, cast(str, passphrase.encode()))
    except FileNotFoundError:
        notes.append(f"{path}: no such file")
    except (ValueError, TypeError, paramiko.SSHException, UnknownKeyType, OSError) as error:
        hint = f"; is the passphrase in {secrets.passphrase_env} right?" if passphrase else ""
        notes.append(f"{path}: cannot be read ({error}{hint})")
    return None


def _public_blob(path: str) -> bytes | None:
    """The public half that lies beside a private key, by which the agent's copy of it is recognised."""
    try:
        words = Path(f"{path}.pub").read_text(encoding="utf-8").split()
        return base64.b64decode(words[1])
    except (OSError, ValueError, IndexError):
        return None
