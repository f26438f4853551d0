"""Faults of the study's storage: PostgreSQL restarts, fails over, loses statements; SQLite is locked, damaged."""

from __future__ import annotations

import contextlib
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

from sqlalchemy import make_url

from sweeper.tracking.same_trial import TAG_SYNCED
from sweeper.tracking.view import TAG_LOST, TAG_TRIAL
from tests.chaos.audit import all_runs_of
from tests.chaos.boundaries import Plan
from tests.chaos.kills import CONT, STOP
from tests.chaos.stage import Stage
from tests.chaos.statements import StatementProxy
from tests.chaos.sweeps import Sweep
from tests.chaos.table import Play, fault
from tests.chaos.zygote import Command
from tests.fleet.standby import pair


def missed(command: Command) -> Callable[[], bool]:
    """Whether a command has said that it has lost the database: until then the fault is not over."""
    return lambda: "; tried again for" in command.output


def _restarted(mode: str) -> Play:
    """Two workers, in whose launches the database is stopped and started again."""

    def play(stage: Stage) -> None:
        sweep, postgres = stage.shared(), stage.house.postgres()
        sweep.set_fault("slow", "0.4", 100)
        crew = [sweep.start(host="a"), sweep.start(host="b")]
        stage.until(lambda: "trial 1: " in crew[0].output + crew[1].output, "a launch of the search", crew[0])
        postgres.stop(mode)
        for command in crew:
            stage.until(missed(command), "a worker that misses the database", command)
        postgres.start()
        for command in crew:
            stage.ended(command, 0)
        stage.says("\n".join(c.output for c in crew), r"is back after[^\n]*")
        stage.is_ended = True

    return play


for _mode, _words in (("fast", "in order"), ("immediate", "as in a crash, with recovery")):
    fault(f"PostgreSQL restarts {_words}", "stores",
          f"pg_ctl stop -m {_mode} under two workers, start when both have missed it",
          "statements are tried again; goes on")(_restarted(_mode))  # fmt: skip


@fault("PostgreSQL fails over", "stores",
       "SIGKILL to a primary with a synchronous standby, which is promoted when the sweep has missed it",
       "tried again until the standby writes; goes on there")  # fmt: skip
def failover(stage: Stage) -> None:
    servers = stage.stack.enter_context(pair())
    sweep = stage.shared(url=servers.create("chaos"))
    servers.acknowledge()
    command = sweep.start(host="a", plan=Plan(at="sweeper/measuring/benchmark.py:measure", hit=2, signals=(STOP,)))
    stage.until(command.is_stopped, "a launch of the search", command)
    servers.primary.kill()
    command.send(CONT)
    stage.until(missed(command), "a sweep that misses the database", command)
    servers.promote()
    stage.ended(command, 0, r"is back after[^\n]*")
    stage.is_ended = True


@fault("PostgreSQL fails over without the newest trial", "stores",
       "SIGKILL to a primary from which the standby has received nothing since trial 1, then it is promoted",
       "tried again until the standby writes; what it lacks is measured again under its number; "
       "MLflow's run of what was lost is kept and says so")  # fmt: skip
def failover_without_the_newest(stage: Stage) -> None:
    servers = stage.stack.enter_context(pair())
    sweep = stage.shared("budget.trials=8", url=servers.create("chaos"))
    sweep.set_fault("slow", "0.1", 100)
    stage.trials = 8
    command = sweep.start(host="a", plan=Plan(at="sweeper/measuring/benchmark.py:measure", hit=3, signals=(STOP,)))
    stage.until(command.is_stopped, "the launch of trial 2", command)
    servers.part()
    command.send(CONT)
    stage.until(lambda: 2 in shown(sweep), "the run of trial 2", command)
    servers.primary.kill()
    stage.until(missed(command), "a sweep that misses the database", command)
    servers.promote()
    stage.ended(command, 0, r"is back after[^\n]*|a server answers now that had not received[^\n;:]*")
    lost = sorted(run.data.tags[TAG_LOST] for run in all_runs_of(sweep) if TAG_LOST in run.data.tags)
    stage.check(lost[:1] == ["2"], f"the runs of lost trials are of {lost}")
    stage.seen.append(f"marked as lost: the run of trial {', '.join(lost)}")
    stage.is_ended = True


def shown(sweep: Sweep) -> set[int]:
    """The trials that MLflow shows whole."""
    tags = [run.data.tags for run in all_runs_of(sweep)]
    return {int(each[TAG_TRIAL]) for each in tags if TAG_TRIAL in each and TAG_SYNCED in each}


def _statements(after: bool) -> Play:
    def play(stage: Stage) -> None:
        sweep = stage.shared()
        stage.ended(sweep.start("budget.trials=1", host="a"), 0)
        url = make_url(sweep.storage)
        proxy = stage.stack.enter_context(StatementProxy(int(url.port or 0), after=after))
        direct = sweep.storage
        sweep.storage = url.set(port=proxy.port).render_as_string(hide_password=False)
        proxy.is_armed = False  # that a study is opened in spite of it has a test of its own (tests/fleet)
        command = sweep.start(host="a")
        stage.until(lambda: "study chaos: " in command.output, "the sweep", command)
        proxy.is_armed = True
        code = command.wait(900)
        sweep.storage = direct
        stage.ledger.read(sweep)
        stage.seen.append(f"exit code {code}, connection lost in {len(proxy.cut)} different statements")
        stage.check(code == 0 and len(proxy.cut) > 10, command.output[-1500:])

    return play


for _after, _when in ((False, "before it arrives"), (True, "once it is done, its answer on the way")):
    fault(f"the connection is lost in every statement, {_when}", "stores",
          "a proxy that reads PostgreSQL's protocol resets the connection at each text of a statement, once",
          "each is done again, and bears it")(_statements(_after))  # fmt: skip


@fault(
    "PostgreSQL is down at the start",
    "stores",
    "pg_ctl stop",
    "an error that names the database, no password; nothing was begun",
)
def down_at_start(stage: Stage) -> None:
    sweep, postgres = stage.shared("study.reconnect_s=3"), stage.house.postgres()
    postgres.stop()
    try:
        command = sweep.start()
        code = command.wait()
    finally:
        postgres.start()
    stage.seen.append(f"exit code {code}")
    stage.check(code == 5 and "only%20for" not in command.output, command.output[-800:])
    stage.says(command.output, r"(?s)specsweep: .{0,160}")


@fault(
    "PostgreSQL stays away",
    "stores",
    "pg_ctl stop in a launch, longer than study.reconnect_s",
    "5; the server is stopped; goes on later",
)
def stays_away(stage: Stage) -> None:
    sweep, postgres = stage.shared("study.reconnect_s=3"), stage.house.postgres()
    sweep.set_fault("slow", "0.4", 100)
    command = sweep.start()
    stage.until(lambda: "trial 1: " in command.output, "a launch of the search", command)
    postgres.stop("immediate")
    try:
        code = command.wait()
    finally:
        postgres.start()
    stage.seen.append(f"exit code {code}")
    stage.check(code == 5, command.output[-800:])
    stage.says(command.output, r"specsweep: stopped: [^\n]{0,120}")


@contextlib.contextmanager
def locked(path: str, seconds: float) -> Iterator[None]:
    """Another process holds the database for so long."""
    program = (
        f"import sqlite3, time; c = sqlite3.connect({path!r}, timeout=60, isolation_level=None); "
        f"c.execute('BEGIN EXCLUSIVE'); print('held', flush=True); time.sleep({seconds})"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield
        process.send_signal(signal.SIGKILL)


@fault(
    "SQLite is locked for a while",
    "stores",
    "another process holds BEGIN EXCLUSIVE for 8 s",
    "waited for; goes on",
)
def sqlite_locked(stage: Stage) -> None:
    stage.ended(stage.sweep.start("budget.trials=1"), 0)
    with locked(str(stage.folder / "optuna.db"), 8):
        command = stage.sweep.start()
        time.sleep(8)
        stage.ended(command, 0)
    stage.is_ended = True


@fault(
    "SQLite stays locked",
    "stores",
    "another process holds BEGIN EXCLUSIVE until the sweep gives up",
    "an error that says so; goes on later",
)
def sqlite_stays_locked(stage: Stage) -> None:
    stage.ended(stage.sweep.start("budget.trials=1"), 0)
    with locked(str(stage.folder / "optuna.db"), 600):
        command = stage.sweep.start()
        code = command.wait(600)
    stage.seen.append(f"exit code {code}")
    stage.check(code == 5, command.output[-800:])
    stage.says(command.output, r"(?s)specsweep: .{0,200}locked")


@fault("the study's file is damaged", "stores", "the first 100 bytes of optuna.db are overwritten; later put back",
       "an error that names the file; nothing is overwritten; with the file back the sweep goes on")  # fmt: skip
def damaged(stage: Stage) -> None:
    stage.ended(stage.sweep.start("budget.trials=2"), 0)
    file = stage.folder / "optuna.db"
    with contextlib.closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    shutil.copy(file, stage.folder / "kept")
    with file.open("r+b") as stream:
        stream.write(b"\xff" * 100)
    before = file.read_bytes()
    command = stage.sweep.start()
    code = command.wait()
    stage.seen.append(f"exit code {code}")
    stage.check(code == 5 and file.read_bytes() == before, command.output[-800:])
    stage.says(command.output, r"(?s)specsweep: .{0,200}not a database")
    shutil.copy(stage.folder / "kept", file)
