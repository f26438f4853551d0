"""Faults of the inference server. The full list, with the process tree of SGLang, is tests/sglang/faults.py."""

from __future__ import annotations

import os

from sweeper.errors import FailureKind
from tests.chaos.kills import KILL
from tests.chaos.stage import Stage, process_of
from tests.chaos.table import Play, fault

Kind = FailureKind


def _planted(name: str, detail: str, launches: int, kinds: tuple[Kind, ...], *words: str) -> Play:
    """A sweep in which so many launches, from the second one on, have the fault; it must go on to its end."""

    def play(stage: Stage) -> None:
        if words:
            stage.local(*words)
        stage.ended(stage.sweep.start("budget.trials=1"), 0)
        stage.sweep.set_fault(name, detail, launches)
        stage.ended(stage.sweep.start(), 0)
        failed = [n.failure.kind for t in stage.sweep.trials() for n in t.launches if n.failure]
        stage.seen.append(", ".join(failed) or "measured")
        stage.check(tuple(failed) == kinds, f"{failed} are {kinds}")
        stage.is_ended = True

    return play


FAULTS = (
    ("the server crashes in the benchmark", "SIGKILL to itself", "crash", "-", 1, (Kind.SERVER_CRASH,), (),
     "a failure with its cause; the trial is launched again"),
    ("the server crashes at every start of a trial", "SIGSEGV to itself, twice", "crash_start", "-", 2,
     (Kind.SERVER_CRASH,) * 2, (), "launched twice, then infeasible"),
    ("the server hangs in the benchmark", "it never answers", "hang", "-", 1, (Kind.SERVER_HANG,),
     ("workload.request_timeout_s=2",), "given up in time, stopped, launched again"),
    ("the server never becomes ready", "its start takes 600 s", "hang_start", "600", 1, (Kind.START_TIMEOUT,),
     ("limits.start_s=2",), "given up in time, stopped, launched again"),
    ("the server starts slowly", "its start takes 5 s of 20", "slow_start", "5", 1, (), (), "waited for"),
    ("out of memory", "the log says so, exit code 1", "out_of_memory", "-", 1, (Kind.OUT_OF_MEMORY,), (),
     "infeasible, told to the sampler"),
    ("corrupted JSON in an answer", "bytes that are neither JSON nor UTF-8", "garbage", "-", 1,
     (Kind.BENCHMARK_FAILED,), (), "no number is made of it; launched again"),
    ("an answer ends early", "the connection is closed in mid-stream", "truncated", "-", 1,
     (Kind.BENCHMARK_FAILED,), (), "no number is made of it; launched again"),
    ("the server answers 500", "HTTP status 500", "http_500", "-", 1, (Kind.BENCHMARK_FAILED,), (),
     "launched again"),
    ("non-UTF-8 and escape codes in the log", "raw bytes, a title sequence", "not_utf8", "-", 1, (), (),
     "measured; nothing of it reaches the terminal"),
    ("1 GiB of log", "1,024 MiB of lines before it listens", "flood", "1024", 1, (), ("limits.start_s=90",),
     "measured; what is kept of the log is bounded"),
    ("the server ignores SIGTERM", "SIG_IGN", "ignore_sigterm", "-", 2, (), (),
     "SIGKILL after the grace; measured"),
    ("the server leaves a process behind", "a child in a session of its own", "orphan", "-", 2, (), (),
     "found by its marker and stopped; measured"),
)  # fmt: skip

for _name, _how, _fault, _detail, _launches, _kinds, _words, _expected in FAULTS:
    fault(_name, "engine", f"stand-in server: {_how}", _expected)(
        _planted(_fault, _detail, _launches, _kinds, *_words)
    )


@fault(
    "the server is killed from outside",
    "engine",
    "SIGKILL to the server's process",
    "server_crash; launched again",
)
def killed(stage: Stage) -> None:
    stage.sweep.set_fault("hang", "-", 1)
    command = stage.sweep.start()
    stage.in_phase(command, "measuring", trial=0)
    stage.until(lambda: bool(pid_of(stage)), "a server", command)
    os.kill(pid_of(stage), KILL)
    stage.ended(command, 0)
    failed = [n.failure.kind for n in stage.sweep.trials()[0].launches if n.failure]
    stage.check(failed == [Kind.SERVER_CRASH], f"{failed} is a crash")
    stage.is_ended = True


@fault("the server's supervisor is killed", "host", "SIGKILL to the process that started it, in the benchmark",
       "the server is found and stopped by its session and its mark; the launch counts")  # fmt: skip
def supervisor_killed(stage: Stage) -> None:
    stage.sweep.set_fault("slow", "0.4", 1)
    command = stage.sweep.start()
    stage.in_phase(command, "measuring", trial=0)
    stage.until(lambda: bool(process_of(stage.folder, b"/leader")), "a supervisor", command)
    os.kill(process_of(stage.folder, b"/leader"), KILL)
    stage.ended(command, 0)
    stage.check(all(n.ok for n in stage.sweep.trials()[0].launches), "the launch counts")
    stage.is_ended = True


def pid_of(stage: Stage) -> int:
    return process_of(stage.folder, b"--alias")


@fault("every launch fails alike", "engine", "stand-in server: every start is a crash after the baseline",
       "the sweep stops and says why; 5")  # fmt: skip
def all_fail(stage: Stage) -> None:
    stage.local("limits.identical_failures=2", "budget.trials=8")
    stage.ended(stage.sweep.start("budget.trials=1"), 0)
    stage.sweep.set_fault("crash_start", "-", 1000)
    stage.ended(stage.sweep.start(), 5, r"specsweep: [^\n]*(in a row|alike)[^\n]*")
    (stage.folder / "fault").unlink()
    stage.trials = 8


@fault(
    "the baseline cannot be measured",
    "engine",
    "stand-in server: every start is a crash",
    "the sweep stops at once and says why; 5",
)
def no_baseline(stage: Stage) -> None:
    stage.sweep.set_fault("crash_start", "-", 1000)
    stage.ended(stage.sweep.start(), 5, r"specsweep: [^\n]*baseline[^\n]*")
    (stage.folder / "fault").unlink()
