"""One simulated server, and what a restart and its benchmark show of it.

A sampler may use `evaluate`, `all_reduce` and `facts`; `true_mean` and `best` are the truth that it is judged by.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from tests.bench.search.simulator.configurations import (
    ALGORITHM,
    FLAGS,
    NONE,
    Config,
    Trees,
    baseline,
    canonical,
    config_of,
    drafter_name,
    key,
    tree_of,
    trees,
)
from tests.bench.search.simulator.drafters import NUM_PROMPTS, Acceptance, acceptance, draw_drafters
from tests.bench.search.simulator.draws import Floats, generator
from tests.bench.search.simulator.interactions import distort, draw_interactions
from tests.bench.search.simulator.machine import Machine, draw_machine
from tests.bench.search.simulator.optimum import Optimum, find_optimum
from tests.bench.search.simulator.regimes import REGIMES, kind_of
from tests.bench.search.simulator.starts import Failure, Starts, draw_starts
from tests.bench.search.simulator.step_time import StepTime

NUM_ROUNDS = 900
"""Verify steps per prompt that the acceptance is counted over."""
FLAKY = 0.01
"""The share of starts that crash for no reason of the configuration's."""


@dataclass(frozen=True)
class Noise:
    """What differs between prompts, and from launch to launch; standard deviations of logarithms."""

    output_tokens: Floats
    ttft_s: Floats
    launch: float
    prompt: float
    text: float


@dataclass(frozen=True)
class Outcome:
    """What one restart showed. throughputs: tok/s, one per prompt; all empty or None where the start failed.

    accept_histogram: verify steps by number of accepted drafts, from 0 to num_steps; none without speculation.
    """

    failure: Failure | None = None
    throughputs: tuple[float, ...] = ()
    accept_length: float | None = None
    accept_histogram: tuple[int, ...] = ()

    @property
    def throughput(self) -> float | None:
        """The mean over the prompts, tok/s: the objective."""
        return float(np.mean(self.throughputs)) if self.throughputs else None


class Facts(NamedTuple):
    """What an operator knows before the first start."""

    num_layers: int
    num_gpus: int
    link: str


@dataclass(frozen=True)
class Surface:
    """A server on which everything can be tried. Use `surface`."""

    seed: int
    wrong: float
    num_rounds: int
    regime: str
    qualities: tuple[str, ...]
    machine: Machine
    starts: Starts
    acceptance: Acceptance
    noise: Noise
    steps: StepTime
    misreport: Floats

    @property
    def drafters(self) -> tuple[str, ...]:
        """The values of speculative_draft_model_path."""
        return tuple(drafter_name(number) for number in range(self.machine.num_drafters))

    @property
    def facts(self) -> Facts:
        """What is known without a start."""
        regime = self.machine.regime
        return Facts(regime.num_layers, regime.num_gpus, regime.link)

    def evaluate(self, config: Config, repeat: int = 0) -> Outcome:
        """One restart and its benchmark; the same for the same repeat. Raises ValueError for an illegal one."""
        rng = generator(self.seed, key(config), repeat)
        same = canonical(config) or {}
        failure = self.failure(same)
        if failure is None and rng.random() < FLAKY:
            failure = Failure.CRASH
        if failure is not None:
            return Outcome(failure)
        launch, prompts = rng.normal(0, self.noise.launch), rng.normal(0, self.noise.prompt, NUM_PROMPTS)
        if same[ALGORITHM] == NONE:
            speeds = self._speeds(self.steps.baseline(same) * np.exp(launch), np.ones(NUM_PROMPTS))
            return Outcome(throughputs=_rounded(speeds * np.exp(prompts)))
        tree = tree_of(same)
        step_ms = float(self.steps.speculative(same, tree)[0] * np.exp(launch))
        texts = np.exp(rng.normal(0, self.noise.text, NUM_PROMPTS))
        lengths = 1 + (self.acceptance.accept_length(tree)[0] - 1) * texts
        rounds = self.noise.output_tokens / lengths
        told = float(self.noise.output_tokens.sum() / rounds.sum())
        return Outcome(
            throughputs=_rounded(self._speeds(step_ms, lengths) * np.exp(prompts)),
            accept_length=round(told * float(np.exp(self.misreport[tree.num_steps[0]])), 2),
            accept_histogram=self._histogram(tree, texts, rounds),
        )

    def true_mean(self, config: Config) -> float:
        """The objective without noise, tok/s; NaN if it does not start. Raises ValueError for an illegal one."""
        same = canonical(config)
        if same is None:
            raise ValueError(f"no server starts like this: {dict(config)}")
        if self.failure(same) is not None:
            return float("nan")
        if same[ALGORITHM] == NONE:
            return float(self._speeds(self.steps.baseline(same), np.ones(NUM_PROMPTS)).mean())
        tree = tree_of(same)
        lengths = self.acceptance.accept_length(tree)
        return float(self._speeds(self.steps.speculative(same, tree)[:, None], lengths).mean())

    def failure(self, config: Config) -> Failure | None:
        """How a canonical configuration fails to start, apart from flaky starts."""
        if config[ALGORITHM] == NONE:
            return self.starts.of_flags(config)
        return self.starts.of_tree(config, tree_of(config))

    def best(self) -> Optimum:
        """The fastest of all configurations, by trying them all; cached."""
        shapes = trees(self.machine.num_drafters)
        lengths = self.acceptance.accept_length(shapes)

        def best_under(flags: Config) -> Optimum | None:
            if self.starts.of_flags(flags) is not None:
                return None
            plain = baseline(**flags)
            step_ms = self.steps.speculative(flags, shapes)[:, None]
            speeds = self._speeds(step_ms, lengths).mean(axis=1)
            speeds[~self.starts.starting(flags, shapes)] = 0
            fastest = int(np.argmax(speeds))
            without = self.true_mean(plain)
            if without >= speeds[fastest]:
                return Optimum(plain, without)
            return Optimum(config_of(shapes, fastest, flags), float(speeds[fastest]))

        return find_optimum(f"{self.seed}-{self.wrong}-{self.num_rounds}", best_under)

    def all_reduce(self, flags: Config, tokens: int, repeat: int = 0) -> float | None:
        """Microseconds of one all-reduce of so many tokens in a CUDA graph, as a benchmark without a server tells.

        None: it hangs. It sees nothing of a server, in particular no interaction of flags; 1.5 % noise.
        """
        complete = {**baseline(**flags), "disable_cuda_graph": False}
        if self.starts.all_reduce_hangs(complete):
            return None
        rng = generator("all-reduce", self.seed, *(complete[name] for name in FLAGS), tokens, repeat)
        time_us = 1000 * float(self.steps.all_reduce(complete, np.array(float(tokens))))
        return time_us * float(np.exp(rng.normal(0, 0.015)))

    def _speeds(self, step_ms: Floats | float, lengths: Floats) -> Floats:
        """Tok/s of each prompt."""
        tokens = self.noise.output_tokens
        return tokens / (self.noise.ttft_s + tokens / lengths * step_ms / 1000)

    def _histogram(self, tree: Trees, texts: Floats, rounds: Floats) -> tuple[int, ...]:
        shares = self.acceptance.histogram(tree)[0]
        shares[:, 1:] *= texts[:, None]
        shares[:, 0] = np.maximum(0, 1 - shares[:, 1:].sum(axis=1))
        counts = (shares * rounds[:, None]).sum(axis=0)[: int(tree.num_steps[0]) + 1]
        return tuple(int(count) for count in np.round(counts))


@lru_cache(maxsize=8)
def surface(seed: int, wrong: float = 0.0, num_rounds: int = NUM_ROUNDS) -> Surface:
    """The simulated server of a seed; the same object again for the same arguments."""
    return build(seed, wrong, num_rounds)


def build(seed: int, wrong: float = 0.0, num_rounds: int = NUM_ROUNDS) -> Surface:
    """Draw a server. wrong: how little the physics holds; num_rounds: verify steps per prompt that are counted."""
    rng = np.random.default_rng([20240117, seed])
    regime, quality = kind_of(seed)
    machine = draw_machine(rng, REGIMES[regime])
    interactions = draw_interactions(rng, machine)
    starts = draw_starts(rng, machine)
    qualities, drafters = draw_drafters(rng, seed, quality, machine.num_drafters)
    noise = Noise(
        output_tokens=rng.integers(700, 1100, NUM_PROMPTS).astype(float),
        ttft_s=rng.uniform(0.03, 0.25) * rng.uniform(0.8, 1.2, NUM_PROMPTS),
        launch=rng.uniform(0.003, 0.009),
        prompt=rng.uniform(0.004, 0.010),
        text=rng.uniform(0.005, 0.020),
    )
    interactions, misreport = distort(rng, interactions, wrong)
    table = acceptance(str(seed), drafters, num_rounds)
    steps = StepTime(machine, interactions)
    return Surface(
        seed=seed,
        wrong=wrong,
        num_rounds=num_rounds,
        regime=regime,
        qualities=qualities,
        machine=machine,
        starts=starts,
        acceptance=table,
        noise=noise,
        steps=steps,
        misreport=misreport,
    )


def _rounded(speeds: Floats) -> tuple[float, ...]:
    return tuple(round(float(speed), 2) for speed in speeds)
