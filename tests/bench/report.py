"""How long a report takes, and how large it is.

`make bench` builds nights of 1,000 and 10,000 trials and times each step from their records: the verdict and what
is read (`read`), the sections and their drawings (`build`), the page (`html`), the text (`markdown`). Reading the
records from a storage is not in it: `--study DIR NAME` times both for a study that is there. Processor time of
this process; the promise is 5 s and 5 MB for 1,000 trials, 30 s for 10,000.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import TypeVar

from analysis.page.html import html
from analysis.page.markdown import markdown
from analysis.reading import read, reading_of
from analysis.report import document
from sweeper.engines.registry import engine_for
from sweeper.storing.storage import StudyStore
from tests.analysis.builders import simplicity
from tests.analysis.large import large_night, stored

PROMISED_S = {1000: 5.0, 10_000: 30.0}
PROMISED_MB = 5.0

T = TypeVar("T")


def timed(step: Callable[[], T]) -> tuple[T, float]:
    """What a step gives, and the processor seconds it took."""
    start = time.process_time()
    return step(), time.process_time() - start


def measure(num_trials: int) -> None:
    """Print the figures for a night of so many trials."""
    night = stored(large_night(num_trials))
    reading, read_s = timed(lambda: reading_of(night, simplicity))
    built, build_s = timed(lambda: document(reading))
    page, html_s = timed(lambda: html(built))
    text, markdown_s = timed(lambda: markdown(built))
    whole, size = read_s + build_s + html_s + markdown_s, len(page.encode()) / 1e6
    kept = whole <= PROMISED_S[num_trials] and size <= PROMISED_MB
    print(
        f"{num_trials:>6} trials: read {read_s:.2f} s, build {build_s:.2f} s, html {html_s:.2f} s, "
        f"markdown {markdown_s:.2f} s: {whole:.2f} s of {PROMISED_S[num_trials]:.0f} s; page {size:.2f} MB of "
        f"{PROMISED_MB:.0f} MB, text {len(text.encode()) / 1e3:.0f} kB{'' if kept else '  TOO MUCH'}"
    )
    if not kept:
        raise SystemExit(1)


def measure_study(directory: str, name: str) -> None:
    """Print the figures for a study on disk."""
    store = StudyStore.open(f"sqlite:///{directory}/optuna.db", name, directory, create=False)
    simple = engine_for((store.fact("fingerprint") or {})["engine.name"]).simplicity
    reading, read_s = timed(lambda: read(store, simple))
    page, page_s = timed(lambda: html(document(reading)))
    print(f"study {name}: read {read_s:.2f} s, page {page_s:.2f} s, {len(page.encode()) / 1e6:.2f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--study", nargs=2, metavar=("DIR", "NAME"))
    arguments = parser.parse_args()
    if arguments.study:
        measure_study(*arguments.study)
        return
    for num_trials in PROMISED_S:
        measure(num_trials)


if __name__ == "__main__":
    main()
