"""What a server reports of its settings, as a record can hold it. All of it is untrusted."""

from __future__ import annotations

import math

from sweeper.spec import FlagValue
from sweeper.text import plain


def scalar(value: object) -> FlagValue | None:
    """A value that a record can hold, None for everything else. Texts are cut to 300 characters."""
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if abs(value) < 2**63 else None
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return plain(value) if isinstance(value, str) else None
