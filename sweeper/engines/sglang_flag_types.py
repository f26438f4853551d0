"""SGLang's flags as data, drawn from the tables of its rules."""

from __future__ import annotations

from collections.abc import Mapping

from sweeper.engines import sglang_table
from sweeper.engines.flag_types import FlagType, renamed


def _types() -> dict[str, FlagType]:
    types = {name: FlagType("whole", *limits) for name, limits in sglang_table.WHOLE.items()}
    types |= {name: FlagType("real", *limits) for name, limits in sglang_table.REAL.items()}
    types |= {name: FlagType("bare") for name in (*sglang_table.BARE, "disable_cuda_graph")}
    types |= {name: FlagType("text") for name in sglang_table.TEXT}
    types |= {name: FlagType("numbers") for name in sglang_table.LISTS}
    types |= {name: FlagType("text", choices=tuple(sorted(of))) for name, of in sglang_table.CHOICES.items()}
    types["speculative_algorithm"] = FlagType("text", choices=("none", *sglang_table.ALGORITHMS))
    types |= {
        name: FlagType("refused", note=f"is set by each launch{f'; see {where}' if where else ''}")
        for name, where in sglang_table.PLACED.items()
    }
    return types | renamed(sglang_table.RENAMED)


FLAG_TYPES: Mapping[str, FlagType] = _types()
