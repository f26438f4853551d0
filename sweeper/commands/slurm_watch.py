"""Shows how the jobs of a fleet stand on a Slurm cluster, hands on what their workers print, and ends them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import suppress

from launchers.clock import Clock, SystemClock
from launchers.errors import HostLost
from launchers.slurm import Look, SlurmJobs
from sweeper.commands.fleet import worst
from sweeper.errors import ExitCode, SpecsweepError
from sweeper.interrupts import Interrupts
from sweeper.spec import StudySpec
from sweeper.stop_request import StopRequest
from sweeper.storing.losses import STORAGE_ERRORS
from sweeper.storing.storage import StudyStore
from sweeper.streams import lenient
from sweeper.text import plain, without_codes

_LOOK_S = 2.0
_RESULT_S = 30.0
"""How long the result of a job that is over may take to be seen: shared folders are slow to show new files."""

_ASK_AGAIN_S = 15.0


class Watch:
    """The jobs of a study from their submission until all have ended.

    `codes`: how those ended that have; None: it was cancelled here before it had a node. `untold`: a line for each
    that ended without a worker who could have said why.
    """

    def __init__(self, jobs: SlurmJobs, study: StudySpec, clock: Clock | None = None) -> None:
        self.codes: dict[str, ExitCode | None] = {}
        self.untold: list[str] = []
        self._jobs = jobs
        self._study = study
        self._seen: dict[str, Look] = {}
        self._clock = clock or SystemClock()
        self._over_since: dict[str, float] = {}
        self._asked_at = float("-inf")
        self._no_answer = False
        self._has_cancelled = False

    def until_all_end(self, submit: Callable[[], Sequence[str]]) -> ExitCode:
        """The worst exit code of the workers. Whatever is raised, the jobs are cancelled first, and have ended.

        `submit` gives their ids. Jobs that still wait when the sweep is complete, or was asked to stop, are
        cancelled. Raises SweepInterrupted, and what `submit` raises.
        """
        interrupts = Interrupts(lambda text: self.say("slurm", text))
        with interrupts.installed():
            try:
                with interrupts.shielded():
                    self._seen = dict.fromkeys(submit(), Look("PENDING"))
                while self._look():
                    if interrupts.finish_requested:
                        self._ask_to_stop()
                    elif ExitCode.OK in self.codes.values():
                        self._let_none_start()
                    self._clock.sleep(_LOOK_S)
            except BaseException:
                self._end_all()
                raise
        ran = [code for code in self.codes.values() if code is not None]
        return worst(ran) if ran else ExitCode.INTERRUPTED

    def _end_all(self) -> None:
        """Cancel what was submitted, and wait for its end."""
        if self._seen:
            self._cancel()
            while self._look():
                self._clock.sleep(_LOOK_S)

    def say(self, name: str, line: str) -> None:
        """One line, under the name of what it is about."""
        out = lenient(sys.stdout)
        out.write(f"{plain(name, 60)} | {without_codes(line)}\n")
        out.flush()

    def _look(self) -> bool:
        """Show what is new; whether any job has not ended."""
        try:
            found = self._jobs.look()
        except HostLost as error:
            if not self._no_answer:
                self.say("slurm", f"no answer, asked again: {plain(str(error))}")
            self._no_answer = True
            return True
        self._no_answer = False
        for job, last in self._seen.items():
            if job not in self.codes:
                forgotten = Look("COMPLETED", last.node)  # Slurm forgets a job some minutes after its end
                self._show(job, last, found.get(job, forgotten))
        self._seen = {job: found.get(job, last) for job, last in self._seen.items()}
        return len(self.codes) < len(self._seen)

    def _show(self, job: str, last: Look, now: Look) -> None:
        name = now.node or last.node or job
        while lines := self._jobs.new_lines(job):
            for line in lines:
                if not line.startswith("submitit "):
                    self.say(name, line)
        if now.is_over:
            self._end(job, name, now)
        elif now.waits and last.node:
            self.say("slurm", f"job {job} is to run again: {plain(now.why)}")
        elif now.waits and now.why not in ("", "None", last.why):
            self.say("slurm", f"job {job} waits: {plain(now.why)}")
        elif now.node and not last.node:
            self.say("slurm", f"job {job} runs on {plain(now.node)}")

    def _end(self, job: str, name: str, now: Look) -> None:
        """Note how a job ended, once its result is there, or can no longer be expected."""
        code, since_s = self._jobs.result(job), self._over_since.setdefault(job, self._clock.monotonic_s())
        if code is not None:
            self.codes[job] = worst([code])
            self.say(name, f"ended with exit code {code}")
        elif not now.node or self._clock.monotonic_s() - since_s > _RESULT_S:
            self.codes[job] = None if self._has_cancelled and not now.node else ExitCode.ABORTED
            ended = f"ended by Slurm: {plain(now.state.lower())} ({plain(now.why)})"
            self.say(name, ended)
            if self.codes[job] is not None:
                self.untold.append(f"the worker on {plain(name, 60)} was {ended}")

    def _ask_to_stop(self) -> None:
        """Ask the workers to finish their launches; again and again, since one may just be starting."""
        if self._clock.monotonic_s() - self._asked_at < _ASK_AGAIN_S:
            return
        self._asked_at = self._clock.monotonic_s()
        self._let_none_start()
        with suppress(
            SpecsweepError, PermissionError, *STORAGE_ERRORS
        ):  # tried again; the study may not be made yet
            StopRequest(self._study, StudyStore.of(self._study), now=False).ask()

    def _let_none_start(self) -> None:
        """Cancel the jobs that wait for a node."""
        if any(look.waits for look in self._seen.values()):
            self._cancel(only_waiting=True)

    def _cancel(self, *, only_waiting: bool = False) -> None:
        self._has_cancelled = True
        try:
            self._jobs.cancel(only_waiting=only_waiting)
        except HostLost as error:
            self.say("slurm", f"scancel: {plain(str(error))}")
