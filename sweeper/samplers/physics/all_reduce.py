"""Times of all-reduces, measured without a server, as an expectation of what the communication flags do.

A decode step makes two all-reduces per layer over the tokens verified, and a few over the branches in each
draft forward. It is only an expectation: the model still learns what the flags do to the server itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from sweeper.samplers.physics.batch import MAX_TREE_TOKENS, Batch, FloatArray, IntArray
from sweeper.samplers.physics.space import Config, SearchParameter, Value, position

TOKENS = (1, 4, 8, 16, 32, 64)
"""Sizes of the message, in tokens, that are worth timing."""

_PER_LAYER = 2
_PER_DRAFT_FORWARD = 3
_LEAST_SHARE = 0.2
"""A step cannot shrink below this share, whatever the times say."""


@dataclass(frozen=True)
class AllReduceTime:
    """One timing. config: the communication flags. microseconds: None when it hung or died."""

    config: Config
    num_tokens: int
    microseconds: float | None


@dataclass(frozen=True)
class AllReduce:
    """Timings over settings of the communication flags, in a model of `num_layers` layers."""

    times: tuple[AllReduceTime, ...]
    num_layers: int

    @staticmethod
    def measure(
        parameters: Sequence[SearchParameter], num_layers: int, time: Callable[[Config, int], float | None]
    ) -> AllReduce:
        """Time every combination of the parameters' values, a setting that fails only once."""
        times: list[AllReduceTime] = []
        for values in product(*(parameter.values for parameter in parameters)):
            config = {p.name: value for p, value in zip(parameters, values, strict=True)}
            for tokens in TOKENS:
                microseconds = time(config, tokens)
                times.append(AllReduceTime(config, tokens, microseconds))
                if microseconds is None:
                    break
        return AllReduce(tuple(times), num_layers)


class AllReduceShift:
    """What the timings say of configurations, relative to the default flags."""

    def __init__(self, all_reduce: AllReduce, flags: Sequence[SearchParameter], default: IntArray) -> None:
        named = {name for time in all_reduce.times for name in time.config}
        self.columns = [i for i, flag in enumerate(flags) if flag.name in named]
        self._layers = all_reduce.num_layers
        self._default = default[self.columns]
        self._sizes = np.log2(np.array(sorted({t.num_tokens for t in all_reduce.times})))
        shape = [len(flags[i].values) + 1 for i in self.columns]
        self._table = np.full([*shape, len(self._sizes)], np.nan)
        self._fails = np.zeros(shape, dtype=bool)
        for time in all_reduce.times:
            self._enter(time, [flags[i] for i in self.columns])

    def log_change(self, batch: Batch, relative: FloatArray, base_ms: float) -> FloatArray:
        """Logarithm of step time over that with default flags: [n]. `relative`: log step time over `base_ms`."""
        target = _PER_LAYER * self._layers * self._gain(batch, batch.draft_tokens)
        draft = _PER_DRAFT_FORWARD * batch.num_steps * self._gain(batch, batch.topk)
        change = (target + draft) / 1000 / (base_ms * np.exp(relative))
        return np.asarray(np.log(np.maximum(_LEAST_SHARE, 1 + change)))

    def fails(self, batch: Batch) -> FloatArray:
        """1 where the timing itself hung or died, else 0: [n]."""
        if not self.columns:
            return np.zeros(len(batch))
        return self._fails[self._index(batch.flags[:, self.columns])].astype(float)

    def _gain(self, batch: Batch, tokens: FloatArray) -> FloatArray:
        """Microseconds of one all-reduce beyond the default's; 0 where either is unknown."""
        if not self.columns:
            return np.zeros(len(batch))
        here = self._time(batch.flags[:, self.columns], tokens)
        there = self._time(np.tile(self._default, (len(batch), 1)), tokens)
        return np.nan_to_num(here - there, nan=0.0)

    def _time(self, codes: IntArray, tokens: FloatArray) -> FloatArray:
        rows = self._table[self._index(codes)]
        if len(self._sizes) == 1:
            return rows[:, 0]
        at = np.clip(np.log2(np.clip(tokens, 1, MAX_TREE_TOKENS)), self._sizes[0], self._sizes[-1])
        right = np.clip(np.searchsorted(self._sizes, at, side="right"), 1, len(self._sizes) - 1)
        share = (at - self._sizes[right - 1]) / (self._sizes[right] - self._sizes[right - 1])
        number = np.arange(len(rows))
        return np.asarray(rows[number, right - 1] * (1 - share) + rows[number, right] * share)

    def _index(self, codes: IntArray) -> tuple[IntArray, ...]:
        return tuple(codes.T + 1)

    def _enter(self, time: AllReduceTime, flags: Sequence[SearchParameter]) -> None:
        given: list[Value | None] = [time.config.get(flag.name) for flag in flags]
        where = tuple(position(v, flag.values) + 1 for v, flag in zip(given, flags, strict=True))
        if time.microseconds is None:
            self._fails[where] = True
        else:
            column = int(np.searchsorted(self._sizes, np.log2(time.num_tokens)))
            self._table[(*where, column)] = time.microseconds
