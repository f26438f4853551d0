"""Configurations as arrays: what the models are fitted on and what they predict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

MAX_TREE_TOKENS = 64
"""Tokens verified per step beyond which trees are not told apart."""


def tree_capacity(num_steps: FloatArray, topk: FloatArray) -> FloatArray:
    """Most tokens, root included, of a draft tree: topk at the first level, topk squared at later ones."""
    return 1 + topk + (num_steps - 1) * topk**2


@dataclass(frozen=True)
class Batch:
    """n configurations. Where nothing is drafted num_steps is 0, topk and draft_tokens are 1, drafter is -1.

    flags[n, f]: index of the value of each system flag, -1 where the flag does not exist.
    foreign: measured elsewhere or earlier, so that its level may be off.
    """

    speculative: BoolArray
    drafter: IntArray
    num_steps: FloatArray
    topk: FloatArray
    draft_tokens: FloatArray
    flags: IntArray
    foreign: BoolArray

    def __len__(self) -> int:
        return len(self.speculative)

    def take(self, index: IntArray | BoolArray | Sequence[int]) -> Batch:
        """The chosen ones, in the order given."""
        return Batch(*(getattr(self, field.name)[index] for field in fields(self)))

    @staticmethod
    def join(batches: Sequence[Batch]) -> Batch:
        """One after the other."""
        return Batch(*(np.concatenate([getattr(b, field.name) for b in batches]) for field in fields(Batch)))
