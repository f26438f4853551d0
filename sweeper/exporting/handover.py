"""A configuration as it is handed over: the words of its command line, with variables where a person decides."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from sweeper.engines.serving import NODE_ADDRESS, Serving
from sweeper.errors import ConfigError
from sweeper.secrets import MASK, Secrets, is_secret_name
from sweeper.spec import ServerConfig

MAX_NAME = 40
_PLAIN_DEFAULT = re.compile(r"[A-Za-z0-9_.:,/-]+")
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")
_HUB_CACHE = re.compile(r"(.*/models--[^/]+)/snapshots/[0-9a-f]{40}(?:/.*)?", re.DOTALL)


@dataclass(frozen=True)
class Setting:
    """A value that whoever runs the server gives, as the variable `name`. Without a default it must be given.

    `holds`: the flag or variable whose value it is.
    """

    name: str
    default: str = ""
    holds: str = ""

    @property
    def is_secret(self) -> bool:
        """Whether the value must not be written down, but given."""
        return not self.default


Word = str | Setting

HOST_NAME, PORT_NAME, NODE_NAME = "SERVER_HOST", "SERVER_PORT", "NODE_ADDRESS"
RESERVED = frozenset({HOST_NAME, PORT_NAME, NODE_NAME})


@dataclass(frozen=True)
class Handover:
    """What every format is made of. `name`: of files, services and containers (letters, digits, dashes).

    `about`: what the configuration rests on, as lines of text. `flags` and `env` have no secret in them.
    `gpus`: the indices of the GPUs that it was measured on, where these were some of the host's; else empty.
    `start_s`: how long its start took; None when unknown.
    """

    name: str
    about: tuple[str, ...]
    serving: Serving
    config: ServerConfig
    base: ServerConfig
    flags: Mapping[str, tuple[Word, ...]]
    env: Mapping[str, Word]
    gpus: tuple[int, ...] = ()
    start_s: float | None = None
    engine: str = ""
    model_name: str = ""
    is_baseline: bool = False
    host: str = ""

    @property
    def num_ranks(self) -> int:
        """How many hosts the server spans."""
        return len(self.serving.ranks)

    @property
    def host_setting(self) -> Setting:
        """The address to listen at: nobody else's business unless a person says so."""
        return Setting(HOST_NAME, "127.0.0.1")

    @property
    def port_setting(self) -> Setting:
        """The port to listen at."""
        return Setting(PORT_NAME, str(self.serving.port))

    @cached_property
    def secrets(self) -> tuple[Setting, ...]:
        """What must be given, each once."""
        words = (*(word for group in self.flags.values() for word in group), *self.env.values())
        return tuple(dict.fromkeys(word for word in words if isinstance(word, Setting) and word.is_secret))

    @cached_property
    def paths(self) -> tuple[str, ...]:
        """Absolute paths among the values: what a container must see. Of a hub's cache all of the model."""
        words = (*self.serving.model, *(word for group in self.flags.values() for word in group))
        found = (word for word in words if isinstance(word, str) and word.startswith("/") and word != "/")
        whole = (match[1] if (match := _HUB_CACHE.fullmatch(path)) else path for path in found)
        return tuple(dict.fromkeys(whole))

    def arguments(self, host: Word, port: Word, rank: int = 0) -> list[tuple[Word, ...]]:
        """The command line behind the program, in groups of words that belong together."""
        serving = self.serving
        address = node_address(serving.node_address)
        nodes = [address if word == NODE_ADDRESS else word for word in serving.ranks[rank]]
        pairs = list(zip(nodes[::2], nodes[1::2], strict=True))
        return [serving.model, *self.flags.values(), ("--host", host), ("--port", port), *pairs]

    def suffix(self, rank: int) -> str:
        """What tells the files of the ranks apart; empty for a server on one host."""
        return f"-rank-{rank}" if self.num_ranks > 1 else ""


def node_address(measured: str) -> Word:
    """Where the ranks meet: the measured address unless a person says otherwise."""
    return Setting(NODE_NAME, measured) if _PLAIN_DEFAULT.fullmatch(measured) else measured


def without_secrets(
    flags: Mapping[str, tuple[str, ...]], env: Mapping[str, str], secrets: Secrets
) -> tuple[dict[str, tuple[Word, ...]], dict[str, Word]]:
    """The same with a Setting in the place of every value that is a secret, or that one is part of.

    The study itself holds a mask in its place.
    """

    def told(name: str, value: str) -> Word:
        if not is_secret_name(name) and MASK not in value and secrets.hide(value) == value:
            return value
        return Setting("SERVER_" + re.sub(r"[^A-Z0-9]", "_", name.upper()), holds=name)

    bare: dict[str, tuple[Word, ...]] = {
        name: (words[0], *(told(name, word) for word in words[1:])) for name, words in flags.items()
    }
    hidden: dict[str, Word] = {
        name: Setting(name, holds=name) if isinstance(told(name, value), Setting) else value
        for name, value in env.items()
    }
    return bare, hidden


def serving_without_secrets(handover: Handover) -> Serving:
    """The serving whose flags and environment are all text: those with a secret are left out."""
    flags = {
        name: texts
        for name, words in handover.flags.items()
        if len(texts := tuple(word for word in words if isinstance(word, str))) == len(words)
    }
    env = {name: word for name, word in handover.env.items() if isinstance(word, str)}
    return replace(handover.serving, flags=flags, env=env)


def require_writable(handover: Handover) -> None:
    """Raises ConfigError for what no shell, unit file or manifest can carry: the study's text is only data."""
    serving = handover.serving
    named: list[tuple[str, str]] = [
        *((f"flags.{name}", " ".join(map(str, words))) for name, words in serving.flags.items()),
        *((f"env.{name}", value) for name, value in serving.env.items()),
        ("model.path", serving.model[-1]),
        ("engine.command", " ".join(serving.command)),
    ]
    mistakes = [
        f"{path}: holds the character U+{ord(found[0]):04X}, which files for other programs cannot carry"
        for path, value in named
        if (found := _CONTROL.search(value))
    ]
    mistakes += [f"env: {name[:80]!r} is not a variable's name" for name in serving.env if not is_env_name(name)]
    mistakes += [f"env.{name}: is a name that the files use themselves" for name in RESERVED & serving.env.keys()]
    mistakes += _odd_names(serving)
    if mistakes:
        raise ConfigError(mistakes)


def _odd_names(serving: Serving) -> Iterator[str]:
    program = serving.command[0] if serving.command else ""
    if not program or "=" in program or program.startswith("-"):
        yield f"engine.command: {program[:80]!r} cannot be run through env; give the program a plain name"
    for name in serving.flags:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", name):
            yield f"flags: {name[:80]!r} is not a flag's name"


def is_env_name(name: str) -> bool:
    """Whether a shell can set a variable of this name."""
    return bool(_ENV_NAME.fullmatch(name))


def plain_name(text: str) -> str:
    """Letters, digits and single dashes, in lower case, of which a service's name can be made."""
    words = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    return words[:MAX_NAME].rstrip("-") or "study"
