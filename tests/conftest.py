"""Guards: a test that is not marked must not start processes, open connections or sleep."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator

import pytest
from hypothesis import settings
from playwright.sync_api import Browser, sync_playwright

from sweeper.known_secrets import KNOWN

settings.register_profile("specsweep", deadline=None)  # tests never judge by the clock
settings.load_profile("specsweep")

# Started in the background or under nohup, Python finds these ignored, and so would every process of a test.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

REAL = {"host", "service", "engine", "slow"}


@pytest.fixture(autouse=True)
def _guarded(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if REAL.isdisjoint(mark.name for mark in request.node.iter_markers()):

        def forbidden(*_: object, **__: object) -> None:
            raise AssertionError(f"a unit test may not do this; mark it with one of {sorted(REAL)}")

        monkeypatch.setattr(socket.socket, "connect", forbidden)
        monkeypatch.setattr(subprocess.Popen, "__init__", forbidden)
        monkeypatch.setattr(time, "sleep", forbidden)


@pytest.fixture(autouse=True)
def _own_places(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test touches the user's own state; the model cache is shared, since making it takes seconds."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))


@pytest.fixture(autouse=True)
def _no_secrets_of_other_tests() -> None:
    """What one test planted as a secret is plain text to the next."""
    KNOWN.forget()


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """The system's Chromium: one for all tests, since a process has one connection to browsers."""
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        pytest.skip("there is no Chromium; on Debian: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()
