"""What can be set on a simulated server, which settings are legal, and which are the same.

The names are SGLang's own; `NCCL_*` are environment variables, `default` leaves them unset.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

Value = str | int | float | bool
Config = Mapping[str, Value]

ALGORITHM = "speculative_algorithm"
DRAFTER = "speculative_draft_model_path"
NUM_STEPS = "speculative_num_steps"
TOPK = "speculative_eagle_topk"
DRAFT_TOKENS = "speculative_num_draft_tokens"

NONE, EAGLE3 = "none", "EAGLE3"
MAX_STEPS, MAX_TOKENS = 8, 64
TOPKS = (1, 2, 4, 8)

FLAGS: dict[str, tuple[Value, ...]] = {
    "disable_cuda_graph": (False, True),
    "num_continuous_decode_steps": (1, 2, 4, 8),
    "disable_custom_all_reduce": (False, True),
    "NCCL_PROTO": ("default", "LL", "LL128", "Simple"),
    "NCCL_ALGO": ("default", "Ring", "Tree"),
    "NCCL_P2P_LEVEL": ("default", "PIX", "PHB", "SYS"),
    "attention_backend": ("fa3", "flashinfer", "triton"),
}
"""The system flags; the first value of each is the server's default."""
DEFAULT_FLAGS: dict[str, Value] = {name: values[0] for name, values in FLAGS.items()}
BACKENDS = tuple(str(value) for value in FLAGS["attention_backend"])
FLAG_VALUES: dict[tuple[str, Value], int] = {
    pair: number for number, pair in enumerate((name, value) for name, values in FLAGS.items() for value in values)
}
"""A number for each value of each flag."""


@dataclass(frozen=True)
class Trees:
    """Draft trees, one per place of four equally long arrays; drafters by their number."""

    drafter: NDArray[np.int64]
    num_steps: NDArray[np.int64]
    topk: NDArray[np.int64]
    draft_tokens: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.num_steps)

    def __getitem__(self, chosen: NDArray[np.bool_]) -> Trees:
        return Trees(self.drafter[chosen], self.num_steps[chosen], self.topk[chosen], self.draft_tokens[chosen])


def drafter_name(number: int) -> str:
    """The path that a simulated drafter goes by."""
    return f"draft-{number}"


def capacity(num_steps: int, topk: int) -> int:
    """The most tokens, the root included, that a draft tree can hold."""
    return min(MAX_TOKENS, 1 + topk + (num_steps - 1) * topk * topk)


def baseline(**flags: Value) -> dict[str, Value]:
    """The configuration without speculation; flags that are not given have the server's default."""
    return {ALGORITHM: NONE, **DEFAULT_FLAGS, **flags}


def speculative(drafter: str, num_steps: int, topk: int, draft_tokens: int, **flags: Value) -> dict[str, Value]:
    """A speculative configuration; more tokens than the tree can hold are cut, and a chain has num_steps + 1."""
    fitting = num_steps + 1 if topk == 1 else min(draft_tokens, capacity(num_steps, topk))
    tree: dict[str, Value] = {DRAFTER: drafter, NUM_STEPS: num_steps, TOPK: topk, DRAFT_TOKENS: fitting}
    return {ALGORITHM: EAGLE3, **tree, **DEFAULT_FLAGS, **flags}


def canonical(config: Config) -> dict[str, Value] | None:
    """The same server, spelled in one way; None for one that is illegal.

    Flags that are missing have their default. A chain (topk 1) verifies num_steps + 1 tokens, whatever it is told.
    """
    flags = {name: config.get(name, default) for name, default in DEFAULT_FLAGS.items()}
    if config[ALGORITHM] == NONE:
        return baseline(**flags)
    num_steps, topk = int(config[NUM_STEPS]), int(config[TOPK])
    if topk not in TOPKS or not 1 <= num_steps <= MAX_STEPS:
        return None
    draft_tokens = num_steps + 1 if topk == 1 else int(config[DRAFT_TOKENS])
    if topk > 1 and not 2 <= draft_tokens <= capacity(num_steps, topk):
        return None
    return speculative(str(config[DRAFTER]), num_steps, topk, draft_tokens, **flags)


def key(config: Config) -> str:
    """A text that two configurations share if they are the same server. Raises ValueError for an illegal one."""
    same = canonical(config)
    if same is None:
        raise ValueError(f"no server starts like this: {dict(config)}")
    return json.dumps(same, sort_keys=True)


def tree_of(config: Config) -> Trees:
    """The one tree of a canonical speculative configuration."""
    drafter = int(str(config[DRAFTER]).rpartition("-")[2])
    numbers = (drafter, int(config[NUM_STEPS]), int(config[TOPK]), int(config[DRAFT_TOKENS]))
    return Trees(*(np.array([number]) for number in numbers))


def config_of(trees: Trees, place: int, flags: Config) -> dict[str, Value]:
    """The configuration of one of the trees under these flags."""
    drafter, num_steps, topk, draft_tokens = (
        int(column[place]) for column in (trees.drafter, trees.num_steps, trees.topk, trees.draft_tokens)
    )
    return speculative(drafter_name(drafter), num_steps, topk, draft_tokens, **flags)


@lru_cache
def trees(num_drafters: int) -> Trees:
    """All legal trees of all drafters."""
    rows = np.array(
        [
            (drafter, num_steps, topk, draft_tokens)
            for drafter, num_steps, topk in product(range(num_drafters), range(1, MAX_STEPS + 1), TOPKS)
            for draft_tokens in token_counts(num_steps, topk)
        ]
    )
    return Trees(*rows.T)


def token_counts(num_steps: int, topk: int) -> range:
    """The legal numbers of draft tokens of a tree."""
    if topk == 1:
        return range(num_steps + 1, num_steps + 2)
    return range(2, capacity(num_steps, topk) + 1)


def all_flags() -> Iterator[dict[str, Value]]:
    """All settings of the system flags."""
    for values in product(*FLAGS.values()):
        yield dict(zip(FLAGS, values, strict=True))
