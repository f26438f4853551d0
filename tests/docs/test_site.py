"""The site as a reader's browser sees it: complete by itself, readable by everyone, nothing outside is asked."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

from tests.docs.pages import DOCS, ROOT

pytestmark = [pytest.mark.host, pytest.mark.timeout(300)]

SHOWN = ("index", "quick_start", "troubleshooting", "reference/configuration", "mlflow", "recipes")
SERIOUS = ("serious", "critical")


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` builds it: a warning fails."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


@pytest.fixture
def asked(chromium: Browser) -> Iterator[tuple[Page, list[str]]]:
    """A page of the browser, and what it asked for that is no file, or failed."""
    context = chromium.new_context(viewport={"width": 1280, "height": 900})
    page, told = context.new_page(), []
    page.on("request", lambda it: None if it.url.startswith(("file:", "data:")) else told.append(it.url))
    page.on("pageerror", lambda error: told.append(str(error)))
    page.on("requestfailed", lambda it: told.append(f"{it.url}: {it.failure}"))
    yield page, told
    context.close()


def test_every_page_is_there_and_names_nothing_outside_that_it_would_load(site: Path) -> None:
    for file in DOCS.rglob("*.md"):
        page = (site / file.relative_to(DOCS)).with_suffix(".html")
        text = page.read_text(encoding="utf-8")
        for loaded in (
            'src="http',
            'rel="stylesheet" href="http',
            "fonts.googleapis",
            "unpkg.com",
            'rel="preconnect"',
        ):
            assert loaded not in text, f"{page.name} loads {loaded}"


@pytest.mark.parametrize("name", SHOWN)
def test_a_page_asks_the_network_for_nothing(site: Path, asked: tuple[Page, list[str]], name: str) -> None:
    page, told = asked
    page.goto(f"file://{site}/{name}.html")
    page.wait_for_load_state("networkidle")
    assert [line for line in told if "search_index" not in line] == []  # a browser reads no index from a folder


@pytest.mark.parametrize("name", ["index", "troubleshooting", "reference/configuration"])
def test_axe_finds_nothing_serious(site: Path, chromium: Browser, name: str) -> None:
    context = chromium.new_context(reduced_motion="reduce")
    page = context.new_page()
    page.goto(f"file://{site}/{name}.html")
    found = [one for one in Axe().run(page).response["violations"] if one["impact"] in SERIOUS]
    context.close()
    assert [(one["id"], one["nodes"][0]["html"][:160]) for one in found] == []
