"""How a start of a sweep ended in good order: its exit code, and what is printed and told of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console

from sweeper.deciding.verdict import Verdict
from sweeper.errors import ExitCode
from sweeper.records import TrialRecord
from sweeper.result_table import result_table
from sweeper.spec import SweepSpec


@dataclass(frozen=True)
class Outcome:
    """How a start ended in good order. `left`: in words, what was left on the host."""

    verdict: Verdict
    left: str
    launches_left: int
    was_complete: bool

    @property
    def is_open(self) -> bool:
        """Whether a person has ended it early: neither is the sweep complete, nor the night over."""
        return bool(self.launches_left) and not self.verdict.cut_short

    @property
    def code(self) -> ExitCode:
        """That of the command."""
        return ExitCode.INTERRUPTED if self.is_open else ExitCode.OK

    @property
    def found(self) -> str:
        """The verdict, or where it stands."""
        so_far = f"So far, with up to {self.launches_left} launches to go: " if self.is_open else ""
        return f"{so_far}{self.verdict.text}"

    @property
    def text(self) -> str:
        """What is told of it."""
        return "\n".join(filter(None, [self.found, self.left]))

    @property
    def goes_on(self) -> str:
        """How the sweep goes on; empty for one that has just been completed."""
        if self.verdict.cut_short:
            return "The night is over. The same command goes on in the next one; so does specsweep resume."
        if self.is_open:
            return "Stopped early, as asked. The same command goes on; so does specsweep resume."
        more = "The sweep was complete already: a larger budget.trials goes on from here."
        return more if self.was_complete else ""


def show(outcome: Outcome, trials: Sequence[TrialRecord], spec: SweepSpec, console: Console) -> None:
    """Print the table, what was left on the host, and the verdict."""
    if trials:
        asked = spec.objective.text(spec.workload.name)
        console.print(result_table(trials, spec.objective_metric, console.width, asked))
    if outcome.left:
        console.print(f"\n{outcome.left}", markup=False, highlight=False, soft_wrap=True)
    console.print(f"\n{outcome.found}\n", markup=False, highlight=False)
    if outcome.goes_on:
        console.print(outcome.goes_on, highlight=False)
