"""Where the launch under way and the sweep stand, in words: what all views draw from. Pure."""

from __future__ import annotations

import datetime

from sweeper.deciding.plan import Progress
from sweeper.metrics import METRICS
from sweeper.naming import difference_text
from sweeper.records import LaunchRecord, Proposal, Purpose, RequestResult
from sweeper.spec import ServerConfig
from sweeper.text import plain

AGAIN = {
    Purpose.CONTROL: "the baseline again: has the host drifted?",
    Purpose.RECHECK: "again: too close to the best to be told apart by one launch",
    Purpose.CONFIRM: "again, in turn with the others that the verdict compares",
}
"""Why a configuration is launched that has been launched before."""


class Tally:
    """What has been seen so far. `num_doubtful`: launches of this process with a reason to look twice."""

    def __init__(self, objective: str) -> None:
        self.objective = METRICS[objective]
        self.study = ""
        self.proposal: Proposal | None = None
        self.progress: Progress | None = None
        self.baseline = ServerConfig()
        self.num_doubtful = 0
        self.phase = ""
        self._clear()

    def _clear(self) -> None:
        """Nothing has been sent yet."""
        self._done = self._total = self._num_warmups = self._tokens = 0
        self._busy_s = 0.0
        self._busy_until: datetime.datetime | None = None

    def begin(self, proposal: Proposal, progress: Progress) -> None:
        """A launch has begun."""
        self.proposal, self.progress = proposal, progress
        self.enter("starting")

    def enter(self, phase: str) -> None:
        """A phase has begun. Each workload has one of its own, whose requests are counted from the start."""
        self.phase = plain(phase)
        self._clear()

    def count(self, result: RequestResult, done: int, total: int) -> None:
        """A request has ended; `total` may change with every one."""
        self._done, self._total = done, max(done, total)
        if result.repeat < 0:
            self._num_warmups += 1
            return
        self._tokens += result.num_output_tokens
        ended = result.sent_at + datetime.timedelta(milliseconds=result.e2e_latency_ms)
        began = max(result.sent_at, self._busy_until or result.sent_at)  # requests may overlap
        self._busy_s += max(0.0, (ended - began).total_seconds())
        self._busy_until = max(ended, self._busy_until or ended)

    def end(self, record: LaunchRecord, progress: Progress) -> None:
        """A launch has ended."""
        self.progress = progress
        self.num_doubtful += bool(num_doubts(record))

    @property
    def rate(self) -> float | None:
        """Output tokens per second so far under this workload, warm-ups left out; None before the first one."""
        return self._tokens / self._busy_s if self._busy_s else None

    def activity(self) -> str:
        """`measuring, warm-up request 3`, `measuring busy, request 7 of 12, 50.0 tok/s so far`."""
        if not self._done:
            return self.phase
        if not self._busy_s:
            return f"{self.phase}, warm-up request {self._num_warmups}"
        of_all = f"request {self._done - self._num_warmups} of {self._total - self._num_warmups}"
        return f"{self.phase}, {of_all}, {self.rate:.1f} tok/s so far"

    def title(self, proposal: Proposal) -> str:
        """`trial 7: ngram-simple n3`, `trial 0, control: baseline`: named by the difference from the baseline."""
        name = difference_text(proposal.canonical, self.baseline) if not proposal.is_baseline else "baseline"
        again = f", {proposal.purpose}" if proposal.purpose in AGAIN else ""
        return f"trial {proposal.trial_number}{again}: {plain(name)}"

    def outcome(self, record: LaunchRecord) -> str:
        """How a launch ended, in one line."""
        if record.failure is not None:
            return f"{record.failure.kind}: {plain(record.failure.message, 160)}"
        value = record.metrics.get(self.objective.name)
        about = "≈ " if record.estimated else ""
        parts = (
            [f"{about}{self.objective.format(value)} {self.objective.unit}".rstrip()] if value is not None else []
        )
        base = self.progress.baseline_value if self.progress else None
        if value is not None and base and record.trial_number:
            parts.append(f"{about}{value / base:.2f} x baseline")
        if (accept := record.metrics.get("accept_length")) is not None:
            parts.append(f"accept_len {accept:.2f}")
        if value is not None and (error := self._error_pct(record, value)) is not None:
            parts.append(f"{abs(error):.1f} % {'above' if error >= 0 else 'below'} the prediction")
        if record.estimated:
            parts.append(early_stop(record.estimated))
        if doubts := num_doubts(record):
            parts.append(f"{doubts} doubt{'s' if doubts > 1 else ''}")
        return ", ".join(parts)

    def why(self) -> str:
        """Why the launch under way is made: again, or what the search expects of it; empty when nothing says."""
        proposal = self.proposal
        if proposal is None or proposal.forecast is None:
            return AGAIN.get(proposal.purpose, "") if proposal else ""
        return f"{proposal.forecast.text}; {plain(proposal.forecast.reason)}"

    def remaining(self) -> str:
        """What the search still expects to gain, in words; empty when it does not say."""
        forecast = self.proposal.forecast if self.proposal else None
        return forecast.remaining_text if forecast else ""

    def _error_pct(self, record: LaunchRecord, value: float) -> float | None:
        """How far a measured value lies above what was predicted of it; None for an estimate, or no prediction."""
        proposal = self.proposal
        if proposal is None or proposal.trial_number != record.trial_number or record.estimated:
            return None
        forecast = proposal.forecast
        return forecast.throughput.error_pct(value) if forecast and forecast.throughput else None

    def best(self) -> str:
        """Best so far against the baseline; marked when it is an estimate."""
        progress = self.progress
        if progress is None or progress.baseline_value is None:
            return "baseline not measured yet"
        text = f"baseline {self._value(progress.baseline_value)}"
        if progress.best_trial is None or progress.best_value is None:
            return text
        ratio = progress.best_value / progress.baseline_value
        about = "≈ " if any(launch.estimated for launch in progress.best_trial.measured) else ""
        value = f"{about}{self._value(progress.best_value)} ({about}{ratio:.2f} x)"
        return f"trial {progress.best_trial.number}: {value}, {text}"

    def luck(self) -> str:
        """Whether the best so far may only seem better than the baseline; empty when it does not seem so."""
        progress = self.progress
        if progress is None or not progress.best_value or not progress.baseline_value:
            return ""
        return luck_text(progress.best_value / progress.baseline_value, progress.luck_pct)

    def _value(self, value: float) -> str:
        return f"{self.objective.format(value)} {self.objective.unit}".rstrip()


def luck_text(ratio: float, luck_pct: float | None) -> str:
    """Whether a best above the baseline may be the luckiest of its equals; empty when it is not above."""
    if luck_pct is None or ratio <= 1:
        return ""
    more = 100 * (ratio - 1) > luck_pct
    return f"{'more than' if more else 'what'} chance may show ({1 + luck_pct / 100:.2f} x)"


def early_stop(estimated: str) -> str:
    """Why measuring ended early: the first clause of the launch's own words."""
    why = plain(estimated.partition(";")[0], 160)
    return why if why.startswith("stopped") else f"stopped early: {why}"


def num_doubts(record: LaunchRecord) -> int:
    """The launch's reasons to look twice, under all its workloads."""
    return len(record.doubts) + sum(len(result.doubts) for result in record.others.values())


def standing(progress: Progress, elapsed_s: float = 0.0) -> str:
    """How far the sweep has come and how long it may still take, `elapsed_s` into the next of its launches."""
    if progress.trials_done < progress.trials_total:
        text = f"{progress.trials_done} of {progress.trials_total} trials done"
    else:
        text = f"all {progress.trials_total} trials done"
        left = progress.launches_left
        text += f", up to {left} launch{'es' if left != 1 else ''} again" if left else ""
    if progress.night_ends:
        text += f", the night ends {progress.night_ends}"
    if progress.eta_s is None:
        return text
    # A launch that takes longer than its like is not soon done: what the others take is left all the same.
    rest_s = max(0, progress.launches_left - 1) * (progress.mean_launch_s or 0.0)
    left_s = max(rest_s, progress.eta_s - elapsed_s)
    if progress.night_left_s is not None:
        left_s = max(0.0, min(left_s, progress.night_left_s - elapsed_s))
    return f"{text}, about {spent(left_s)} to go"


def spent(seconds: float) -> str:
    """`42 s`, `7 min`, `5 h 10 min`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min"
