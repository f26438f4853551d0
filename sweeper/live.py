"""What a person sees while a sweep runs: one screen that is worth leaving open, or plain lines for a file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from launchers.clock import Clock
from sweeper.deciding.plan import Progress
from sweeper.records import LaunchRecord, Proposal, RequestResult
from sweeper.spec import ServerConfig
from sweeper.standing.eta import eta_of
from sweeper.standing.phases import PhaseTimes
from sweeper.standing.spark import sparkline
from sweeper.standing.words import phase_text
from sweeper.tally import Tally, spent, standing
from sweeper.text import plain, printable

NARROW = 60
"""Below so many columns the screen saves spaces."""


class View(Protocol):
    """Told about everything that happens; never decides anything."""

    def sweep_started(self, study: str, progress: Progress, baseline: ServerConfig) -> None:
        """Before the first launch of this process."""

    def launch_started(self, proposal: Proposal, progress: Progress) -> None:
        """Before each launch."""

    def phase(self, name: str) -> None:
        """The launch has entered a phase (`starting`, `loading model`, `measuring WORKLOAD`, `stopping`).

        Or, between launches, the host is asked something (`probing NCCL setting 3 of 12`).
        """

    def request_done(self, result: RequestResult, done: int, total: int) -> None:
        """A request has ended; `done` of `total` under this workload, warm-ups included. The total may change."""

    def launch_ended(self, record: LaunchRecord, progress: Progress) -> None:
        """After each launch, measured or failed."""

    def synced(self, behind: int, error: str) -> None:
        """MLflow was brought up to date, but for so many trials; `error` says why, if something went wrong."""

    def notice(self, text: str) -> None:
        """Something a person should know that is not part of the ordinary course."""


class PlainView:
    """One line per event that matters, each with its date and the local time: for logs, pipes and `nohup`.

    A night passes midnight, and a study goes on for days.
    """

    def __init__(self, console: Console, clock: Clock, objective: str) -> None:
        self._console = console
        self._clock = clock
        self._tally = Tally(objective)

    def sweep_started(self, study: str, progress: Progress, baseline: ServerConfig) -> None:
        """Say where the sweep stands."""
        self._tally.baseline = baseline
        done = f"{progress.trials_done} of {progress.trials_total} trials done"
        self._line(f"study {study}: {done}, about {progress.launches_left} launches to go")

    def launch_started(self, proposal: Proposal, progress: Progress) -> None:
        """Say which trial and how long it may all take."""
        self._tally.begin(proposal, progress)
        self._line(f"{self._tally.title(proposal)} ({standing(progress)})")
        if proposal.forecast is not None:
            words = filter(None, [self._tally.why(), self._tally.remaining()])
            self._line(f"trial {proposal.trial_number}: {'; '.join(words)}")

    def phase(self, name: str) -> None:
        """Not worth a line of its own."""
        self._tally.enter(name)

    def request_done(self, result: RequestResult, done: int, total: int) -> None:
        """Not worth a line of its own."""
        self._tally.count(result, done, total)

    def launch_ended(self, record: LaunchRecord, progress: Progress) -> None:
        """Say how it ended and what is best so far."""
        self._tally.end(record, progress)
        self._line(f"trial {record.trial_number}: {self._tally.outcome(record)} [best {self._tally.best()}]")

    def synced(self, behind: int, error: str) -> None:
        """Not worth a line of its own; an error is a notice, too."""

    def notice(self, text: str) -> None:
        """Say it."""
        self._line(f"note: {plain(text, 2000)}")

    def _line(self, text: str) -> None:
        stamp = self._clock.now().astimezone(self._clock.zone())
        self._console.print(
            f"{stamp:%Y-%m-%d %H:%M:%S} {printable(text)}", markup=False, highlight=False, soft_wrap=True
        )


class RichView:
    """A screen that redraws itself; finished launches scroll away above it. Use as a context manager."""

    def __init__(self, console: Console, clock: Clock, objective: str) -> None:
        self._clock = clock
        self._console = console
        self._tally = Tally(objective)
        self._began = clock.monotonic_s()
        self._phases = PhaseTimes()
        self._behind = 0
        self._live = Live(console=console, get_renderable=self.screen, refresh_per_second=4, transient=True)

    def __enter__(self) -> RichView:
        """Start drawing."""
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Take the screen away; what scrolled above it stays."""
        self._live.stop()

    def sweep_started(self, study: str, progress: Progress, baseline: ServerConfig) -> None:
        """Show where the sweep stands."""
        self._tally.baseline = baseline
        self._tally.study, self._tally.progress = study, progress

    def launch_started(self, proposal: Proposal, progress: Progress) -> None:
        """Show the new trial."""
        self._tally.begin(proposal, progress)
        self._began = self._clock.monotonic_s()
        self._phases.enter(self._tally.phase, self._began)

    def phase(self, name: str) -> None:
        """Show the phase."""
        self._tally.enter(name)
        self._phases.enter(self._tally.phase, self._clock.monotonic_s())

    def request_done(self, result: RequestResult, done: int, total: int) -> None:
        """Show the rate so far."""
        self._tally.count(result, done, total)

    def launch_ended(self, record: LaunchRecord, progress: Progress) -> None:
        """Let the finished launch scroll away as one line."""
        proposal = self._tally.proposal
        self._tally.end(record, progress)
        self._began = self._clock.monotonic_s()
        self._phases.leave(self._began)
        title = self._tally.title(proposal) if proposal else f"trial {record.trial_number}"
        mark = "[green]✓[/]" if record.ok else "[red]✗[/]"
        self._console.print(
            f"{mark} {escape(title)}  [bold]{escape(self._tally.outcome(record))}[/]", highlight=False
        )

    def synced(self, behind: int, error: str) -> None:
        """Show how far MLflow is behind."""
        self._behind = behind

    def notice(self, text: str) -> None:
        """Let it scroll away as one line."""
        self._console.print(f"[yellow]●[/] {escape(plain(text, 2000))}", highlight=False)

    def screen(self) -> RenderableType:
        """What is on the screen now."""
        progress = self._tally.progress
        if progress is None:
            return Text("reading the study ...")
        narrow = self._console.width < NARROW
        table = Table.grid(padding=(0, 1 if narrow else 2))
        table.add_column(style="dim", no_wrap=True)
        table.add_column(overflow="fold")
        for label, text in self._lines(progress):
            table.add_row(label, Text(text, style="bold" if label == "now" else ""))
        total = max(1, progress.trials_total)
        width = max(10, min(48, self._console.width - 10))
        table.add_row("", ProgressBar(total=total, completed=progress.trials_done, width=width))
        table.add_row("", Text("Ctrl-C finishes this launch and stops; run again to go on", style="dim"))
        return Group(Text(), table)

    def _lines(self, progress: Progress) -> Iterator[tuple[str, str]]:
        """Labels and what they say."""
        tally, at_s = self._tally, self._clock.monotonic_s()
        elapsed_s = at_s - self._began
        yield "study", f"{tally.study}, {standing(progress, elapsed_s)}"
        if (eta := eta_of(progress, elapsed_s)) is not None and spent(eta.low_s) != spent(eta.high_s):
            yield "", f"between {spent(eta.low_s)} and {spent(eta.high_s)}, if launches go on as before"
        if tally.proposal is not None:
            yield "now", tally.title(tally.proposal)
            yield from (
                (label, text) for label, text in (("why", tally.why()), ("left", tally.remaining())) if text
            )
        if tally.phase:
            passed = phase_text(self._phases.elapsed_s(at_s), self._phases.expected_s)
            yield "phase", f"{tally.activity()}, {passed}; launch {spent(elapsed_s)}"
        yield "best", "; ".join(filter(None, [tally.best(), tally.luck()]))
        if len(progress.course) > 1:
            room = max(8, min(60, self._console.width - 12))
            yield (
                "course",
                sparkline(progress.course, room, ascii_only=not self._console.encoding.startswith("utf")),
            )
        for index, launch in enumerate(progress.failures):
            yield ("failed" if index == 0 else ""), f"trial {launch.trial_number}: {tally.outcome(launch)}"
        if doubtful := tally.num_doubtful:
            yield "doubts", f"in {doubtful} launch{'es' if doubtful > 1 else ''}; the report says which"
        if self._behind:
            yield "mlflow", f"{self._behind} trial{'s' if self._behind > 1 else ''} behind"


class Views:
    """Several views told the same: the screen and the log file."""

    def __init__(self, *views: View) -> None:
        self._views = views

    def sweep_started(self, study: str, progress: Progress, baseline: ServerConfig) -> None:
        """Passed on."""
        for view in self._views:
            view.sweep_started(study, progress, baseline)

    def launch_started(self, proposal: Proposal, progress: Progress) -> None:
        """Passed on."""
        for view in self._views:
            view.launch_started(proposal, progress)

    def phase(self, name: str) -> None:
        """Passed on."""
        for view in self._views:
            view.phase(name)

    def request_done(self, result: RequestResult, done: int, total: int) -> None:
        """Passed on."""
        for view in self._views:
            view.request_done(result, done, total)

    def launch_ended(self, record: LaunchRecord, progress: Progress) -> None:
        """Passed on."""
        for view in self._views:
            view.launch_ended(record, progress)

    def synced(self, behind: int, error: str) -> None:
        """Passed on."""
        for view in self._views:
            view.synced(behind, error)

    def notice(self, text: str) -> None:
        """Passed on."""
        for view in self._views:
            view.notice(text)
