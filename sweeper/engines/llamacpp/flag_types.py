"""llama-server's flags as data, drawn from the tables of its rules."""

from __future__ import annotations

from collections.abc import Mapping

from sweeper.engines.flag_types import FlagType, renamed
from sweeper.engines.llamacpp import flags


def _types() -> dict[str, FlagType]:
    types = {
        name: FlagType(
            "whole" if rule.kind is int else "real", rule.low, rule.high, note=f"default {rule.default}"
        )
        for name, rule in flags.NUMBERS.items()
    }
    types["spec_type"] = FlagType("words", choices=("none", *flags.TYPES))
    types |= {name: FlagType("refused", note="is set by each launch") for name in flags.PLACED}
    return types | renamed(flags.RENAMED)


FLAG_TYPES: Mapping[str, FlagType] = _types()
