"""SGLang's flags as data, drawn from the tables of its rules."""

from __future__ import annotations

from collections.abc import Mapping

from sweeper.engines.flag_types import FlagType, renamed
from sweeper.engines.sglang import table


def _types() -> dict[str, FlagType]:
    types = {name: FlagType("whole", *limits) for name, limits in table.WHOLE.items()}
    types |= {name: FlagType("real", *limits) for name, limits in table.REAL.items()}
    types |= {name: FlagType("bare") for name in (*table.BARE, "disable_cuda_graph")}
    types |= {name: FlagType("text") for name in table.TEXT}
    types |= {name: FlagType("numbers") for name in table.LISTS}
    types |= {name: FlagType("text", choices=tuple(sorted(of))) for name, of in table.CHOICES.items()}
    types["speculative_algorithm"] = FlagType("text", choices=("none", *table.ALGORITHMS))
    types |= {
        name: FlagType("refused", note=f"is set by each launch{f'; see {where}' if where else ''}")
        for name, where in table.PLACED.items()
    }
    return types | renamed(table.RENAMED)


FLAG_TYPES: Mapping[str, FlagType] = _types()
