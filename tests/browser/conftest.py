"""MLflow's page on the night of 40 trials, in the system's Chromium."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from sweeper.tracking import Tracker
from sweeper.tracking.place import ui_argv, ui_env
from tests.browser.night import night
from tests.tracking.clocks import ManualClock
from tests.tracking.conftest import answers, free_port, spec_for, wait_until

SCREENSHOTS = Path("build/screenshots")
WIDTH, HEIGHT = 1600, 2000
PATIENCE_MS = 60_000


@dataclass
class Seen:
    """A page that is looked at. `errors`: exceptions of its scripts; `console`: what its console calls errors."""

    page: Page
    address: str
    errors: list[str] = field(default_factory=list)
    console: list[str] = field(default_factory=list)

    def open(self, more: str = "") -> Page:
        """The run list as specsweep gives its address, from a blank page."""
        self.page.goto("about:blank")
        self.page.goto(self.address + more)
        return self.page

    def shot(self, name: str) -> None:
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=SCREENSHOTS / f"{name}.png")


@pytest.fixture(scope="session")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where the night's run list is: synced by the tracker, served as `specsweep ui` serves it."""
    folder = tmp_path_factory.mktemp("mlflow")
    spec = spec_for(f"sqlite:///{folder}/mlflow.db", folder)
    tracker, port = Tracker(spec, ManualClock()), free_port()
    report = tracker.sync(night())
    assert (report.num_written, report.num_behind, report.error) == (40, 0, "")
    with (folder / "log").open("wb") as log:
        env = {**os.environ, **ui_env(spec)}
        argv = ui_argv(spec, "127.0.0.1", port)
        server = subprocess.Popen(argv, env=env, stdout=log, stderr=log, start_new_session=True)
    try:
        wait_until(lambda: answers(f"http://127.0.0.1:{port}/health", server, folder / "log"), 120)
        yield tracker.view_url(f"http://127.0.0.1:{port}")
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()


@pytest.fixture(scope="session")
def seen(chromium: Browser, address: str) -> Iterator[Seen]:
    page = chromium.new_page(viewport={"width": WIDTH, "height": HEIGHT})
    page.set_default_timeout(PATIENCE_MS)
    found = Seen(page, address)
    page.on("pageerror", lambda error: found.errors.append(str(error)))
    page.on("console", lambda message: found.console.append(message.text) if message.type == "error" else None)
    yield found
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    (SCREENSHOTS / "console.txt").write_text("\n".join(found.console) + "\n", encoding="utf-8")
