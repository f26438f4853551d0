"""What a person sees in MLflow the morning after: asserted through the page, in a real browser."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import PATIENCE_MS, Seen
from tests.browser.night import BASELINE_RATE, NUM_TRIALS, OUT_OF_MEMORY, night

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

expect.set_options(timeout=PATIENCE_MS)
MEASURED = [record for record in night().records if record.measured]
BEST = max(MEASURED, key=lambda record: record.mean("output_throughput") or 0.0)
BLACK = "rgb(0, 0, 0)"


def names(page: Page) -> list[str]:
    """The names in the run list, as they stand, once all are there."""
    links = page.locator("a", has_text=re.compile(r"^trial \d+ "))
    expect(links).to_have_count(NUM_TRIALS)
    rows = links.evaluate_all("found => found.map(a => [a.getBoundingClientRect().top, a.textContent])")
    return [text for _, text in sorted(rows)]


def cells(page: Page, column: str) -> list[str]:
    """The texts of a column, from the top."""
    found = page.locator(f'.ag-cell[col-id*="{column}"]')
    expect(found.first).to_be_visible()
    rows = found.evaluate_all("found => found.map(a => [a.getBoundingClientRect().top, a.textContent.trim()])")
    return [text for _, text in sorted(rows)]


def test_the_list_has_the_columns_that_matter_best_first_and_the_baseline_in_it(seen: Seen) -> None:
    page = seen.open()
    found = names(page)
    heads = [text.strip() for text in page.get_by_role("columnheader").all_inner_texts()]
    for wanted in ("output_throughput", "speedup", "accept_len"):
        assert wanted in heads, heads
    assert found[0].startswith(f"trial {BEST.number} · EAGLE3")
    rates = [float(text) for text in cells(page, "`output_throughput`") if text not in ("", "-")]
    assert rates == sorted(rates, reverse=True)
    assert len(rates) == len(MEASURED)
    assert rates[0] == pytest.approx(BEST.mean("output_throughput"), abs=0.01)
    baseline = found.index("trial 0 · baseline")
    assert float(cells(page, "`speedup`")[baseline]) == 1.0
    assert rates[baseline] == pytest.approx(BASELINE_RATE * 1.002, abs=0.01)
    expect(page.get_by_text("Winner: trial 4").first).to_be_visible()
    seen.shot("mlflow-list")


def test_the_charts_show_every_measured_trial_and_the_baseline_in_black(seen: Seen) -> None:
    page = seen.open("&compareRunsMode=CHART")
    bars = page.locator(".barlayer .point path")
    expect(bars).to_have_count(len(MEASURED))
    colors = bars.evaluate_all("found => found.map(bar => getComputedStyle(bar).fill)")
    assert colors.count(BLACK) == 1
    assert len(set(colors)) == 3  # the baseline, faster, slower
    expect(page.get_by_text("Parallel Coordinates")).to_be_visible()
    axes = page.locator(".parcoords .dimension")
    expect(axes).to_have_count(7)  # six parameters and the objective
    expect(axes.last).to_contain_text("140")  # so far up: the best trial is among the lines
    page.locator(".scatterlayer").scroll_into_view_if_needed()
    drafting = [record for record in MEASURED if not record.is_baseline]
    expect(page.locator(".scatterlayer .point")).to_have_count(len(drafting))
    for title in ("accept_len", "output_throughput"):
        expect(page.locator(".infolayer text", has_text=title).first).to_be_visible()
    seen.shot("mlflow-charts")


def test_chosen_trials_are_compared_side_by_side(seen: Seen) -> None:
    page = seen.open()
    found = names(page)
    boxes = page.locator(".ag-row .ag-selection-checkbox input")
    order = boxes.evaluate_all("found => found.map((a, i) => [a.getBoundingClientRect().top, i])")
    indices = [index for _, index in sorted(order)]
    for place in (0, found.index("trial 0 · baseline")):
        boxes.nth(indices[place]).check(force=True)
    page.get_by_role("button", name="Compare").first.click()
    expect(page.get_by_text("Comparing 2 Runs")).to_be_visible()
    for text in ("trial 0 · baseline", f"trial {BEST.number} · EAGLE3", "speculative_num_steps", "speedup"):
        expect(page.get_by_text(text).first).to_be_attached()
    seen.shot("mlflow-compare")


def test_a_run_explains_itself_and_its_files_open(seen: Seen) -> None:
    page = seen.open()
    names(page)
    page.get_by_role("link", name=re.compile(rf"^trial {BEST.number} ")).first.click()
    expect(page.get_by_text("times the baseline's 90.2").first).to_be_visible()
    expect(page.get_by_text("which alone is no proof").first).to_be_visible()
    expect(page.get_by_text("specsweep.state").first).to_be_visible()
    seen.shot("mlflow-run")
    page.get_by_role("tab", name="Artifacts").click()
    opened = {
        "command.txt": "llama-server --port 8080",
        "record.json": '"trial_number"',
        "server.log": "log of trial 4",
    }
    for name, content in opened.items():
        page.get_by_text(name).first.click()
        expect(page.get_by_text(content).first).to_be_visible()
    page.get_by_text("requests.json").first.click()
    for column in ("prompt_id", "num_output_tokens", "ttft_ms"):
        expect(page.get_by_text(column, exact=True).first).to_be_visible()
    seen.shot("mlflow-requests")


def test_a_failed_run_says_why(seen: Seen) -> None:
    page = seen.open()
    names(page)
    page.get_by_role("link", name=re.compile(rf"^trial {OUT_OF_MEMORY[0]} ")).first.click()
    for text in ("the server ran out of memory", "alloc failed: 9 GiB"):
        expect(page.get_by_text(text).first).to_be_visible()
    seen.shot("mlflow-failed")


def test_no_script_of_the_page_has_failed(seen: Seen) -> None:
    assert seen.errors == []
