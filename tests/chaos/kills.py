"""Kills, suspends and interrupts sweeps at every boundary of the main path and at random moments, by a seed.

`python -m tests.chaos kills --kills 300 --seed 1`. What was struck is kept in a file, a line of JSON each.
"""

from __future__ import annotations

import contextlib
import json
import random
import signal
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tests.chaos.audit import Audit, Ledger, audit
from tests.chaos.boundaries import MAIN_PATH, Plan, recorded
from tests.chaos.sweeps import Sweep
from tests.chaos.zygote import Command

KILL, TERM, INT, STOP, CONT = (signal.Signals[f"SIG{n}"] for n in ("KILL", "TERM", "INT", "STOP", "CONT"))
KINDS: dict[str, tuple[signal.Signals, ...]] = {
    "kill -9": (KILL,),
    "SIGTERM": (TERM,),
    "SIGINT": (INT,),
    "SIGINT twice": (INT, INT),
    "SIGSTOP, SIGCONT": (STOP,),
}
WEIGHTS = (50, 20, 10, 8, 12)
EXIT_CODES = {
    "kill -9": {-9},
    "SIGTERM": {143, -15, 0},
    "SIGINT": {130, 0},
    "SIGINT twice": {130, 0},
    "SIGSTOP, SIGCONT": {0},
}
"""How a command may end: 0 where the sweep was done when the signal came; -15 before the handlers stand."""
AT_RANDOM = 0.35
"""The share of strikes at a random moment."""


@dataclass(frozen=True)
class Strike:
    """One signal that arrived. `at`: FILE:LINE, or `random`; `code`: how the command ended."""

    sweep: str
    kind: str
    at: str
    code: int
    host: str = "local"

    @property
    def is_expected(self) -> bool:
        return self.code in EXIT_CODES[self.kind]


@dataclass
class Target:
    """One sweep under fire: how it is made, which words each start gets, what happens before each start."""

    name: str
    sweep: Sweep
    hosts: str = ""
    before_start: Callable[[random.Random], None] = lambda _: None
    strikes: list[Strike] = field(default_factory=list)
    ledger: Ledger = field(default_factory=Ledger)
    passed: list[str] = field(default_factory=list)
    round_s: float = 4.0

    @property
    def workers(self) -> Sequence[str]:
        return tuple(self.hosts) or ("local",)


def survey(target: Target) -> None:
    """Two undisturbed starts: which boundaries there are, and how long a start with two launches takes."""
    record = target.sweep.folder / "boundaries"
    for _ in range(2):
        began = time.monotonic()
        command = target.sweep.start(budget(target, 2), plan=Plan(record=str(record)), host=target.workers[0])
        assert command.wait() == 0, command.output
        target.round_s = time.monotonic() - began
        target.ledger.read(target.sweep)
    target.passed = recorded(record)


def budget(target: Target, more: int) -> str:
    """So many trials more than there are."""
    return f"budget.trials={len(target.sweep.trials()) + more}"


def places(target: Target, rng: random.Random, known: Collection[str] = ()) -> Iterator[str]:
    """Boundaries without end, in random order: first those of the main path that no other sweep was struck at."""
    first = [place for place in target.passed if place.startswith(MAIN_PATH) and place not in known]
    others = [place for place in target.passed if place not in first]
    while True:
        for group in (first, others):
            rng.shuffle(group)
        yield from first
        yield from others


def under_fire(
    target: Target, kills: int, seed: int, note: Callable[[Strike], None], known: Collection[str] = ()
) -> Audit:
    """`kills` strikes on one sweep, its end in peace, and a look at what is left. `known`: struck elsewhere."""
    rng = random.Random(seed)
    survey(target)
    wanted, guard = places(target, rng, known), threading.Lock()

    def fire(host: str, own: random.Random) -> None:
        while len(target.strikes) < kills:
            with guard:
                at = next(wanted) if own.random() > AT_RANDOM else "random"
            strike = struck(target, host, at, own)
            with guard:
                target.ledger.read(target.sweep)
                if strike is not None:
                    target.strikes.append(strike)
                    note(strike)

    crew = [threading.Thread(target=fire, args=(h, random.Random(f"{seed} {h}"))) for h in target.workers]
    for thread in crew:
        thread.start()
    for thread in crew:
        thread.join()
    return peace(target)


def struck(target: Target, host: str, at: str, rng: random.Random) -> Strike | None:
    """One start that is struck at a boundary or at a random moment; None when the signal never came."""
    kind = rng.choices(list(KINDS), WEIGHTS)[0]
    target.before_start(rng)
    plan = None if at == "random" else Plan(at=at, hit=rng.choice((1, 1, 2)), signals=KINDS[kind])
    words = "budget.trials=900" if target.hosts else budget(target, 1)
    command = target.sweep.start(words, plan=plan, host=host)
    if plan is None:
        has_come = strike_later(command, KINDS[kind], rng.uniform(0.0, 1.2 * target.round_s))
    else:
        mark = target.sweep.folder / f"struck-{command.pid}"
        limit_s = 20 * target.round_s if not target.hosts else 4 * target.round_s
        has_come = until_struck(command, mark, limit_s)
    if not has_come and command.is_running:  # a boundary that this worker does not come to
        command.send(KILL)
        command.wait()
        return None
    if kind.startswith("SIGSTOP"):
        carry_on(command, rng)
        if target.hosts:  # it would go on for ever
            command.send(TERM)
            command.wait()
            return Strike(target.name, kind, at, 0, host) if has_come else None
    code = command.wait()
    if not has_come:
        return None
    return Strike(target.name, kind, at, code, host)


def strike_later(command: Command, signals: Sequence[signal.Signals], seconds: float) -> bool:
    """Send the signals after so many seconds; False when it had ended by then."""
    if command.ended.wait(seconds):
        return False
    for number in signals:
        command.send(number)
        time.sleep(0.05)
    return True


def until_struck(command: Command, mark: Path, limit_s: float) -> bool:
    """Wait until it has struck itself, or has ended."""
    end = time.monotonic() + limit_s
    while command.is_running and not mark.exists() and time.monotonic() < end:
        time.sleep(0.05)
    return mark.exists()


def carry_on(command: Command, rng: random.Random) -> None:
    """A suspended one goes on after a while; of a shared study sometimes after the end of its lease."""
    with contextlib.suppress(ProcessLookupError):
        for _ in range(200):
            if command.is_stopped():
                time.sleep(rng.uniform(0.1, 1.0) if rng.random() < 0.7 else 7.0)
                command.send(CONT)
                return
            if command.ended.wait(0.05):
                return


def peace(target: Target) -> Audit:
    """Let all workers end the sweep undisturbed; raises when one does not."""
    (target.sweep.folder / "fault").unlink(missing_ok=True)
    words = budget(target, 2)
    crew = [target.sweep.start(words, host=host) for host in target.workers]
    for command in crew:
        assert command.wait(600) == 0, command.output[-3000:]
    return audit(target.sweep, target.ledger)


def append(path: Path) -> Callable[[Strike], None]:
    """Keeps each strike as a line of JSON, and prints it."""

    def note(strike: Strike) -> None:
        with path.open("a") as file:
            file.write(json.dumps(asdict(strike)) + "\n")
        warning = "" if strike.is_expected else "  UNEXPECTED"
        print(f"{strike.sweep:32} {strike.kind:17} {strike.at:40} -> {strike.code}{warning}", flush=True)

    return note
