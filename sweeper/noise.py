"""How much numbers vary that ought to be equal: within a launch, between prompts, and from start to start.

Spreads are standard deviations of the logarithm, in percent.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence

from sweeper.drift import Drift
from sweeper.launches import usable
from sweeper.records import LaunchRecord, Record, TrialRecord
from sweeper.stats import pooled_variance

PRIOR_LAUNCH_PCT = 1.5
"""What one start differs from the next by, before anything is known of this host.

Servers with a GPU to themselves repeat within 0.5 to 3 % when they are warm. Too small a guess would lose the true
winner before it is launched a second time, too large a one costs a launch or two.
"""

PRIOR_DEGREES = 3
"""So many repetitions is the guess worth: after as many of the sweep's own, each counts half."""


class Spread(Record):
    """A pooled standard deviation in percent, and the degrees of freedom that it is drawn from."""

    pct: float
    degrees: int


class Noise(Record):
    """The separate spreads; one that was not seen is absent.

    `launches`: of a configuration's objective from one start to the next. `passes`: of the passes within a launch.
    `prompts`: between the prompts of one launch (texts differ, servers do not: no noise, but why comparisons are
    paired by prompt). `prompt_ratios`: of a prompt's ratio to the baseline around that of the whole workload.
    `pass_error_pct`: what the passes leave uncertain of a launch's mean.
    """

    launches: Spread | None = None
    passes: Spread | None = None
    prompts: Spread | None = None
    prompt_ratios: Spread | None = None
    pass_error_pct: float = 0.0

    @property
    def expected_launch(self) -> Spread:
        """What the next start is expected to differ by: as seen, and the guess as far as little has been seen.

        The guess is never below what the passes leave uncertain.
        """
        guess = max(PRIOR_LAUNCH_PCT, self.pass_error_pct)
        seen = self.launches or Spread(pct=0.0, degrees=0)
        degrees = PRIOR_DEGREES + seen.degrees
        squares = PRIOR_DEGREES * guess**2 + seen.degrees * seen.pct**2
        return Spread(pct=math.sqrt(squares / degrees), degrees=degrees)

    @property
    def text(self) -> str:
        """The figures in one line; empty when nothing was seen twice."""
        named = (
            ("from start to start", self.launches),
            ("between passes", self.passes),
            ("between prompts", self.prompts),
        )
        return ", ".join(f"{spread.pct:.1f} % {name}" for name, spread in named if spread is not None)


def noise_of(trials: Sequence[TrialRecord], objective: str, drift: Drift | None = None) -> Noise:
    """The noise that the measured launches of `trials` show; between starts with `drift` taken out."""
    drift = drift or Drift()
    launches = [[launch for launch in trial.measured if usable(launch, objective)] for trial in trials]
    every = [launch for group in launches for launch in group]
    passes = [_logs(launch.repeat_throughputs) for launch in every]
    num_passes = [len(group) for group in passes if len(group) > 1]
    within = _spread(passes)
    baseline = [group for trial, group in zip(trials, launches, strict=True) if trial.is_baseline and group]
    rivals = [
        launch for trial, group in zip(trials, launches, strict=True) if not trial.is_baseline for launch in group
    ]
    return Noise(
        launches=_spread(
            [[math.log(corrected(launch, objective, drift)) for launch in group] for group in launches]
        ),
        passes=within,
        prompts=_spread([_logs(launch.prompt_throughputs.values()) for launch in every]),
        prompt_ratios=prompt_ratios(rivals, prompt_means(baseline[0])) if baseline else None,
        pass_error_pct=within.pct / math.sqrt(sum(num_passes) / len(num_passes)) if within else 0.0,
    )


def corrected(launch: LaunchRecord, objective: str, drift: Drift) -> float:
    """The launch's objective as it would have been at the first launch of the baseline."""
    return launch.metrics[objective] / drift.factor(launch.started_at)


def prompt_means(launches: Sequence[LaunchRecord]) -> dict[str, float]:
    """Prompt id to its mean throughput over `launches`, for the prompts that all of them measured."""
    shared = set.intersection(*(set(launch.prompt_throughputs) for launch in launches)) if launches else set()
    return {
        prompt: statistics.fmean(launch.prompt_throughputs[prompt] for launch in launches)
        for prompt in launches[0].prompt_throughputs
        if prompt in shared
    }


def prompt_ratios(launches: Sequence[LaunchRecord], theirs: Mapping[str, float]) -> Spread | None:
    """How far a prompt's ratio to `theirs` (throughput by prompt) lies from that of the launch as a whole."""
    return _spread([
        _logs(
            rate / theirs[prompt]
            for prompt, rate in launch.prompt_throughputs.items()
            if theirs.get(prompt, 0.0) > 0
        )
        for launch in launches
    ])  # fmt: skip


def _logs(values: Iterable[float]) -> list[float]:
    return [math.log(value) for value in values if value > 0]


def _spread(groups: Sequence[Sequence[float]]) -> Spread | None:
    """The pooled spread within groups of logarithms; None when no group has two."""
    variance, degrees = pooled_variance(groups)
    return Spread(pct=100 * math.sqrt(variance), degrees=degrees) if degrees else None
