"""vLLM's flags as data, drawn from the tables of its rules."""

from __future__ import annotations

from collections.abc import Mapping

from sweeper.engines import vllm_table
from sweeper.engines.flag_types import FlagType, renamed


def _types() -> dict[str, FlagType]:
    types = {name: FlagType("whole", *limits) for name, limits in vllm_table.WHOLE.items()}
    types |= {name: FlagType("real", *limits) for name, limits in vllm_table.REAL.items()}
    types |= {name: FlagType("bare") for name in vllm_table.BARE}
    types |= {name: FlagType("text") for name in vllm_table.TEXT}
    types |= {name: FlagType("numbers") for name in vllm_table.LISTS}
    types |= {name: FlagType("text", choices=tuple(sorted(of))) for name, of in vllm_table.CHOICES.items()}
    types[vllm_table.METHOD] = FlagType("text", choices=("none", *dict.fromkeys(vllm_table.METHODS)))
    types |= {name: FlagType("refused", note=why) for name, why in vllm_table.UNUSABLE.items()}
    types |= {
        name: FlagType("refused", note=f"is set by each launch{f'; see {where}' if where else ''}")
        for name, where in vllm_table.PLACED.items()
    }
    return types | renamed(vllm_table.RENAMED)


FLAG_TYPES: Mapping[str, FlagType] = _types()
