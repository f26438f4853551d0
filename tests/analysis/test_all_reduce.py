"""What the report says of all-reduces that were timed without a server."""

from __future__ import annotations

from analysis.reading import read
from analysis.sections.all_reduce import MAX_ROWS, all_reduce
from sweeper.probing.findings import Findings, Timing
from sweeper.storing.storage import StudyStore
from tests.analysis import builders as b
from tests.analysis.studies import text_of


def timing(name: str, us: float | None, *, default: bool = False) -> Timing:
    times = () if us is None else tuple((tokens, us + tokens) for tokens in (1, 4, 8, 16, 32, 64))
    failure = "hung: it had not ended after 60 s" if us is None else ""
    return Timing(name=name, values=(), microseconds=times, failure=failure, took_s=8.0, is_default=default)


def section(store: StudyStore, *timings: Timing, given_up: str = "") -> str:
    Findings(
        program="/opt/all_reduce_perf",
        num_ranks=8,
        hidden_size=7168,
        num_layers=61,
        num_settings=len(timings),
        timings=timings,
        given_up=given_up,
    ).keep(store)
    trials = [b.trial(0, b.plain_config(), [b.measured(b.new_night(), 40)])]
    return text_of(all_reduce(read(b.fill(store, trials), b.simplicity)))


def test_nothing_is_said_where_nothing_was_timed(store: StudyStore) -> None:
    assert all_reduce(read(store, b.simplicity)) is None


def test_the_cost_the_times_and_what_hung_are_told(store: StudyStore) -> None:
    text = section(store, timing("nothing set", 30.0, default=True), timing("A=1", 20.0), timing("A=2 B=x", None))
    assert "3 settings of NCCL timed in 24 s, " in text
    assert "restarts (/opt/all_reduce_perf, 8 GPUs, 7168 numbers of 2 bytes per token)" in text
    assert "Hung or died, and not proposed: A=2 B=x." in text
    rows = [line for line in text.splitlines() if line.startswith("| ")][1:]
    assert [row.split("|")[1].strip() for row in rows if "---" not in row] == [
        "A=2 B=x",
        "A=1",
        "nothing set (the baseline's)",
    ]
    assert "| A=1 | 21.0 | 28.0 | 84.0 | well, after 8.0 s |" in text


def test_a_probe_that_was_given_up_says_why_and_shows_no_times(store: StudyStore) -> None:
    text = section(store, timing("nothing set", None), timing("A=1", None), given_up="died: no torch")
    assert "given up: died: no torch" in text
    assert "|" not in text


def test_of_many_settings_the_fastest_are_shown(store: StudyStore) -> None:
    text = section(store, *(timing(f"A={n}", 100.0 - n) for n in range(MAX_ROWS + 3)))
    assert "A=32 " in text
    assert "A=2 |" not in text
    assert "3 slower settings left out." in text


def test_what_a_host_printed_is_no_markup(store: StudyStore) -> None:
    text = section(store, timing("A=1", 3.0), timing("A=2", 3.0), given_up="died: **bold** | <b>")
    assert "**bold**" not in text
    assert "<b>" not in text
