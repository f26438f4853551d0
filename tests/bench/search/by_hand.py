"""Rivals without a model: SGLang's own grid, and a careful person who changes one thing at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product

from optuna.study import Study

from tests.bench.search.launching import fitted
from tests.bench.search.planning import PlanningSampler
from tests.bench.search.simulator.configurations import (
    ALGORITHM,
    DRAFT_TOKENS,
    DRAFTER,
    FLAGS,
    MAX_STEPS,
    MAX_TOKENS,
    NONE,
    NUM_STEPS,
    TOPK,
    TOPKS,
    Config,
    Value,
    baseline,
    key,
    speculative,
)

Results = Mapping[str, float | None]
"""Throughput by the key of a configuration; None: it did not start."""

FIRST_SHAPES = (
    (2, 1, 3), (5, 1, 6), (3, 2, 5), (5, 4, 8), (3, 4, 8), (5, 4, 16), (2, 4, 5), (4, 1, 5), (1, 1, 2), (7, 1, 8),
    (5, 8, 32), (7, 4, 24),
)  # fmt: skip
"""num_steps, topk and draft tokens that an experienced operator tries, in this order."""
FLAG_ORDER = (
    "attention_backend", "NCCL_PROTO", "NCCL_P2P_LEVEL", "NCCL_ALGO", "num_continuous_decode_steps",
    "disable_custom_all_reduce",
)  # fmt: skip
"""System flags from the most promising one on; CUDA graphs stay on."""
FIRST_SHAPE = (3, 1, 4)
"""What everybody starts with: SGLang's own example."""


class GridSampler(PlanningSampler):
    """The order of SGLang's `bench_speculative.py`: steps x topk x tokens, default flags, drafter by drafter."""

    def __init__(self, drafters: tuple[str, ...]) -> None:
        self._grid = [
            speculative(drafter, num_steps, topk, draft_tokens)
            for drafter, num_steps, topk, draft_tokens in product(drafters, (1, 3, 5, 7), TOPKS, (2, 4, 8, 16, 32))
            if num_steps * topk + 1 >= draft_tokens and (topk > 1 or draft_tokens == num_steps + 1)
        ]

    def plan(self, study: Study) -> Config:
        tried = results_of(study)
        return next((config for config in self._grid if key(config) not in tried), self._grid[-1])


class OneFactorSampler(PlanningSampler):
    """One factor at a time: drafters, shapes, flags, and then whatever lies next to the best.

    It keeps nothing between trials: the person's notes are the finished trials.
    """

    def __init__(self, drafters: tuple[str, ...]) -> None:
        self._drafters = drafters

    def plan(self, study: Study) -> Config:
        results = results_of(study)
        notes = _Notes()
        moves = self._moves(notes)
        for opening in (baseline(), speculative(self._drafters[0], *FIRST_SHAPE)):
            notes.add(opening, results.get(key(opening)))
        while True:
            config = next(moves)
            name = key(config)
            if name not in results or name in notes.known:
                return config
            notes.add(config, results[name])

    def _moves(self, notes: _Notes) -> Iterator[Config]:
        first, *others = self._drafters
        for drafter in others:
            yield speculative(drafter, *FIRST_SHAPE)
        favourite = notes.best(speculating=True) or speculative(first, *FIRST_SHAPE)
        for shape in FIRST_SHAPES:
            config = speculative(str(favourite[DRAFTER]), *shape)
            if key(config) not in notes.known:
                yield config
        for flag in FLAG_ORDER:
            for value in FLAGS[flag][1:]:
                config = {**(notes.best() or baseline()), flag: value}
                if key(config) not in notes.known:
                    yield config
        while True:
            best = notes.best() or baseline()
            untried = [config for config in _neighbours(best) if key(config) not in notes.known]
            yield untried[0] if untried else best


class _Notes:
    """What the person has seen so far."""

    def __init__(self) -> None:
        self.known: set[str] = set()
        self._measured: list[tuple[float, Config]] = []

    def add(self, config: Config, throughput: float | None) -> None:
        self.known.add(key(config))
        if throughput is not None:
            self._measured.append((throughput, config))

    def best(self, speculating: bool = False) -> Config | None:
        """The fastest so far; None if nothing ran."""
        wanted = [(found, c) for found, c in self._measured if not speculating or c[ALGORITHM] != NONE]
        return max(wanted, key=lambda pair: pair[0])[1] if wanted else None


def results_of(study: Study) -> Results:
    """What each finished trial's configuration measured; of several launches the last."""
    return {
        key(fitted(trial.params)): trial.value
        for trial in study.get_trials(deepcopy=False)
        if trial.state.is_finished()
    }


def _neighbours(config: Config) -> Iterator[dict[str, Value]]:
    """What differs from a configuration in one step of the tree or in one flag."""
    flags = {name: config[name] for name in FLAGS}
    if config[ALGORITHM] != NONE:
        steps, topk, tokens = int(config[NUM_STEPS]), int(config[TOPK]), int(config[DRAFT_TOKENS])
        moves = (
            (steps + 1, topk, tokens), (steps - 1, topk, tokens), (steps, topk, tokens + 2),
            (steps, topk, tokens - 2), (steps, topk * 2, tokens), (steps, topk // 2, tokens),
            (steps + 1, topk, tokens + 2), (steps, topk, tokens + 4),
        )  # fmt: skip
        for num_steps, branches, draft_tokens in moves:
            if branches in TOPKS and 1 <= num_steps <= MAX_STEPS and 2 <= draft_tokens <= MAX_TOKENS:
                yield speculative(str(config[DRAFTER]), num_steps, branches, draft_tokens, **flags)
    for flag in FLAG_ORDER:
        for value in FLAGS[flag]:
            yield {**config, flag: value}
