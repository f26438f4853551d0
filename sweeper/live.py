"""What a person sees while a sweep runs: one screen that is worth leaving open, or plain lines for a file."""

from __future__ import annotations

import datetime
from typing import Protocol

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from launchers.clock import Clock
from sweeper.metrics import METRICS
from sweeper.naming import difference_text
from sweeper.plan import Progress
from sweeper.records import LaunchRecord, Proposal, RequestResult
from sweeper.spec import ServerConfig
from sweeper.text import plain


class View(Protocol):
    """Told about everything that happens; never decides anything."""

    def sweep_started(self, study: str, progress: Progress, baseline: ServerConfig) -> None:
        """Before the first launch of this process."""

    def launch_started(self, proposal: Proposal, progress: Progress) -> None:
        """Before each launch."""

    def phase(self, name: str) -> None:
        """The launch has entered a phase (`starting`, `loading model`, `ready`, `measuring`, `stopping`)."""

    def request_done(self, result: RequestResult, done: int, total: int) -> None:
        """A request of the benchmark has ended; `done` of `total`, warm-ups included."""

    def launch_ended(self, record: LaunchRecord, progress: Progress) -> None:
        """After each launch, measured or failed."""

    def notice(self, text: str) -> None:
        """Something a person should know that is not part of the ordinary course."""


class _Tally:
    """The state both views draw from."""

    def __init__(self, objective: str) -> None:
        self.objective = METRICS[objective]
        self.study = ""
        self.proposal: Proposal | None = None
        self.progress: Progress | None = None
        self.phase = ""
        self.done = self.total = 0
        self.tokens = 0
        self.busy_ms = 0.0
        self.baseline = ServerConfig()

    def begin(self, proposal: Proposal, progress: Progress) -> None:
        self.proposal, self.progress = proposal, progress
        self.phase, self.done, self.total, self.tokens, self.busy_ms = "starting", 0, 0, 0, 0.0

    def count(self, result: RequestResult, done: int, total: int) -> None:
        self.done, self.total = done, total
        if result.repeat < 0:
            return
        self.tokens += result.num_output_tokens
        self.busy_ms += result.e2e_latency_ms

    @property
    def rate(self) -> float | None:
        """Output tokens per second so far in this launch, warm-ups left out; None before the first request."""
        return 1000 * self.tokens / self.busy_ms if self.busy_ms else None

    def title(self, proposal: Proposal) -> str:
        """`trial 7 (confirm): spec_type=...`, against the baseline's flags."""
        name = difference_text(proposal.canonical, self.baseline) if not proposal.is_baseline else "baseline"
        again = f", {proposal.purpose}" if proposal.purpose == "confirm" else ""
        return f"trial {proposal.trial_number}{again}: {plain(name)}"

    def outcome(self, record: LaunchRecord) -> str:
        """How a launch ended, in one line."""
        if record.failure is not None:
            return f"{record.failure.kind}: {plain(record.failure.message, 160)}"
        value = record.metrics.get(self.objective.name)
        parts = [f"{self.objective.format(value)} {self.objective.unit}"] if value is not None else []
        base = self.progress.baseline_value if self.progress else None
        if value is not None and base and record.trial_number:
            parts.append(f"{value / base:.2f} x baseline")
        if (accept := record.metrics.get("accept_length")) is not None:
            parts.append(f"accept_len {accept:.2f}")
        return ", ".join(parts)

    def best(self) -> str:
        """Best so far against the baseline."""
        progress = self.progress
        if progress is None or progress.baseline_value is None:
            return "baseline not measured yet"
        text = f"baseline {self.objective.format(progress.baseline_value)} {self.objective.unit}"
        if progress.best_trial is None or progress.best_value is None:
            return text
        ratio = progress.best_value / progress.baseline_value
        best = f"trial {progress.best_trial.number}: {self.objective.format(progress.best_value)}"
        return f"{best} {self.objective.unit} ({ratio:.2f} x), {text}"


class PlainView:
    """One line per event that matters, each with the time of day: for logs, pipes and `nohup`."""

    def __init__(self, console: Console, clock: Clock, objective: str) -> None:
        self._console = console
        self._clock = clock
        self._tally = _Tally(objective)

    def sweep_started(self, study: str, progress: Progress, baseline: ServerConfig) -> None:
        """Say where the sweep stands."""
        self._tally.baseline = baseline
        done = f"{progress.trials_done} of {progress.trials_total} trials done"
        self._line(f"study {study}: {done}, about {progress.launches_left} launches to go")

    def launch_started(self, proposal: Proposal, progress: Progress) -> None:
        """Say which trial and how long it may all take."""
        self._tally.begin(proposal, progress)
        self._line(f"{self._tally.title(proposal)} ({_where(progress)})")

    def phase(self, name: str) -> None:
        """Not worth a line of its own."""
        self._tally.phase = name

    def request_done(self, result: RequestResult, done: int, total: int) -> None:
        """Not worth a line of its own."""
        self._tally.count(result, done, total)

    def launch_ended(self, record: LaunchRecord, progress: Progress) -> None:
        """Say how it ended and what is best so far."""
        self._tally.progress = progress
        self._line(f"trial {record.trial_number}: {self._tally.outcome(record)} [best {self._tally.best()}]")

    def notice(self, text: str) -> None:
        """Say it."""
        self._line(f"note: {plain(text, 2000)}")

    def _line(self, text: str) -> None:
        stamp = self._clock.now().astimezone().strftime("%H:%M:%S")
        self._console.print(f"{stamp} {text}", markup=False, highlight=False, soft_wrap=True)


class RichView:
    """A screen that redraws itself; finished launches scroll away above it. Use as a context manager."""

    def __init__(self, console: Console, clock: Clock, objective: str) -> None:
        self._clock = clock
        self._console = console
        self._tally = _Tally(objective)
        self._began = clock.monotonic_s()
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

    def phase(self, name: str) -> None:
        """Show the phase."""
        self._tally.phase = name

    def request_done(self, result: RequestResult, done: int, total: int) -> None:
        """Show the rate so far."""
        self._tally.count(result, done, total)

    def launch_ended(self, record: LaunchRecord, progress: Progress) -> None:
        """Let the finished launch scroll away as one line."""
        proposal, self._tally.progress = self._tally.proposal, progress
        title = self._tally.title(proposal) if proposal else f"trial {record.trial_number}"
        mark = "[green]✓[/]" if record.ok else "[red]✗[/]"
        self._console.print(
            f"{mark} {escape(title)}  [bold]{escape(self._tally.outcome(record))}[/]", highlight=False
        )

    def notice(self, text: str) -> None:
        """Let it scroll away as one line."""
        self._console.print(f"[yellow]●[/] {escape(plain(text, 2000))}", highlight=False)

    def screen(self) -> RenderableType:
        """What is on the screen now."""
        tally, progress = self._tally, self._tally.progress
        if progress is None:
            return Text("reading the study ...")
        table = Table.grid(padding=(0, 2))
        table.add_column(style="dim", no_wrap=True)
        table.add_column(overflow="fold")
        table.add_row("study", Text(f"{tally.study}, {_where(progress)}"))
        if tally.proposal is not None:
            elapsed = _minutes(self._clock.monotonic_s() - self._began)
            requests = f", request {tally.done} of {tally.total}" if tally.total else ""
            rate = f", {tally.rate:.1f} tok/s so far" if tally.rate else ""
            table.add_row("now", Text(tally.title(tally.proposal), style="bold"))
            table.add_row("phase", Text(f"{tally.phase}{requests}{rate}, {elapsed}"))
        table.add_row("best", Text(tally.best()))
        total = max(1, progress.trials_total)
        table.add_row("", ProgressBar(total=total, completed=progress.trials_done, width=48))
        table.add_row("", Text("Ctrl-C finishes this launch and stops; run again to go on", style="dim"))
        return Group(Text(), table)


def _where(progress: Progress) -> str:
    text = f"{progress.trials_done} of {progress.trials_total} trials done"
    return f"{text}, about {_minutes(progress.eta_s)} to go" if progress.eta_s is not None else text


def _minutes(seconds: float) -> str:
    """`42 s`, `7 min`, `5 h 10 min`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    delta = datetime.timedelta(minutes=round(seconds / 60))
    hours, minutes = divmod(int(delta.total_seconds()) // 60, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min"


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

    def notice(self, text: str) -> None:
        """Passed on."""
        for view in self._views:
            view.notice(text)
