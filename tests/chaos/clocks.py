"""Faults of the clock: it jumps forward and back while a sweep runs, and over the end of the night."""

from __future__ import annotations

import datetime
from pathlib import Path

from tests.chaos.boundaries import ROOT
from tests.chaos.stage import NotHere, Stage
from tests.chaos.table import Play, fault

LIBRARIES = (
    "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1",
    "/usr/lib/aarch64-linux-gnu/faketime/libfaketime.so.1",
)
BY = "libfaketime; the monotonic clock goes on, as with a real jump"

SITE = "import select, time\ntime.sleep = lambda seconds: select.select((), (), (), seconds) and None\n"
"""While it leaves the monotonic clock alone, libfaketime 0.9.10 breaks clock_nanosleep: Python's time.sleep."""


def fake_clock(stage: Stage) -> tuple[Path, dict[str, str]]:
    """The file that says how far the clock is off, and the environment that makes it so. Raises NotHere."""
    library = next((name for name in LIBRARIES if Path(name).exists()), None)
    if library is None:
        raise NotHere("libfaketime is not installed")
    file, site = stage.folder / "clock", stage.folder / "site"
    file.write_text("+0\n")
    site.mkdir()
    (site / "sitecustomize.py").write_text(SITE)
    env = {
        "LD_PRELOAD": library,
        "FAKETIME_TIMESTAMP_FILE": str(file),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "PYTHONPATH": f"{site}:{ROOT}",
    }
    return file, env


def _jumps(offset: str) -> Play:
    def play(stage: Stage) -> None:
        file, env = fake_clock(stage)
        stage.sweep.set_fault("slow", "0.4", 100)
        command = stage.sweep.start_alone(env=env)
        stage.in_phase(command, "measuring")
        file.write_text(f"{offset}\n")
        stage.ended(command, 0)
        times = [n.started_at for t in stage.sweep.trials() for n in t.launches]
        stage.seen.append(f"launches over {max(times) - min(times)}".split(".")[0].rsplit(":", 2)[0] + " h")
        stage.is_ended = True

    return play


for _name, _offset in (("a day forward", "+86400"), ("a day back", "-86400"), ("a second back", "-1")):
    fault(f"the clock jumps {_name}", "orchestrator", f"{BY}, in the benchmark",
          "durations are the monotonic clock's; goes on")(_jumps(_offset))  # fmt: skip


@fault("the clock jumps over the end of the night", "orchestrator",
       f"{BY}; budget.until is an hour away, the jump two hours",
       "the end was fixed at the start by a clock that nobody sets: the log says so, and it goes on")  # fmt: skip
def over_the_end(stage: Stage) -> None:
    file, env = fake_clock(stage)
    until = (datetime.datetime.now().astimezone() + datetime.timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M")
    stage.sweep.set_fault("slow", "0.4", 100)
    command = stage.sweep.start_alone(f"budget.until={until}", env=env)
    stage.in_phase(command, "measuring")
    file.write_text("+7200\n")
    stage.ended(command, 0, r"this machine's clock was set [^\n]*")
    stage.is_ended = True


@fault("the clock begins in 1970", "orchestrator", f"{BY}, at the start, as on a machine whose battery is empty",
       "measured and shown under that time; the next start, at the right one, goes on")  # fmt: skip
def in_1970(stage: Stage) -> None:
    file, env = fake_clock(stage)
    file.write_text("@1970-01-01 00:00:10\n")
    command = stage.sweep.start_alone("budget.trials=2", env=env)
    stage.ended(command, 0)
    years = {n.started_at.year for t in stage.sweep.trials() for n in t.launches}
    stage.seen.append(f"launches of {', '.join(map(str, sorted(years)))}")
    stage.check(years == {1970}, str(years))
