"""Faults of the process that drives the sweep: it is killed, interrupted, suspended, started twice, replaced."""

from __future__ import annotations

import shutil
import signal
import time

from tests.chaos.boundaries import ROOT, Plan
from tests.chaos.kills import CONT, INT, KILL, STOP, TERM
from tests.chaos.stage import Stage
from tests.chaos.table import Play, fault

LEFT = r"stopped server \w+, which an earlier process had left"
AGAIN = r"trial \d+ was interrupted: it is measured again"
RECORDED = r"trial \d+ had been measured: finished from its record"

BOUNDARIES = (
    ("while a trial is chosen", "sweeper/asking.py:new_trial", 2, ""),
    ("once a trial is begun", "sweeper/storing/ownership.py:begin", 2, AGAIN),
    ("before the server starts", "sweeper/serving/server.py:_start", 2, AGAIN),
    ("while the server starts", "sweeper/serving/readiness.py:wait_until_ready", 2, LEFT),
    ("in the benchmark", "sweeper/measuring/benchmark.py:measure", 2, LEFT),
    ("before the record is written", "sweeper/storing/storage.py:save_launch", 3, LEFT),
    ("before the server is stopped", "sweeper/serving/server.py:_stop", 2, LEFT),
    ("between record and tell", "sweeper/study.py:tell", 2, RECORDED),
    ("while Optuna is told", "sweeper/books.py:score", 2, RECORDED),
    ("while MLflow is written", "sweeper/tracking/tracker.py:sync", 3, ""),
    ("while the verdict is drawn", "sweeper/study.py:verdict", 1, ""),
)


def _killed_at(place: str, hit: int, says: str) -> Play:
    def play(stage: Stage) -> None:
        command = stage.sweep.start(plan=Plan(at=place, hit=hit, signals=(KILL,)))
        stage.ended(command, -9)
        stage.next_says = says

    return play


for _what, _place, _hit, _says in BOUNDARIES:
    fault(
        f"kill -9 {_what}",
        "orchestrator",
        f"SIGKILL to itself on entering `{_place}`, by Python's trace",
        "the next start stops what was left, finishes or repeats the trial, and goes on",
        quick=_place.endswith((":tell", ":measure")),
    )(_killed_at(_place, _hit, _says))


@fault("kill -9 while it starts", "orchestrator", "SIGKILL 0.2 s after the start",
       "nothing was begun; the next start begins")  # fmt: skip
def killed_at_start(stage: Stage) -> None:
    command = stage.sweep.start()
    time.sleep(0.2)
    command.send(KILL)
    stage.ended(command, -9)


@fault("kill -9 five times in one trial", "orchestrator",
       "SIGKILL in the benchmark of trial 1, five starts running",
       "the trial is put aside as failed, and the sweep goes on without it")  # fmt: skip
def killed_five_times(stage: Stage) -> None:
    for number in range(5):
        hit = 2 if number == 0 else 1
        command = stage.sweep.start(
            plan=Plan(at="sweeper/measuring/benchmark.py:measure", hit=hit, signals=(KILL,))
        )
        stage.ended(command, -9)
    stage.ended(stage.sweep.start(), 0)
    stage.is_ended = True
    state = stage.sweep.trials()[1].state.value
    stage.seen.append(f"trial 1 is {state}")
    stage.check(state == "failed", "trial 1 is put aside")


@fault("SIGTERM in the benchmark", "orchestrator", "SIGTERM", "the server is stopped at once; 143", quick=True)
def terminated(stage: Stage) -> None:
    command = stage.sweep.start(plan=Plan(at="sweeper/measuring/benchmark.py:measure", hit=2, signals=(TERM,)))
    stage.ended(command, 143, "interrupted; no server is left")


@fault("SIGTERM while the server starts", "orchestrator", "SIGTERM; the stand-in's start takes 3 s",
       "the server is stopped at once; 143")  # fmt: skip
def terminated_in_start(stage: Stage) -> None:
    stage.sweep.set_fault("slow_start", "3", 1)
    command = stage.sweep.start()
    stage.in_phase(command, "loading", trial=0)
    command.send(TERM)
    stage.ended(command, 143, "interrupted; no server is left")


@fault("SIGTERM while the server is stopped", "orchestrator",
       "SIGTERM on entering `sweeper/serving/server.py:_stop`", "the stop is finished first; 143")  # fmt: skip
def terminated_in_stop(stage: Stage) -> None:
    command = stage.sweep.start(plan=Plan(at="sweeper/serving/server.py:_stop", hit=2, signals=(TERM,)))
    stage.ended(command, 143, "interrupted; no server is left")


@fault("SIGINT once", "orchestrator", "SIGINT in the benchmark", "the launch is finished, then 130")
def interrupted_once(stage: Stage) -> None:
    command = stage.sweep.start(plan=Plan(at="sweeper/measuring/benchmark.py:measure", hit=2, signals=(INT,)))
    stage.ended(command, 130, "Stopping once the current launch is finished")
    stage.check(len(stage.ledger.trials) == 2, "the launch counts")


@fault("SIGINT twice", "orchestrator", "SIGINT, SIGINT in the benchmark", "the launch is abandoned; 130")
def interrupted_twice(stage: Stage) -> None:
    plan = Plan(at="sweeper/measuring/benchmark.py:measure", hit=2, signals=(INT, INT))
    stage.ended(stage.sweep.start(plan=plan), 130, "Abandoning the current launch")
    stage.check(len(stage.ledger.trials) == 1, "the launch does not count")


@fault("the terminal is closed", "orchestrator", "SIGHUP in the benchmark", "as SIGTERM; 143")
def hung_up(stage: Stage) -> None:
    plan = Plan(at="sweeper/measuring/benchmark.py:measure", hit=2, signals=(signal.SIGHUP,))
    stage.ended(stage.sweep.start(plan=plan), 143, "interrupted; no server is left")


@fault("SIGALRM from somebody else", "orchestrator", "SIGALRM in the benchmark; with and without budget.hours",
       "the night ends by its own timer alone: the sweep goes on")  # fmt: skip
def alarmed(stage: Stage) -> None:
    for words in (("budget.trials=2",), ("budget.hours=5",)):
        plan = Plan(at="sweeper/measuring/benchmark.py:measure", signals=(signal.SIGALRM,))
        command = stage.sweep.start(*words, plan=plan)
        stage.ended(command, 0)
        stage.check("The night is over" not in command.output, command.output[-800:])
    stage.is_ended = True


@fault("SIGSTOP, SIGCONT in the benchmark", "orchestrator", "SIGSTOP for 3 s", "the sweep goes on to its end")
def suspended(stage: Stage) -> None:
    command = stage.sweep.start(plan=Plan(at="sweeper/measuring/benchmark.py:measure", hit=2, signals=(STOP,)))
    stage.until(command.is_stopped, "the suspension", command)
    time.sleep(3)
    command.send(CONT)
    stage.ended(command, 0)
    stage.is_ended = True


@fault("SIGSTOP beyond the lease, SIGCONT", "orchestrator",
       "SIGSTOP to one of two workers until the other has its trial",
       "the trial is taken over once; who wakes up writes nothing of it and goes on")  # fmt: skip
def suspended_beyond_lease(stage: Stage) -> None:
    sweep = stage.shared()
    sleeper = sweep.start(host="a", plan=Plan(at="sweeper/measuring/benchmark.py:measure", hit=2, signals=(STOP,)))
    stage.until(sleeper.is_stopped, "the suspension", sleeper)
    other = sweep.start(host="b")
    stage.until(lambda: "is taken over from host a" in other.output, "the take-over", other)
    sleeper.send(CONT)
    stage.ended(other, 0, r"trial \d+ is taken over from host a: its worker's lease is over")
    stage.ended(sleeper, 0, r"was taken over by another worker")
    stage.is_ended = True


@fault("kill -9 of a worker of several", "orchestrator", "SIGKILL to one of two workers on PostgreSQL",
       "its trial is taken over once, under its own number")  # fmt: skip
def worker_killed(stage: Stage) -> None:
    sweep = stage.shared()
    dying = sweep.start(host="a", plan=Plan(at="sweeper/measuring/benchmark.py:measure", hit=2, signals=(KILL,)))
    stage.ended(dying, -9)
    other = sweep.start(host="b")
    stage.ended(other, 0, r"trial \d+ is taken over from host a: its worker's lease is over")
    again = sweep.start(host="a")
    stage.ended(again, 0, LEFT)
    stage.is_ended = True


@fault("two orchestrators, one after the other", "orchestrator", "a second start on the same host and study",
       "4, and who holds it")  # fmt: skip
def second_start(stage: Stage) -> None:
    first = stage.sweep.start()
    stage.in_phase(first, "", trial=0)
    second = stage.sweep.start()
    stage.ended(second, 4, rf"\b{first.pid}\b[^\n]*")
    stage.ended(first, 0)
    stage.is_ended = True


@fault(
    "two orchestrators at once",
    "orchestrator",
    "two starts in the same instant",
    "one runs to its end, the other ends with 4",
)
def two_at_once(stage: Stage) -> None:
    pair = [stage.sweep.start(), stage.sweep.start()]
    codes = sorted(command.wait() for command in pair)
    stage.seen.append(f"exit codes {codes}")
    stage.check(codes == [0, 4], f"codes {codes} are 0 and 4: {[c.output[-400:] for c in pair]}")
    stage.is_ended = True


@fault("two orchestrators, two state folders, one study", "orchestrator",
       "a second start with another host.state_dir", "4: the study is held")  # fmt: skip
def second_study(stage: Stage) -> None:
    first = stage.sweep.start()
    stage.in_phase(first, "", trial=0)
    second = stage.sweep.start(f"host.state_dir={stage.folder}/state-other")
    stage.ended(second, 4, r"study chaos[^\n]*")
    stage.ended(first, 0)
    stage.is_ended = True


@fault("specsweep is upgraded in mid-sweep", "orchestrator",
       "the program's files are removed and others put in their place while it runs; then a start of the others",
       "the old process ends in order or says what is missing; the new one goes on")  # fmt: skip
def upgraded(stage: Stage) -> None:
    program, folders = stage.folder / "program", ("sweeper", "launchers", "conf", "analysis")
    for name in folders:
        shutil.copytree(ROOT / name, program / name, ignore=shutil.ignore_patterns("__pycache__"))
    old = stage.sweep.start_alone(env={}, path=program)
    stage.in_phase(old, "measuring")
    for name in folders:
        shutil.rmtree(program / name)
    time.sleep(1)
    for name in folders:
        shutil.copytree(ROOT / name, program / name, ignore=shutil.ignore_patterns("__pycache__"))
    for script in (program / "launchers").glob("*.sh"):
        script.write_text(script.read_text() + "# a later release\n")
    code = old.wait()
    stage.ledger.read(stage.sweep)
    stage.seen.append(f"the old one: exit code {code}")
    stage.check(code in (0, 5), f"in order: {old.output[-800:]}")
    new = stage.sweep.start_alone(env={}, path=program)
    stage.ended(new, 0)
    stage.is_ended = True
