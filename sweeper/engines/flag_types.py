"""What is known of single flags of each engine, as data: for editors, and for the reference.

Drawn from the engines' own tables. An engine without a row here has flags all the same; nothing is said of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from sweeper.engines import llamacpp_flags, sglang_table
from sweeper.engines.llamacpp import LlamaCpp
from sweeper.engines.sglang import SGLang

Kind = Literal["whole", "real", "bare", "text", "words", "numbers", "refused"]


@dataclass(frozen=True)
class FlagType:
    """One flag. `low` and `high`: legal limits, both included; `choices`: its values, all of them.

    `words`: a list of `choices` by commas; `numbers`: whole numbers with spaces between them; `refused`: a name
    that may not be used, for the reason in `note`.
    """

    kind: Kind
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    note: str = ""


def flag_types(engine: str) -> Mapping[str, FlagType]:
    """What is known of the flags of `engine`, by name; empty when nothing is."""
    table = _TABLES.get(engine)
    return dict(sorted(table().items())) if table else {}


def _llamacpp() -> dict[str, FlagType]:
    types = {
        name: FlagType(
            "whole" if rule.kind is int else "real", rule.low, rule.high, note=f"default {rule.default}"
        )
        for name, rule in llamacpp_flags.NUMBERS.items()
    }
    types["spec_type"] = FlagType("words", choices=("none", *llamacpp_flags.TYPES))
    types |= {name: FlagType("refused", note="is set by each launch") for name in llamacpp_flags.PLACED}
    return types | _renamed(llamacpp_flags.RENAMED)


def _sglang() -> dict[str, FlagType]:
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
    return types | _renamed(sglang_table.RENAMED)


def _renamed(names: Mapping[str, str]) -> dict[str, FlagType]:
    return {name: FlagType("refused", note=f"write {other}") for name, other in names.items()}


_TABLES: Mapping[str, Callable[[], Mapping[str, FlagType]]] = {LlamaCpp.name: _llamacpp, SGLang.name: _sglang}
