"""The stand-in server, and the client sent to this machine."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from launchers.base import Shell
from launchers.host import HostLauncher, HostSettings
from launchers.shell import LocalShell
from sweeper.engines.base import HttpRequest
from sweeper.measuring.host_load import HostLoad
from tests.host_load.streaming import Streaming
from tests.launchers.conftest import until, with_token


@pytest.fixture
def server() -> Iterator[Streaming]:
    with Streaming() as running:
        yield running


@pytest.fixture
def token() -> Iterator[str]:
    """A word for command lines: no process that carries it may be left after the test."""
    token = f"token-{secrets.token_hex(8)}"
    yield token
    until(lambda: with_token(token) == [], "no process of the test is left")


@pytest.fixture
def state_dir(tmp_path: Path) -> str:
    return str(tmp_path / "a state")


@pytest.fixture
def load(server: Streaming, token: str, state_dir: str) -> HostLoad:
    """A load from this machine to the stand-in server."""
    return load_of(LocalShell("here"), python(token), server.port, state_dir)


def load_of(shell: Shell, python: tuple[str, ...], port: int, state_dir: str) -> HostLoad:
    """A load from the host behind `shell` to a port of its own."""
    launcher = HostLauncher(shell, HostSettings("here", state_dir))
    return HostLoad(launcher, python, "127.0.0.1", port, state_dir)


def python(token: str) -> tuple[str, ...]:
    """This Python, as a process that carries the token."""
    return ("env", f"TOKEN={token}", sys.executable)


def lines(*texts: str) -> HttpRequest:
    """A request that is answered with these lines."""
    return HttpRequest("POST", "/lines", {"lines": list(texts)})


def generate(count: int) -> HttpRequest:
    """A request that is answered like SGLang does, with so many tokens."""
    return HttpRequest("POST", "/generate", {"sampling_params": {"max_new_tokens": count}})


def going(path: str) -> HttpRequest:
    """A request to another path of the stand-in server."""
    return HttpRequest("POST", path, {})
