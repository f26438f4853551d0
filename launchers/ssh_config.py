"""Where an SSH connection goes: what was asked for, completed from ssh_config, as plain data.

paramiko parses ssh_config but applies nothing of it, and ignores `Include`; both are done here. A difference from
OpenSSH: `Host` lines of a file that is included inside a `Host` block count by their own patterns alone.
"""

from __future__ import annotations

import getpass
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import paramiko

from launchers.errors import SshRefused

DEFAULT_CONFIG = "~/.ssh/config"
_SYSTEM_CONFIG = "/etc/ssh/ssh_config"
_SYSTEM_KNOWN_HOSTS = "/etc/ssh/ssh_known_hosts"
_DEFAULT_KNOWN_HOSTS = "~/.ssh/known_hosts ~/.ssh/known_hosts2"
_DEFAULT_KEYS = ("~/.ssh/id_ed25519", "~/.ssh/id_ecdsa", "~/.ssh/id_rsa")
_DESTINATION = re.compile(r"[^\s@/\\'\"`$;&|<>(){}*?!#,-][^\s@/\\'\"`$;&|<>(){}*?!#,]*")
_HOST_PORT = re.compile(r"[^:]+:\d*")
_USER = re.compile(r"[^\s@:\0-][^\s@:\0]*")
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SETTING = re.compile(r"\s*(\w+)(?:\s*=\s*|\s+)(.*)")
_JUMP = re.compile(r"(?:ssh://)?(?:([^@]+)@)?(?:\[([^\]]+)\]|([^:\[\]/]+))(?::(\d{1,5}))?/?")
_MAX_NESTING = 16
_MAX_HOPS = 8


@dataclass(frozen=True)
class SshTarget:
    """A host to reach over SSH. Raises ValueError with everything that is wrong.

    `destination` is a host name, an address, or an alias of the configuration. What is set here wins over the
    configuration; empty (or port 0) leaves it to the configuration, and then to OpenSSH's own defaults.
    A password is read from the variable `password_env` and offered to the destination only, never to a jump
    host; the passphrase of private keys is read from `passphrase_env`. A link that broke is tried anew for
    `reconnect_s` seconds.
    """

    destination: str
    user: str = ""
    port: int = 0
    identity_file: str = ""
    config_file: str = DEFAULT_CONFIG
    known_hosts: str = ""
    password_env: str = "SPECSWEEP_SSH_PASSWORD"
    passphrase_env: str = "SPECSWEEP_SSH_PASSPHRASE"
    connect_timeout_s: float = 10.0
    reconnect_s: float = 300.0

    def __post_init__(self) -> None:
        if wrong := tuple(_mistakes(self)):
            raise ValueError(f"ssh host {self.destination!r}: {'; '.join(wrong)}")


def _mistakes(target: SshTarget) -> Iterator[str]:
    if not _DESTINATION.fullmatch(target.destination) or _HOST_PORT.fullmatch(target.destination):
        yield "destination must be a host name or an alias (the user goes into `user`, the port into `port`)"
    if target.user and not _USER.fullmatch(target.user):
        yield f"user {target.user!r} cannot be a user name"
    if not 0 <= target.port <= 65535:
        yield f"port {target.port} is not between 1 and 65535 (0: as configured)"
    for path in (target.identity_file, target.config_file, target.known_hosts):
        if re.search(r"[\0\n]", path):
            yield f"{path!r} cannot be a path"
    for name in (target.password_env, target.passphrase_env):
        if not _ENV_NAME.fullmatch(name):
            yield f"{name!r} cannot be the name of an environment variable"
    if not target.connect_timeout_s > 0:
        yield f"connect_timeout_s {target.connect_timeout_s:g} must be above 0"
    if not target.reconnect_s >= 0:
        yield f"reconnect_s {target.reconnect_s:g} must not be negative"


@dataclass(frozen=True)
class Hop:
    """One sshd on the way. `key_name`: its name in known_hosts. `via`: how it is reached, for messages."""

    alias: str
    host: str
    port: int
    user: str
    key_name: str
    identities: tuple[str, ...]
    identities_only: bool
    known_hosts: tuple[str, ...]
    proxy_command: str = ""
    via: str = ""

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"ssh {self.user}@{host}:{self.port}{self.via}"


def route(target: SshTarget) -> tuple[Hop, ...]:
    """Every sshd to pass, the destination last. Raises SshRefused when the configuration makes no sense."""
    try:
        config = paramiko.SSHConfig.from_text("\n".join(_config_lines(target.config_file)))
        return tuple(_hops(config, target, _Wish(target.destination, target.user, target.port)))
    except (paramiko.SSHException, OSError, ValueError, KeyError, RuntimeError) as error:
        # KeyError: names are to be made canonical, and no domains are given; RuntimeError: ~ of a user who is none
        raise SshRefused(f"{target.config_file} cannot be applied to {target.destination}: {error}") from error


@dataclass(frozen=True)
class _Wish:
    """A host as it was asked for. `jumps` stand before it in a chain and beat its own ProxyJump."""

    alias: str
    user: str = ""
    port: int = 0
    jumps: tuple[str, ...] = ()
    nesting: int = 0


def _hops(config: paramiko.SSHConfig, target: SshTarget, wish: _Wish) -> Iterator[Hop]:
    """The way to one sshd, itself last."""
    if wish.nesting > _MAX_HOPS:
        raise ValueError(f"ProxyJump leads in a circle, or through more than {_MAX_HOPS} hosts")
    found = config.lookup(wish.alias)
    via = ""
    if chain := wish.jumps or _own_jumps(found):
        *before, last = chain
        way = tuple(_hops(config, target, _parse_jump(last, tuple(before), wish.nesting + 1)))
        via = f" through {way[-1].user}@{way[-1].host}:{way[-1].port}"
        yield from way
    yield _hop(found, target, wish, via)


def _hop(found: Mapping[str, str], target: SshTarget, wish: _Wish, via: str) -> Hop:
    host, port = found["hostname"], wish.port or int(found.get("port", 22))
    if not 1 <= port <= 65535:
        raise ValueError(f"port {port} of {wish.alias} is not between 1 and 65535")
    command = "" if via else _own_command(found)
    alias = found.get("hostkeyalias", "")
    own_key = target.identity_file if wish.nesting == 0 else ""
    return Hop(
        alias=wish.alias,
        host=host,
        port=port,
        user=wish.user or found.get("user", "") or getpass.getuser(),
        key_name=alias or (host if port == 22 else f"[{host}]:{port}"),
        identities=(str(Path(own_key).expanduser()),) if own_key else _identities(found),
        identities_only=found.get("identitiesonly", "no").lower() == "yes",
        known_hosts=_known_hosts(found, target),
        proxy_command=command,
        via=via or (f" through `{command}`" if command else ""),
    )


def _own_jumps(found: Mapping[str, str]) -> tuple[str, ...]:
    """ProxyJump, unless ProxyCommand stands first: of the two, OpenSSH takes the first that it meets."""
    names = [name for name in found if name in ("proxyjump", "proxycommand")]
    if not names or names[0] != "proxyjump" or found["proxyjump"].lower() == "none":
        return ()
    return tuple(part.strip() for part in found["proxyjump"].split(","))


def _own_command(found: Mapping[str, str]) -> str:
    names = [name for name in found if name in ("proxyjump", "proxycommand")]
    return (found["proxycommand"] or "") if names and names[0] == "proxycommand" else ""


def _parse_jump(text: str, before: tuple[str, ...], nesting: int) -> _Wish:
    parts = _JUMP.fullmatch(text)
    if parts is None:
        raise ValueError(f"ProxyJump {text!r} is not [user@]host[:port]")
    return _Wish(parts[2] or parts[3], parts[1] or "", int(parts[4] or 0), before, nesting)


def _identities(found: Mapping[str, str]) -> tuple[str, ...]:
    """The configured key files, or else the usual ones that exist."""
    named = found.get("identityfile")
    if named is not None:
        return tuple(str(Path(path).expanduser()) for path in named if path.lower() != "none")
    usual = (Path(path).expanduser() for path in _DEFAULT_KEYS)
    return tuple(str(path) for path in usual if path.is_file())


def _known_hosts(found: Mapping[str, str], target: SshTarget) -> tuple[str, ...]:
    named = (
        [target.known_hosts] if target.known_hosts else _words(found, "userknownhostsfile", _DEFAULT_KNOWN_HOSTS)
    )
    shared = _words(found, "globalknownhostsfile", _SYSTEM_KNOWN_HOSTS)
    return tuple(str(Path(path).expanduser()) for path in (*named, *shared) if path.lower() != "none")


def _words(found: Mapping[str, str], name: str, default: str) -> list[str]:
    return shlex.split(found.get(name, default))


def _config_lines(name: str) -> Iterator[str]:
    """The user's file, then (unless it is another than the usual one, as with `ssh -F`) that of the system."""
    yield from _expanded(Path(name).expanduser(), 0)
    if name == DEFAULT_CONFIG:
        yield "Host *"
        yield from _expanded(Path(_SYSTEM_CONFIG), 0)


def _expanded(path: Path, nesting: int) -> Iterator[str]:
    """The lines of a file with those of the files it includes; a file that is missing has none."""
    if nesting > _MAX_NESTING:
        raise ValueError(f"{path} is included more than {_MAX_NESTING} levels deep")
    block = "Host *"
    text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    for line in text.splitlines():
        keyword, rest = parts.groups() if (parts := _SETTING.fullmatch(line)) else ("", "")
        if keyword.lower() == "include":
            for pattern in shlex.split(rest, comments=True):
                for file in _matching(path.parent, pattern):
                    yield from _expanded(file, nesting + 1)
            yield block  # what follows belongs to this file's own block again
            continue
        if keyword.lower() in ("host", "match"):
            block = line
        yield line


def _matching(folder: Path, pattern: str) -> list[Path]:
    whole = folder / Path(pattern).expanduser()
    return sorted(Path(whole.anchor).glob(str(whole.relative_to(whole.anchor))))
