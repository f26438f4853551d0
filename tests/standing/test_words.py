from __future__ import annotations

import datetime
import io

import pytest
from rich.console import Console

from sweeper.commands.status import show
from sweeper.standing.model import Best, Failed, Lag, Left, Now, Standing
from sweeper.standing.words import lines
from tests.fakes import EPOCH

NOW = Now(
    worker="gpu1",
    host="desk",
    pid=7,
    is_alive=True,
    written_at=EPOCH,
    trial=14,
    launch=0,
    purpose="search",
    title="trial 14: EAGLE3 steps3 topk4",
    phase="loading model",
    phase_began_at=EPOCH,
    expected_s=95.0,
)
LEFT = Left(at=EPOCH, trials_total=30, launches=20, eta_s=4000.0, low_s=3000.0, high_s=5000.0)


STUDY = (
    "study|night: 13 of 30 trials done (1 running, 12 complete, 1 infeasible); 16 launches: 1 baseline,"
    " 13 search, 2 control"
)


def standing(**changes: object) -> Standing:
    made = Standing(
        study="night",
        objective="output_throughput",
        unit="tok/s",
        at=EPOCH + datetime.timedelta(seconds=40),
        trials={"running": 1, "complete": 12, "infeasible": 1, "failed": 0},
        launches={"baseline": 1, "control": 2, "search": 13},
        baseline=90.0,
        best=Best(trial=9, name="EAGLE3 steps3", value=99.0, ratio=1.1, luck_pct=4.0, beyond_luck=True),
        course=(80.0, 95.0, 99.0),
        failures=(Failed(trial=7, launch=0, kind="out_of_memory", message="3 GiB asked", ended_at=EPOCH),),
        running=(14,),
        now=(NOW,),
        left=LEFT,
        mlflow=Lag(behind=3, error="refused", at=EPOCH),
    )
    return made.model_copy(update=changes)


def text(of: Standing) -> str:
    return "\n".join(f"{label}|{said}" for label, said in lines(of, 80))


def screen(of: Standing, width: int, encoding: str = "utf-8", *, terminal: bool = True) -> str:
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding=encoding)
    console = Console(file=file, width=width, force_terminal=terminal, color_system=None, legacy_windows=False)
    show(of, console)
    file.flush()
    return raw.getvalue().decode(encoding)


def test_everything_is_said_in_the_order_of_its_weight() -> None:
    assert text(standing()).splitlines() == [
        STUDY,
        "now|trial 14: EAGLE3 steps3 topk4: loading model, 40 s of about 2 min; gpu1 (pid 7 on desk)",
        "left|up to 20 launches, about 1 h 06 min (49 min to 1 h 23 min)",
        "best|trial 9: EAGLE3 steps3: 99.0 tok/s, 1.10 x, more than chance may show (1.04 x); baseline 90.0 tok/s",
        "course|80.0 ▁▇█ 99.0",
        "failed|trial 7: out_of_memory: 3 GiB asked",
        "mlflow|3 trials behind 40 s ago: refused",
    ]


def test_a_gain_within_the_noise_is_not_called_more() -> None:
    best = Best(trial=9, name="x", value=92.0, ratio=1.02, luck_pct=4.0, beyond_luck=False)
    assert "1.02 x, what chance may show (1.04 x)" in text(standing(best=best))


@pytest.mark.parametrize(
    ("minutes", "words"),
    [(120, "in 1 h 59 min: in time"), (70, "in 69 min: may be late"), (30, "in 29 min: the deadline comes first")],
)
def test_the_deadline_is_told_with_what_becomes_of_it(minutes: int, words: str) -> None:
    left = LEFT.model_copy(update={"deadline_at": EPOCH + datetime.timedelta(minutes=minutes)})
    assert words.replace("69 min", "1 h 09 min") in text(standing(left=left))


def test_without_a_process_nothing_is_said_to_run() -> None:
    assert "now|no sweep runs here; begun and not ended: trial 14" in text(standing(now=()))
    assert "now|no sweep runs here\n" in text(standing(now=(), running=())) + "\n"


def test_of_a_process_elsewhere_it_is_said_how_old_its_word_is() -> None:
    far = NOW.model_copy(update={"is_alive": None})
    assert "not to be seen from here; wrote this 40 s ago" in text(standing(now=(far,)))


def test_an_empty_study_is_no_error() -> None:
    empty = Standing(study="n", objective="score", unit="", at=EPOCH, trials={}, launches={})
    assert text(empty).splitlines() == [
        "study|n: 0 trials done; 0 launches",
        "now|no sweep runs here",
        "best|the baseline has not been measured yet",
    ]


@pytest.mark.parametrize("width", [40, 80, 160])
def test_a_terminal_is_never_overrun(width: int) -> None:
    shown = screen(standing(), width)
    assert max(map(len, shown.splitlines())) <= width
    assert "loading" in shown


def test_elsewhere_each_thing_is_one_line_without_codes() -> None:
    shown = screen(standing(), 20, terminal=False)
    assert "\x1b" not in shown
    assert len(shown.splitlines()) == len(lines(standing(), 100))


def test_a_terminal_of_ascii_gets_ascii_bars() -> None:
    assert "course 80.0 _#@ 99.0" in screen(standing(), 80, "ascii").replace("  ", " ")


def test_text_from_outside_cannot_move_the_cursor() -> None:
    evil = Failed(trial=7, launch=0, kind="x", message="\x1b[2Jgone\nnext", ended_at=EPOCH)
    assert "\x1b" not in text(standing(failures=(evil,)))


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(7 * 3600 - 1, "deadline 07:00 in "), (31 * 3600, "deadline Friday 07:00 in ")],
)
def test_the_deadline_has_its_day_when_it_is_not_the_next_and_is_no_second_early(
    seconds: int, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "UTC")
    left = LEFT.model_copy(update={"deadline_at": EPOCH + datetime.timedelta(seconds=seconds)})
    assert words in text(standing(left=left))
