"""How much numbers vary that ought to be equal: within a launch, between prompts, and from start to start.

Spreads are standard deviations of the logarithm, in percent.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence

from sweeper.deciding.drift import Drift
from sweeper.deciding.values import Value, values_of
from sweeper.records import LaunchRecord, Record, TrialRecord
from sweeper.statistics.stats import pooled_variance

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
        return _expected(self.launches, self.pass_error_pct)

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
    groups = {trial.number: values_of(trial, objective) for trial in trials}
    every = [value for group in groups.values() for value in group]
    rivals = [value.launch for number, group in groups.items() if number for value in group]
    passes, pass_error_pct = _passes(every)
    return Noise(
        launches=_between_launches(groups.values(), drift or Drift()),
        passes=passes,
        prompts=_spread([_logs(value.launch.prompt_throughputs.values()) for value in every]),
        prompt_ratios=_ratios_to_baseline(rivals, [value.launch for value in groups.get(0, ())]),
        pass_error_pct=pass_error_pct,
    )


def expected_launch_noise(trials: Sequence[TrialRecord], objective: str, drift: Drift) -> Spread:
    """`Noise.expected_launch` alone: for who asks after each launch."""
    return noise_expected_of([values_of(trial, objective) for trial in trials], drift)


def noise_expected_of(groups: Sequence[Sequence[Value]], drift: Drift) -> Spread:
    """The same of the values of trials."""
    error_pct = _passes([value for group in groups for value in group])[1]
    return _expected(_between_launches(groups, drift), error_pct)


def _between_launches(groups: Iterable[Sequence[Value]], drift: Drift) -> Spread | None:
    repeated = [group for group in groups if len(group) > 1]
    return _spread([[math.log(value.corrected(drift)) for value in group] for group in repeated])


def _passes(values: Sequence[Value]) -> tuple[Spread | None, float]:
    """The spread of passes, and what it leaves uncertain of their mean, in percent."""
    scatters = [value.scatter for value in values if value.scatter[1] > 1]
    degrees = sum(count - 1 for _, count in scatters)
    if not degrees:
        return None, 0.0
    variance = sum(squares for squares, _ in scatters) / degrees
    within = Spread(pct=100 * math.sqrt(variance), degrees=degrees)
    return within, within.pct / math.sqrt(statistics.fmean(count for _, count in scatters))


def _expected(seen: Spread | None, pass_error_pct: float) -> Spread:
    guess = max(PRIOR_LAUNCH_PCT, pass_error_pct)
    degrees, squares = PRIOR_DEGREES, PRIOR_DEGREES * guess**2
    if seen is not None:
        degrees, squares = degrees + seen.degrees, squares + seen.degrees * seen.pct**2
    return Spread(pct=math.sqrt(squares / degrees), degrees=degrees)


def corrected(launch: LaunchRecord, objective: str, drift: Drift) -> float:
    """The launch's objective as it would have been at the first launch of the baseline."""
    return launch.metrics[objective] / drift.factor(launch.started_at)


def prompt_means(rates: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Prompt id to its mean over launches, whose `rates` these are; for prompts that all of them measured."""
    return {
        prompt: statistics.fmean(each[prompt] for each in rates)
        for prompt in rates[0]
        if all(prompt in each for each in rates)
    }


def prompt_ratios(rates: Sequence[Mapping[str, float]], theirs: Mapping[str, float]) -> Spread | None:
    """How far a prompt's ratio to `theirs` (throughput by prompt) lies from that of the launch as a whole."""
    known = {prompt: rate for prompt, rate in theirs.items() if rate > 0}
    return _spread([
        [math.log(rate / known[prompt]) for prompt, rate in each.items() if prompt in known and rate > 0]
        for each in rates
    ])  # fmt: skip


def _ratios_to_baseline(rivals: Sequence[LaunchRecord], baseline: Sequence[LaunchRecord]) -> Spread | None:
    theirs = baseline[0].prompt_throughputs if baseline else {}
    return prompt_ratios([launch.prompt_throughputs for launch in rivals], theirs) if theirs else None


def _logs(values: Iterable[float]) -> list[float]:
    return [math.log(value) for value in values if value > 0]


def _spread(groups: Sequence[Sequence[float]]) -> Spread | None:
    """The pooled spread within groups of logarithms; None when no group has two."""
    variance, degrees = pooled_variance(groups)
    return Spread(pct=100 * math.sqrt(variance), degrees=degrees) if degrees else None
