"""The system's Chromium, and pages of studies of every size."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from analysis.blocks import Document
from analysis.comparing.document import comparison
from analysis.diagnosis import findings_of
from analysis.page.html import html
from analysis.reading import Reading, reading_of
from analysis.report import document
from sweeper.records import TrialRecord
from sweeper.spec import ServerConfig
from tests.analysis.builders import measured, new_night, ngram, plain_config, simplicity, trial, won_night
from tests.analysis.eventful import eventful_night
from tests.analysis.large import fleet_night, large_night, stored

SCREENSHOTS = Path(__file__).parents[2] / "build" / "screenshots"


def explained(reading: Reading) -> Document:
    """As `specsweep report` writes it, with the reasons."""
    return document(reading, findings_of(reading))


def night(num_trials: int, name: str = "night") -> Reading:
    return reading_of(stored(large_night(num_trials), name), simplicity)


FLEET = ("gpu-node-a17", "gpu2", "gpu3")

DOCUMENTS: dict[str, Callable[[], Document]] = {
    "nothing": lambda: explained(reading_of(stored([]), simplicity)),
    "won": lambda: explained(reading_of(stored(won_night()), simplicity)),
    "eventful": lambda: explained(reading_of(stored(eventful_night()), simplicity)),
    "trials-5": lambda: explained(night(5)),
    "trials-40": lambda: explained(night(40)),
    "trials-1000": lambda: explained(night(1000)),
    "fleet": lambda: explained(reading_of(stored(fleet_night(30, FLEET)), simplicity)),
    "wide": lambda: explained(reading_of(stored(wide_night()), simplicity)),
    "comparison": lambda: comparison([night(40, "before the WHOLE HOST was reinstalled"), night(60, "after")]),
}
"""By the name under which screenshots are kept."""


def wide_night() -> list[TrialRecord]:
    """Names as wide as they come, of flags, values and variables."""
    host = new_night()
    configs = [plain_config()]
    for number in range(1, 12):
        flags = {
            **ngram(3, number).flags,
            "WWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWW": f"{'MW' * 40}{number % 3}",
        }
        env = {f"NCCL_{'MIN_NCHANNELS_' * 3}{n}": f"{number % (n + 2)}" * 9 for n in range(3)}
        configs.append(ServerConfig(flags=flags, env=env))
    return [trial(n, config, [measured(host, 40.0 + n)]) for n, config in enumerate(configs)]


@cache
def page_of(name: str) -> str:
    return html(DOCUMENTS[name]())


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Gives a page's file, made when it is first asked for."""
    folder = tmp_path_factory.mktemp("pages")

    def file_of(name: str) -> Path:
        file = folder / f"{name}.html"
        file.write_text(page_of(name), encoding="utf-8")
        return file

    return file_of
