"""How far a verdict can be trusted: hundreds of simulated sweeps of known truth, through the real rules.

`python -m tests.bench.verdicts` prints, for each kind of night: how often a winner was named wrongly and rightly,
what the reported speed-up is off by (in percent of the true one, with its standard error), what the advice costs
against the best there is, how many launches of the best configurations were given up early, how many launches it
took (mean and most), and minutes of benchmark (in the search, and in all). Every sweep has its own seed.
"""

from __future__ import annotations

import argparse
import math
import random
import statistics
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace

from sweeper.deciding.verdict import VerdictKind
from sweeper.spec import BudgetSpec
from sweeper.workload_spec import WorkloadSpec
from tests.bench.nights import Night, World, workload

BUDGET = BudgetSpec(trials=21, baseline_every=8, shortlist=14, finalists=2, confirm_launches=5)
NUM_RIVALS = 20
FIVE = workload()


@dataclass(frozen=True)
class Outcome:
    """One sweep. `gain_pct`: what was reported of the advised configuration; `true_gain_pct`: the truth.

    `regret_pct`: what the advised configuration is slower than the best one, in truth. `given_up_pct`: of those
    that are as fast as the best one so many had no more than an estimate, their launch having no hope.
    """

    won: bool
    gain_pct: float
    true_gain_pct: float
    regret_pct: float
    given_up_pct: float
    num_launches: int
    benchmark_s: float
    search_benchmark_s: float


@dataclass(frozen=True)
class Scenario:
    """A kind of night. `world` draws the truth of one sweep; kinds of one `stream` see the same nights."""

    stream: int
    name: str
    world: Callable[[random.Random], World]
    load: WorkloadSpec = FIVE
    budget: BudgetSpec = BUDGET
    num_sweeps: int = 200


def null(_rng: random.Random) -> World:
    """All are as fast as the baseline."""
    return World([1.0] * NUM_RIVALS)


def one_winner(rng: random.Random) -> World:
    """One is 3 % faster, the others are as fast as the baseline."""
    gains = [1.03] + [1.0] * (NUM_RIVALS - 1)
    rng.shuffle(gains)
    return World(gains)


def lonely_winner(rng: random.Random) -> World:
    """One is 3 % faster, and nobody comes near it: the others are 5 to 40 % slower than the baseline."""
    gains = [1.03] + [rng.uniform(0.6, 0.95) for _ in range(NUM_RIVALS - 1)]
    rng.shuffle(gains)
    return World(gains)


def faster_host(rng: random.Random) -> World:
    """As `null`, and the host becomes 5 % faster over the night: whoever is measured late looks good."""
    return replace(null(rng), drift_pct=5.0)


def slower_host(rng: random.Random) -> World:
    """As `null`, and the host becomes 5 % slower over the night."""
    return replace(null(rng), drift_pct=-5.0)


def settling_host(rng: random.Random) -> World:
    """As `null`, and the host becomes 5 % slower and levels off: a card that warms up, say."""
    return replace(null(rng), drift_pct=-5.0, settling_hours=2.0)


def winner_on_slower_host(rng: random.Random) -> World:
    """One is 3 % faster, on a host that becomes 5 % slower."""
    return replace(one_winner(rng), drift_pct=-5.0)


def lonely_equal(rng: random.Random) -> World:
    """One is as fast as the baseline, and nobody comes near it: the others are 5 to 40 % slower."""
    world = lonely_winner(rng)
    return replace(world, gains=[min(gain, 1.0) for gain in world.gains])


def crashing(rng: random.Random) -> World:
    """As `null`, and two of five configurations crash whenever they are to be confirmed."""
    return replace(null(rng), crashing=0.4)


def noisy_winner(rng: random.Random) -> World:
    """One is 3 % faster where starts differ by 3 %, too."""
    return replace(one_winner(rng), launch_pct=3.0)


def heavy_tails(rng: random.Random) -> World:
    """One is 3 % faster, and a start may differ by far more than usual."""
    return replace(one_winner(rng), tail_degrees=3)


def clear(rng: random.Random) -> World:
    """One is 30 % faster, the others lie between half and 1.1 times the baseline."""
    gains = [1.3] + [0.5 + 0.6 * number / (NUM_RIVALS - 2) for number in range(NUM_RIVALS - 1)]
    rng.shuffle(gains)
    return World(gains)


def surface(rng: random.Random) -> World:
    """Draft lengths and widths as they are: further drafts are kept ever less often, and each costs time."""
    chance = rng.uniform(0.55, 0.75)
    every = [(steps, width) for steps in range(1, 9) for width in (1, 2, 4, 8)]
    return World([_speed(steps, width, chance) for steps, width in rng.sample(every, NUM_RIVALS)], suit_pct=4.0)


def _speed(steps: int, width: int, chance: float) -> float:
    """Tokens kept per step, over what a step costs; without drafts both are 1."""
    kept_each = 1 - (1 - chance) ** (1 + 0.35 * math.log2(width))
    kept: float = (1 - kept_each ** (steps + 1)) / (1 - kept_each)
    return kept / (1 + 0.11 * steps + 0.012 * steps * width)


SCENARIOS = (
    Scenario(1, "no difference", null),
    Scenario(2, "one is 3 % faster", one_winner),
    Scenario(9, "one is 3 % faster, all others slower", lonely_winner),
    Scenario(3, "no difference, host 5 % faster at the end", faster_host),
    Scenario(4, "no difference, host 5 % slower at the end", slower_host),
    Scenario(5, "one is 3 % faster, host 5 % slower", winner_on_slower_host),
    Scenario(8, "no difference, host levels off 5 % slower", settling_host),
    Scenario(1, "no difference, 40 % crash when confirmed", crashing),
    Scenario(9, "one is as fast, all others slower", lonely_equal),
    Scenario(2, "one is 3 % faster, starts differ by 3 %", noisy_winner, num_sweeps=100),
    Scenario(2, "one is 3 % faster, heavy tails", heavy_tails, num_sweeps=100),
    Scenario(6, "one is 30 % faster", clear, num_sweeps=40),
    Scenario(7, "a surface of drafts", surface, num_sweeps=60),
    Scenario(7, "the same, every launch to its end", surface, workload(stop_hopeless=False), num_sweeps=60),
)


def sweep(scenario: Scenario, seed: int) -> Outcome:
    """One sweep of this kind."""
    rng = random.Random(seed)
    world = scenario.world(rng)
    night = Night(world, scenario.budget, rng, scenario.load)
    verdict = night.run()
    advised = verdict.advised or 0
    gains = (1.0, *world.gains)
    reported = next((row.speedup for row in verdict.comparisons if row.trial_number == advised), 1.0)
    return Outcome(
        won=verdict.kind is not VerdictKind.NO_GAIN,
        gain_pct=100 * (reported - 1),
        true_gain_pct=100 * (gains[advised] - 1),
        regret_pct=100 * (1 - gains[advised] / max(gains)),
        given_up_pct=_given_up_pct(night, gains),
        num_launches=night.num_launches,
        benchmark_s=night.benchmark_s,
        search_benchmark_s=night.search_benchmark_s,
    )


def _given_up_pct(night: Night, gains: Sequence[float]) -> float:
    best = [trial for trial in night.trials[1:] if gains[trial.number] == max(gains)]
    return 100 * sum(trial.launches[0].estimated != "" for trial in best) / max(1, len(best))


def _run(numbered: tuple[int, int]) -> Outcome:
    return sweep(SCENARIOS[numbered[0]], numbered[1])


def report(scenario: Scenario, outcomes: Sequence[Outcome]) -> str:
    """One line of figures."""
    won = [outcome for outcome in outcomes if outcome.won]
    right = sum(outcome.true_gain_pct > 0 for outcome in won)
    off = [100 * ((100 + outcome.gain_pct) / (100 + outcome.true_gain_pct) - 1) for outcome in won]
    regret = statistics.fmean(outcome.regret_pct for outcome in outcomes)
    error = statistics.stdev(off) / math.sqrt(len(off)) if len(off) > 1 else math.inf
    bias = f"{statistics.fmean(off):+.2f} ({error:.2f}) %" if off else "-"
    launches = [outcome.num_launches for outcome in outcomes]
    return (
        f"{scenario.name:42} {len(outcomes):5} {100 * (len(won) - right) / len(outcomes):6.1f} % "
        f"{100 * right / len(outcomes):6.1f} % {bias:>14} {regret:6.2f} % "
        f"{statistics.fmean(outcome.given_up_pct for outcome in outcomes):6.2f} % "
        f"{statistics.fmean(launches):6.1f} {max(launches):4} "
        f"{statistics.fmean(o.search_benchmark_s for o in outcomes) / 60:6.1f} "
        f"{statistics.fmean(o.benchmark_s for o in outcomes) / 60:6.1f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=1.0, help="so many times as many sweeps")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="scenarios with this in their name")
    parser.add_argument("--processes", type=int, help="so many at once, if not one for each core")
    arguments = parser.parse_args()
    print(
        f"{'':42} {'nights':>5} {'false':>8} {'right':>8} {'bias':>14} {'regret':>8} {'given up':>8} "
        f"{'launches':>6} max {'search':>6} {'all min':>6}"
    )
    with ProcessPoolExecutor(arguments.processes) as pool:
        for number, scenario in enumerate(SCENARIOS):
            if arguments.only in scenario.name:
                count = max(1, round(scenario.num_sweeps * arguments.scale))
                jobs = [(number, 100_000 * arguments.seed + 10_000 * scenario.stream + i) for i in range(count)]
                print(report(scenario, list(pool.map(_run, jobs, chunksize=4))), flush=True)


if __name__ == "__main__":
    main()
