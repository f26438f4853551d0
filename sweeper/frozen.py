"""What every part of a specification is made of: immutable, strict, bounded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from typing import TypeVar

from pydantic import BaseModel, ConfigDict

Value = TypeVar("Value", bound=Hashable)

# Bounds far above any sensible sweep: a slip of the keyboard is told at once, not by an overflow in a library.
MAX_TRIALS = 1_000_000
MAX_COUNT = 10_000_000
MAX_SECONDS = 10_000_000
MAX_SEED = 2**32 - 1  # numpy's, and llama.cpp's
MAX_WHOLE = 2**53  # Optuna stores every parameter as a double


class Frozen(BaseModel):
    """Base of everything here: immutable, strict about types, intolerant of unknown names."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


def once(values: tuple[Value, ...]) -> tuple[Value, ...]:
    """`values`. Raises ValueError when one is repeated; 1, 1.0 and True are one: Optuna compares with ==."""
    if twice := [value for value, times in Counter(values).items() if times > 1]:
        raise ValueError(f"each may appear once, but {twice[0]!r} appears again")
    return values
