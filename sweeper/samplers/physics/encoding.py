"""From configurations to arrays and back.

A configuration is a head (drafter, steps, topk, draft tokens: all that shapes acceptance) together with system
flags.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sweeper.samplers.physics.batch import MAX_TREE_TOKENS, Batch, BoolArray, FloatArray, IntArray, tree_capacity
from sweeper.samplers.physics.roles import Roles
from sweeper.samplers.physics.space import Config, SearchParameter, SearchSpace, Value, exists, position

MANY_HEADS = 600
"""Beyond so many, trees are thinned out: token counts of three significant bits (… 7, 8, 10, 12, 14, 16 …), which
fill whole tiles, full trees, and no tree with fewer tokens than levels (fewer steps verify the same for less)."""

_MANY_VALUES = 100
"""Of a longer list of numbers only those of three significant bits are looked at."""

_DEFAULT_STEPS = 3.0
"""Where steps are neither searched nor given, nor told by a chain's tokens: what most servers draft."""


@dataclass(frozen=True)
class Head:
    """One way to draft, or none at all."""

    values: Config
    speculative: bool
    drafter: tuple[Value | None, ...]
    num_steps: float
    topk: float
    draft_tokens: float


class Encoding:
    """The arrays of one search space.

    heads: the heads that can be proposed, each shape once; table: the same as arrays, without flags. flags:
    the parameters that are system flags.
    """

    def __init__(self, space: SearchSpace, roles: Roles) -> None:
        self.space, self.roles = space, roles
        self._head_names = _with_ancestors(space, roles.names())
        self.flags = tuple(p for p in space.parameters if p.name not in self._head_names)
        numbers = {roles.num_steps, roles.topk, roles.draft_tokens}
        self._drafter_names = tuple(
            dict.fromkeys((*roles.drafter, *(n for n in self._head_names if n not in numbers)))
        )
        head_parameters = [p for p in space.parameters if p.name in self._head_names]
        self.heads = _distinct(self._enumerate(head_parameters), roles)
        self._drafters = {
            key: i for i, key in enumerate(dict.fromkeys(h.drafter for h in self.heads if h.speculative))
        }
        self.table = self._arrays([(head, ()) for head in self.heads], 0)
        self._active = [_conditions(p, self.flags) for p in self.flags]
        self._rows: dict[tuple[tuple[str, str], ...], _Row | None] = {}
        self.default_flags = np.array([roles.default_index(p) for p in self.flags], dtype=np.int64)

    @property
    def num_drafters(self) -> int:
        """How many different drafters the space has."""
        return len(self._drafters)

    def combine(self, heads: IntArray, flags: IntArray) -> Batch:
        """Configurations from indices of heads [n] and flag values [n, f]; those that do not exist become -1."""
        table = self.table.take(heads)
        codes = flags.copy()
        for column, conditions in enumerate(self._active):
            held = np.ones(len(heads), dtype=bool)
            for name, allowed, other in conditions:
                held &= np.isin(codes[:, other], allowed) if other >= 0 else self._head_has(name, allowed)[heads]
            unset = held & (codes[:, column] < 0)
            codes[unset, column] = self.default_flags[column]
            codes[~held, column] = -1
        return Batch(
            table.speculative, table.drafter, table.num_steps, table.topk, table.draft_tokens, codes, table.foreign
        )

    def head_of(self, batch: Batch) -> int:
        """The index of the head of the first configuration of a batch, -1 where it is not among those proposed."""
        table = self.table
        alike = (table.speculative == batch.speculative[0]) & (table.drafter == batch.drafter[0])
        for mine, other in (
            (table.num_steps, batch.num_steps),
            (table.topk, batch.topk),
            (table.draft_tokens, batch.draft_tokens),
        ):
            alike &= mine == other[0]
        return int(np.argmax(alike)) if alike.any() else -1

    def config(self, head: int, codes: IntArray) -> Config:
        """The configuration of a head and a row of a batch's flags, active parameters only."""
        values = dict(self.heads[head].values)
        coded = zip(self.flags, codes.tolist(), strict=True)
        values |= {flag.name: flag.values[code] for flag, code in coded if code >= 0}
        return self.space.active(values)

    def encode(self, configs: Sequence[Config], foreign: BoolArray) -> tuple[Batch, IntArray]:
        """The batch of those configurations that the space can express, and their indices."""
        rows: list[_Row] = []
        kept: list[int] = []
        for index, config in enumerate(configs):
            row = self._row(config)
            if row is not None:
                rows.append(row)
                kept.append(index)
        where = np.array(kept, dtype=np.int64)
        batch = self._arrays(rows, len(self.flags))
        return Batch(
            batch.speculative,
            batch.drafter,
            batch.num_steps,
            batch.topk,
            batch.draft_tokens,
            batch.flags,
            foreign[where],
        ), where

    def _row(self, config: Config) -> _Row | None:
        """Head and values of flags; found once for each configuration, as all of a study are asked for again."""
        spelled = tuple([(name, repr(value)) for name, value in config.items()])
        if spelled not in self._rows:
            head = self._head(config)
            codes = tuple(position(config.get(p.name), p.values) for p in self.flags)
            self._rows[spelled] = None if head is None else (head, codes)
        return self._rows[spelled]

    def _arrays(self, rows: Sequence[_Row], num_flags: int) -> Batch:
        def numbers(name: str) -> FloatArray:
            return np.array([getattr(head, name) for head, _ in rows], dtype=float)

        drafters = [self._drafters.get(head.drafter, -1) if head.speculative else -1 for head, _ in rows]
        return Batch(
            np.array([head.speculative for head, _ in rows], dtype=bool),
            np.array(drafters, dtype=np.int64),
            numbers("num_steps"),
            numbers("topk"),
            numbers("draft_tokens"),
            np.array([codes for _, codes in rows], dtype=np.int64).reshape(len(rows), num_flags),
            np.zeros(len(rows), dtype=bool),
        )

    def _head(self, config: Config) -> Head | None:
        """The head of a configuration; None where it does not say which drafter, or names one unknown here."""
        drafter = [p for p in self.space.parameters if p.name in self._drafter_names]
        if any(p.name not in config and exists(p, config) for p in drafter):
            return None
        head = self._make_head({name: config[name] for name in self._head_names if name in config})
        if head is None or (head.speculative and head.drafter not in self._drafters):
            return None
        return head

    def _make_head(self, values: Config) -> Head | None:
        full = {**self.roles.fixed, **values}
        drafter = tuple(full.get(name) for name in self._drafter_names)
        if not self.roles.speculates(full):
            return Head(values, False, drafter, 0.0, 1.0, 1.0)
        topk = _number(full.get(self.roles.topk or ""), 1.0)
        told = full.get(self.roles.draft_tokens or "")
        by_tokens = topk == 1 and told is not None
        steps = _number(full.get(self.roles.num_steps), _number(told, 0) - 1 if by_tokens else _DEFAULT_STEPS)
        tokens = _number(told, steps + 1)
        if min(steps, topk, tokens) < 1:
            return None
        capacity = min(float(tree_capacity(np.array(steps), np.array(topk))), MAX_TREE_TOKENS)
        tokens = steps + 1 if topk == 1 else min(tokens, capacity)
        return Head(values, True, drafter, steps, topk, max(tokens, 2.0))

    def _enumerate(self, parameters: Sequence[SearchParameter]) -> list[Head]:
        configs: list[dict[str, Value]] = [{}]
        for parameter in parameters:
            values = parameter.values
            if len(values) > _MANY_VALUES:
                values = tuple(value for value in values if _is_round(value)) or values[:_MANY_VALUES]
            grown: list[dict[str, Value]] = []
            for config in configs:
                held = self.space.active({**config, parameter.name: parameter.values[0]})
                grown += [{**config, parameter.name: v} for v in values] if parameter.name in held else [config]
            configs = grown
        heads = (self._make_head(config) for config in configs)
        return [head for head in heads if head is not None]

    def _head_has(self, name: str, allowed: tuple[Value, ...]) -> BoolArray:
        return np.array([position(h.values.get(name), allowed) >= 0 for h in self.heads], dtype=bool)


_Row = tuple[Head, tuple[int, ...]]
"""A configuration's head, and the index of the value of each flag."""

_Condition = tuple[str, tuple[Value, ...], int]
"""A parameter's name, what it must be (values of a head, indices of a flag), and the flag's column or -1."""


def _conditions(parameter: SearchParameter, flags: Sequence[SearchParameter]) -> list[_Condition]:
    columns = {flag.name: i for i, flag in enumerate(flags)}
    found: list[_Condition] = []
    for name, allowed in parameter.when.items():
        column = columns.get(name, -1)
        if column >= 0:
            allowed = tuple(position(value, flags[column].values) for value in allowed)
        found.append((name, allowed, column))
    return found


def _with_ancestors(space: SearchSpace, names: Sequence[str]) -> tuple[str, ...]:
    """The named parameters of the space, and those that they are conditional on, in the order of the space."""
    wanted = set(names)
    for parameter in reversed(space.parameters):
        if parameter.name in wanted:
            wanted |= set(parameter.when)
    return tuple(p.name for p in space.parameters if p.name in wanted)


def _number(value: object, missing: float) -> float:
    if value is None:
        return missing
    return float(value) if isinstance(value, int | float) else 0.0


def _is_round(number: Value) -> bool:
    """Whether a number has at most three significant bits."""
    return isinstance(number, int) and number % 2 ** max(0, abs(number).bit_length() - 3) == 0


def _distinct(heads: Sequence[Head], roles: Roles) -> tuple[Head, ...]:
    """Each shape once, by the configuration that asks for just what the server will do, where there is one."""
    best: dict[tuple[object, ...], Head] = {}
    for head in sorted(heads, key=lambda head: not _is_exact(head, roles)):
        drafter = head.drafter if head.speculative else None
        best.setdefault((head.speculative, drafter, head.num_steps, head.topk, head.draft_tokens), head)
    if len(best) <= MANY_HEADS:
        return tuple(best.values())
    return tuple(head for head in best.values() if head.topk == 1 or _is_worth_a_try(head))


def _is_worth_a_try(head: Head) -> bool:
    full = tree_capacity(np.array(head.num_steps), np.array(head.topk))
    rounded = _is_round(int(head.draft_tokens)) or head.draft_tokens == full
    return rounded and head.draft_tokens > head.num_steps


def _is_exact(head: Head, roles: Roles) -> bool:
    return head.values.get(roles.draft_tokens or "", head.draft_tokens) == head.draft_tokens
