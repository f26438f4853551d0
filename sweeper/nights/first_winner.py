"""Tells of the first configuration that did more than the baseline: a view that only listens."""

from __future__ import annotations

from sweeper.deciding.plan import Progress
from sweeper.nights.notify import Notifier
from sweeper.records import LaunchRecord, Proposal, RequestResult
from sweeper.spec import ServerConfig


class FirstWinner:
    """A `View` that notifies of one event, once in the life of a study: when a launch first beats the baseline."""

    def __init__(self, notifier: Notifier, host: str) -> None:
        self._notifier = notifier
        self._host = host
        self._study = ""
        self._is_told = True

    def sweep_started(self, study: str, progress: Progress, baseline: ServerConfig) -> None:
        """What an earlier start has found is not told again."""
        self._study, self._is_told = study, _gain(progress) > 1

    def launch_ended(self, record: LaunchRecord, progress: Progress) -> None:
        """Tell, if this was the one."""
        if self._is_told or _gain(progress) <= 1 or progress.best_trial is None:
            return
        self._is_told = True
        what = f"trial {progress.best_trial.number} did {_gain(progress):.3f} x the baseline"
        self._notifier.tell("first_winner", self._study, self._host, f"{what}, in one launch: unconfirmed")

    def launch_started(self, proposal: Proposal, progress: Progress) -> None:
        """No event."""

    def phase(self, name: str) -> None:
        """No event."""

    def request_done(self, result: RequestResult, done: int, total: int) -> None:
        """No event."""

    def synced(self, behind: int, error: str) -> None:
        """Nothing to tell."""

    def notice(self, text: str) -> None:
        """No event."""


def _gain(progress: Progress) -> float:
    """The best over the baseline; 0 before both are known."""
    if not progress.baseline_value or progress.best_value is None:
        return 0.0
    return progress.best_value / progress.baseline_value
