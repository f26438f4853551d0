"""The report in a real browser: complete by itself, readable by everyone, on a phone and in the dark."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

from tests.page.conftest import SCREENSHOTS

pytestmark = pytest.mark.host

Scheme = Literal["light", "dark"]
Pages = Callable[[str], Path]
FIRST = (
    ("eventful", 375, "light"),
    ("trials-40", 375, "dark"),
    ("trials-40", 1280, "light"),
    ("comparison", 1280, "dark"),
    ("nothing", 375, "light"),
    ("wide", 375, "light"),
)
NAMES = ("eventful", "trials-5", "trials-40", "trials-1000", "fleet", "comparison")
SEEN = [
    *FIRST,
    *(
        pytest.param(*view, marks=pytest.mark.slow)
        for view in product(NAMES, (375, 1280), ("light", "dark"))
        if view not in FIRST
    ),
]
"""What people look at: a page, a width, a theme. The first ones are looked at with every change."""

CHECKED = [
    ("nothing", "light"),
    ("eventful", "light"),
    ("trials-40", "dark"),
    pytest.param("eventful", "dark", marks=pytest.mark.slow),
    pytest.param("comparison", "light", marks=pytest.mark.slow),
    pytest.param("comparison", "dark", marks=pytest.mark.slow),
]
MAX_HEIGHT = 6000

_MISPLACED = """() => [...document.querySelectorAll('svg.chart')].flatMap(svg => {
  const view = svg.viewBox.baseVal, found = [];
  const boxes = [...svg.querySelectorAll('text')].map(text => [text.textContent, text.getBBox()]);
  boxes.forEach(([text, box], at) => {
    if (box.x < -1 || box.y < -1 || box.x + box.width > view.width + 1 || box.y + box.height > view.height + 1)
      found.push(`${svg.querySelector('title').textContent}: "${text}" is cut`);
    boxes.slice(at + 1).forEach(([other, its]) => {
      if (box.x < its.x + its.width - 1 && its.x < box.x + box.width - 1 &&
          box.y + 2.5 < its.y + its.height - 2.5 && its.y + 2.5 < box.y + box.height - 2.5)
        found.push(`${svg.querySelector('title').textContent}: "${text}" lies over "${other}"`);
    });
  });
  return found;
})"""
"""Texts of drawings that leave the drawing, or lie over one another (a line's own leading does not count)."""


@contextmanager
def opened(chromium: Browser, file: Path, width: int, scheme: Scheme) -> Iterator[tuple[Page, list[str]]]:
    """The page, and what it did that it must not: asked for anything else, or complained."""
    context = chromium.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page, told = context.new_page(), []
    page.on("console", lambda message: told.append(message.text))
    page.on("pageerror", lambda error: told.append(str(error)))
    page.on(
        "request", lambda request: None if request.url.startswith(f"file://{file}") else told.append(request.url)
    )
    page.goto(f"file://{file}")
    yield page, told
    context.close()


@pytest.mark.parametrize(("name", "width", "scheme"), SEEN)
def test_it_loads_nothing_fits_the_screen_and_no_label_is_lost(
    chromium: Browser, pages: Pages, name: str, width: int, scheme: Scheme
) -> None:
    with opened(chromium, pages(name), width, scheme) as (page, told):
        assert told == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate(_MISPLACED) == []
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        height = min(MAX_HEIGHT, int(page.evaluate("document.documentElement.scrollHeight")))
        page.screenshot(
            path=SCREENSHOTS / f"{name}-{width}-{scheme}.png",
            full_page=True,
            clip={"x": 0, "y": 0, "width": width, "height": height},
        )


@pytest.mark.parametrize(("name", "scheme"), CHECKED)
def test_axe_finds_nothing(chromium: Browser, pages: Pages, name: str, scheme: Scheme) -> None:
    with opened(chromium, pages(name), 1280, scheme) as (page, _):
        page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        violations = Axe().run(page).response["violations"]
        assert [(one["id"], one["impact"], one["nodes"][0]["html"][:200]) for one in violations] == []


def test_tables_that_scroll_can_be_reached_by_the_keyboard(chromium: Browser, pages: Pages) -> None:
    with opened(chromium, pages("trials-40"), 375, "light") as (page, _):
        unreachable = page.evaluate(
            "[...document.querySelectorAll('.scroll, pre')].filter(area => area.scrollWidth > area.clientWidth"
            " && area.tabIndex !== 0).length"
        )
        assert unreachable == 0


def test_a_value_opens_to_the_launches_behind_it(chromium: Browser, pages: Pages) -> None:
    with opened(chromium, pages("trials-40"), 1280, "light") as (page, _):
        row = page.locator("#trial-0")
        assert not row.get_by_text("launch 0 (baseline)").is_visible()
        row.locator("summary").click()
        assert row.get_by_text("launch 0 (baseline)").is_visible()
        assert row.get_by_text("passes").first.is_visible()


def test_on_paper_nothing_is_folded_away(chromium: Browser, pages: Pages) -> None:
    with opened(chromium, pages("eventful"), 1280, "dark") as (page, _):
        asked = page.locator("#raw-data").get_by_text("Every measured request")
        assert not asked.is_visible()
        page.emulate_media(media="print")
        assert asked.is_visible()
        assert not page.locator("nav").is_visible()
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
