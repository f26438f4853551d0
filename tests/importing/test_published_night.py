"""The published night, imported: what can be said of six figures, and what cannot."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from analysis.diagnose import Finding, findings
from sweeper.engines.registry import simplicity_of
from sweeper.importing.importer import Options
from tests.analysis.studies import markdown
from tests.importing.night import DATA, bring, stored, trials

pytestmark = pytest.mark.study


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the imported study."""
    folder = tmp_path_factory.mktemp("night")
    bring(folder, DATA / "six_figures.csv", options=Options())
    return folder


@pytest.fixture(scope="module")
def told(night: Path) -> dict[str, Finding]:
    return {finding.rule: finding for finding in findings(trials(night), "output_throughput", "sglang")}


def test_the_report_says_no_gain(night: Path) -> None:
    report = markdown(stored(night), simplicity_of("sglang"))
    assert "Run the baseline: no gain from speculation has been shown." in report
    assert "did 82.3 in its single launch against 90.0 tok/s of the baseline" in report
    for words in ("Break-even at accept", "CUDA graphs: +41 %", "3 against 2 steps cannot be told apart"):
        assert words in report.replace("&#95;", "_")


def test_the_break_even_has_a_range_and_the_drafter_is_the_limit(told: dict[str, Finding]) -> None:
    needed = re.search(r"accept_len ([\d.]+) \(([\d.]+) to ([\d.]+)\).*has 2.00 to 2.40", told["break_even"].title)
    assert needed is not None
    value, low, high = (float(part) for part in needed.groups())
    assert value == pytest.approx(2.2 * 90 / 82.3, abs=0.01)
    assert low < 2.0 * 90 / 82.3 < 2.4 * 90 / 82.3 < high
    assert "draft_limit" in told
    assert {number for one in told["break_even"].evidence for number in one.trials} == {0, 2, 4}


def test_what_changed_beside_cuda_graphs_is_said(told: dict[str, Finding]) -> None:
    finding = told["cuda_graphs"]
    assert finding.title.startswith("CUDA graphs: +41 %")
    assert "speculative_num_draft_tokens (16 against not given) may have changed as well" in finding.title
    assert finding.evidence[0].trials == (1, 3)
    assert "launch_bound" not in told


def test_two_and_three_steps_are_not_told_apart(told: dict[str, Finding]) -> None:
    assert told["num_steps"].title.startswith(
        "3 against 2 steps cannot be told apart from what was recorded: +0.7 %"
    )
    assert "choose the simplest, trial 5" in told["equals"].title


def test_the_assumption_behind_the_intervals_is_said(told: dict[str, Finding]) -> None:
    assert "1.5 % is assumed, not measured" in told["unknown_noise"].text
    assert "(9 % here)" in told["unknown_noise"].text


def test_the_mean_over_prompts_is_another_number(night: Path) -> None:
    launch = trials(night)[5].launches[0]
    assert launch.metrics["output_throughput"] == 81.7
    assert launch.metrics["mean_prompt_throughput"] == pytest.approx(82.16)
    assert list(launch.prompt_throughputs.values()) == [77.5, 96.5, 79.4, 77.9, 79.5]
