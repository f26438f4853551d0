"""Whole sweeps on simulated servers of known speed, through the real rules: what to launch, who stops, who wins.

Only the server and Optuna are left out: configurations are tried in the order of their numbers.
"""

from __future__ import annotations

import datetime
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from sweeper.deciding.best_so_far import reference
from sweeper.deciding.plan import Step, next_step
from sweeper.deciding.verdict import Verdict, decide
from sweeper.errors import FailureKind
from sweeper.measuring.figures import group_throughputs, metrics_of
from sweeper.measuring.stopping import SoFar, another_pass, hopeless
from sweeper.records import Failure, LaunchRecord, Purpose, Reference, RequestResult, TrialRecord, TrialState
from sweeper.spec import BudgetSpec, ServerConfig
from sweeper.workload_spec import Prompt, WorkloadSpec
from tests.fakes import EPOCH

OBJECTIVE = "output_throughput"
BASELINE_TOK_S = 80.0
TOKENS = 400
START = datetime.timedelta(minutes=8)
"""From the end of one launch's measuring to the beginning of the next one's."""

CRASH = Failure(kind=FailureKind.SERVER_CRASH, message="the server died")


@dataclass(frozen=True)
class World:
    """What is true. `gains`: each configuration's speed over the baseline's, in the order in which they are tried.

    Spreads in percent: `launch_pct` from start to start, `request_pct` from request to request, `prompt_pct`
    between prompts (10 % of 80 tok/s are 8), `suit_pct`: how differently a configuration suits the prompts.
    The host becomes faster by `drift_pct` over `night_hours`; with `settling_hours` quickly at first, then ever
    less: after so many hours 63 % of it are over. With `tail_degrees` what a start differs by has heavy tails:
    Student's distribution, as wide. Of the configurations a share, `crashing`, crashes in each confirming launch.
    """

    gains: Sequence[float]
    launch_pct: float = 1.5
    prompt_pct: float = 10.0
    request_pct: float = 0.5
    suit_pct: float = 0.0
    drift_pct: float = 0.0
    night_hours: float = 10.0
    settling_hours: float = 0.0
    tail_degrees: int = 0
    crashing: float = 0.0

    def luck(self, rng: random.Random) -> float:
        """What a start makes of the speed: a factor."""
        deviation = rng.gauss(0, self.launch_pct / 100)
        if self.tail_degrees:  # divided by a chi of mean square 1, narrowed to the same standard deviation
            square = rng.gammavariate(self.tail_degrees / 2, 2 / self.tail_degrees)
            deviation *= math.sqrt((1 - 2 / self.tail_degrees) / square)
        return math.exp(deviation)

    def host_speed(self, hours: float) -> float:
        """How fast the host is after so many hours, relative to the beginning."""
        settling = self.settling_hours
        share = -math.expm1(-hours / settling) if settling else hours / self.night_hours
        return math.exp(self.drift_pct / 100 * share)


@dataclass
class Night:
    """One sweep under way."""

    world: World
    budget: BudgetSpec
    rng: random.Random
    workload: WorkloadSpec
    trials: list[TrialRecord] = field(default_factory=list)
    elapsed: datetime.timedelta = datetime.timedelta()
    benchmark_s: float = 0.0
    search_benchmark_s: float = 0.0
    num_launches: int = 0

    def __post_init__(self) -> None:
        count = len(self.workload.prompts)
        prompts = [math.exp(self.rng.gauss(0, self.world.prompt_pct / 100)) for _ in range(count)]
        self._speeds = []
        for gain in (1.0, *self.world.gains):
            suits = [math.exp(self.rng.gauss(0, self.world.suit_pct / 100)) if gain != 1 else 1.0 for _ in prompts]
            rates = [BASELINE_TOK_S * prompt * suit for prompt, suit in zip(prompts, suits, strict=True)]
            scale = gain * BASELINE_TOK_S / (count / sum(1 / rate for rate in rates))
            self._speeds.append([rate * scale for rate in rates])
        self._crashing = {
            number
            for number in range(1, len(self.world.gains) + 1)
            if self.world.crashing and self.rng.random() < self.world.crashing
        }

    def run(self) -> Verdict:
        """The whole sweep, to its verdict."""
        while step := next_step(self.trials, self.budget, OBJECTIVE, len(self.trials) <= len(self.world.gains)):
            self.launch(step)
        return decide(self.trials, OBJECTIVE, fewest)

    def launch(self, step: Step) -> None:
        """Make one launch and write it down."""
        number = len(self.trials) if step.trial_number is None else step.trial_number
        known = reference(self.trials, OBJECTIVE) if step.purpose is Purpose.SEARCH and self.trials else None
        self.elapsed += START
        if step.purpose is Purpose.CONFIRM and number in self._crashing:
            record = self._launched(number, step.purpose, EPOCH + self.elapsed, failure=CRASH)
        else:
            record = self._measured(number, step.purpose, known)
        self.num_launches += 1
        if number == len(self.trials):
            config = record.canonical
            self.trials.append(
                TrialRecord(
                    number=number, key=config.key(), state=TrialState.COMPLETE, requested=config, canonical=config
                )
            )
        trial = self.trials[number]
        self.trials[number] = trial.model_copy(update={"launches": (*trial.launches, record)})

    def _measured(self, number: int, purpose: Purpose, known: Reference | None) -> LaunchRecord:
        began = EPOCH + self.elapsed
        hours = self.elapsed.total_seconds() / 3600
        luck = self.world.luck(self.rng) * self.world.host_speed(hours)
        requests, estimate = self._requests([speed * luck for speed in self._speeds[number]], known)
        spent_s = sum(request.e2e_latency_ms for request in requests) / 1000
        self.elapsed += datetime.timedelta(seconds=spent_s)
        self.benchmark_s += spent_s
        self.search_benchmark_s += spent_s if purpose is Purpose.SEARCH else 0.0
        record = self._launched(number, purpose, began)
        seen = {
            "metrics": {OBJECTIVE: estimate or metrics_of(requests)[OBJECTIVE]},
            "repeat_throughputs": tuple(group_throughputs(requests, lambda r: r.repeat).values()),
            "prompt_throughputs": group_throughputs(requests, lambda r: r.prompt_id),
            "estimated": "stopped early" if estimate else "",
        }
        return record.model_copy(update=seen)

    def _launched(
        self, number: int, purpose: Purpose, began: datetime.datetime, failure: Failure | None = None
    ) -> LaunchRecord:
        """A launch that ends now, without what was measured."""
        config = ServerConfig(flags={"m": number} if number else {})
        return LaunchRecord(
            trial_number=number,
            launch_number=len(self.trials[number].launches) if number < len(self.trials) else 0,
            purpose=purpose,
            requested=config,
            canonical=config,
            host="simulated",
            started_at=began,
            ended_at=EPOCH + self.elapsed,
            failure=failure,
        )

    def _requests(
        self, speeds: Sequence[float], known: Reference | None
    ) -> tuple[list[RequestResult], float | None]:
        """The requests that are sent, and the estimate if they end early."""
        sent: list[RequestResult] = []
        spent_s, repeat = 0.0, 0
        while True:
            for prompt, speed in zip(self.workload.prompts, speeds, strict=True):
                rate = speed * math.exp(self.rng.gauss(0, self.world.request_pct / 100))
                sent.append(request(prompt.id, rate, repeat))
                spent_s += TOKENS / rate
                if not repeat and (estimate := hopeless(sent, self.workload, known, OBJECTIVE)):
                    return sent, estimate.value
            repeat += 1
            if not another_pass(SoFar(sent, spent_s), self.workload, known):
                return sent, None


def request(prompt_id: str, rate: float, repeat: int) -> RequestResult:
    """One answer of so many tokens per second."""
    return RequestResult(
        prompt_id=prompt_id,
        prompt_class="default",
        repeat=repeat,
        sent_at=EPOCH,
        e2e_latency_ms=TOKENS * 1000 / rate,
        num_output_tokens=TOKENS,
    )


def workload(*, repeats: int = 2, max_repeats: int = 4, stop_hopeless: bool = True) -> WorkloadSpec:
    """Five prompts, one after another."""
    return WorkloadSpec(
        name="five",
        prompts=tuple(Prompt(id=name, text=name) for name in "abcde"),
        max_tokens=TOKENS,
        temperature=0,
        seed=0,
        repeats=repeats,
        max_repeats=max_repeats,
        stop_hopeless=stop_hopeless,
        request_timeout_s=60,
    )


def fewest(config: ServerConfig) -> tuple[float, ...]:
    """The simplest is the one with the lowest number."""
    return (float(config.flags.get("m", 0)),)
