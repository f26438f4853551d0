"""Real servers whose whole space was measured beforehand."""

from __future__ import annotations

import csv
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sweeper.samplers.physics import Config, Roles, SearchParameter, SearchSpace
from tests.bench.search import llamacpp_table, sglang_table

KIND = "spec_type"
NONE = "none"

ALGORITHM, NUM_STEPS, DRAFT_TOKENS = (
    f"speculative_{name}" for name in ("algorithm", "num_steps", "num_draft_tokens")
)

Key = tuple[tuple[str, Any], ...]
Row = Mapping[str, str]


@dataclass(frozen=True)
class Start:
    """What one start showed: tokens per second and, of one that drafts, its accept_length.

    histogram: verify steps by drafts accepted, from 0 on.
    """

    tok_s: float
    accept_length: float | None = None
    histogram: tuple[int, ...] = ()


@dataclass(frozen=True)
class Measured:
    """All starts of one configuration."""

    starts: tuple[Start, ...]

    @property
    def mean(self) -> float:
        """Tokens per second over all starts: what counts as the truth."""
        return statistics.mean(start.tok_s for start in self.starts)


@dataclass(frozen=True)
class RealServer:
    """A server whose whole space was measured. roles: None where the physics does not know the space."""

    name: str
    space: SearchSpace
    baseline: Config
    measured: Mapping[Key, Measured]
    roles: Roles | None = None

    def of(self, config: Config) -> Measured:
        """What one configuration did."""
        return self.measured[key(config)]

    @property
    def best(self) -> float:
        """Tokens per second of the fastest configuration."""
        return max(found.mean for found in self.measured.values())


def key(config: Config) -> Key:
    """What tells a configuration from all others."""
    return tuple(sorted(config.items()))


def llamacpp() -> RealServer:
    """llama.cpp's n-gram drafting of SmolLM2-135M on one thread of a CPU. Raises OSError without the table."""
    parameters = [SearchParameter(KIND, (NONE, *llamacpp_table.KINDS))]
    for kind in llamacpp_table.KINDS:
        for name, values in (("size_n", llamacpp_table.SIZES_N), ("size_m", llamacpp_table.SIZES_M)):
            parameters.append(SearchParameter(_of_kind(kind, name), values, ordered=True, when={KIND: (kind,)}))

    def config_of(row: Row) -> Config:
        kind = row["spec_type"]
        return {KIND: kind} | {_of_kind(kind, n): int(row[n]) for n in ("size_n", "size_m") if kind != NONE}

    measured = {
        where: Measured(tuple(Start(int(row["tokens"]) / float(row["cpu_s"])) for row in found))
        for where, found in _by_configuration(llamacpp_table.TABLE, config_of)
    }
    return RealServer("llama.cpp", SearchSpace(tuple(parameters)), {KIND: NONE}, measured)


def sglang(ngrams: bool = True) -> RealServer:
    """SGLang's chains, and n-grams, with the tiny EAGLE-3 pair on a CPU. Raises OSError without the table."""
    drafting = (sglang_table.EAGLE3, sglang_table.NGRAM)[: 1 + ngrams]
    parameters = (
        SearchParameter(ALGORITHM, (NONE, *drafting)),
        SearchParameter(NUM_STEPS, sglang_table.STEPS, ordered=True, when={ALGORITHM: drafting[:1]}),
        SearchParameter(DRAFT_TOKENS, sglang_table.TOKENS, ordered=True, when={ALGORITHM: drafting[1:]}),
    )[: 2 + ngrams]
    roles = Roles(
        drafter=(ALGORITHM,),
        num_steps=NUM_STEPS,
        draft_tokens=DRAFT_TOKENS,
        speculates=lambda config: config[ALGORITHM] != NONE,
    )

    measured = {
        where: Measured(tuple(_start(row) for row in found))
        for where, found in _by_configuration(sglang_table.TABLE, _sglang_config)
        if dict(where)[ALGORITHM] in (NONE, *drafting)
    }
    name = "SGLang, chains and n-grams" if ngrams else "SGLang, chains"
    return RealServer(name, SearchSpace(parameters), {ALGORITHM: NONE}, measured, roles)


def _sglang_config(row: Row) -> Config:
    config: dict[str, Any] = {ALGORITHM: row["algorithm"]}
    if config[ALGORITHM] == sglang_table.EAGLE3:
        config[NUM_STEPS] = int(row["num_steps"])
    if config[ALGORITHM] == sglang_table.NGRAM:
        config[DRAFT_TOKENS] = int(row["draft_tokens"])
    return config


def _start(row: Row) -> Start:
    tok_s = int(row["tokens"]) / float(row["cpu_s"])
    if not row["accept_length"]:
        return Start(tok_s)
    return Start(tok_s, float(row["accept_length"]), tuple(map(int, row["accepted"].split())))


def _by_configuration(table: Path, config_of: Callable[[Row], Config]) -> Iterator[tuple[Key, Sequence[Row]]]:
    """The rows of a table, those of one configuration together."""
    rows: dict[Key, list[Row]] = {}
    with table.open(newline="") as file:
        for row in csv.DictReader(file):
            rows.setdefault(key(config_of(row)), []).append(row)
    yield from rows.items()


def _of_kind(kind: str, name: str) -> str:
    return f"spec_{kind.replace('-', '_')}_{name}"
