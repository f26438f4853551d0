"""Whether a question is about what was measured: values beyond those of every measured trial."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeGuard

from sweeper.records import TrialRecord
from sweeper.spec import FlagValue, Parameter, ServerConfig

_MAX_LISTED = 8


@dataclass(frozen=True)
class Outside:
    """A value of `name` that lies beyond those of all measured trials. `measured`: theirs, sorted."""

    name: str
    value: FlagValue
    measured: tuple[FlagValue, ...]

    @property
    def is_range(self) -> bool:
        """Whether these are numbers: their least and their greatest say it all."""
        return all(map(_is_number, self.measured))

    @property
    def text(self) -> str:
        """`num_steps=64 was never measured, nor anything near: only 1 to 8`."""
        if not self.measured:
            return f"{self.name}={self.value}: no measured trial has any value of it"
        if self.is_range:
            low, high = self.measured[0], self.measured[-1]
            known = f"{low} to {high}" if low != high else f"{low}"
            return f"{self.name}={self.value} lies outside of what was measured, {known}"
        listed = ", ".join(map(str, self.measured[:_MAX_LISTED]))
        return f"{self.name}={self.value} was never measured, only {listed}"


def outside(
    parameters: Sequence[Parameter], names: Iterable[str], config: ServerConfig, trials: Sequence[TrialRecord]
) -> tuple[Outside, ...]:
    """Those of the parameters called `names` whose value in `config` no measured trial covers."""
    asked = set(names)
    return tuple(
        found
        for parameter in parameters
        if parameter.name in asked and (found := _outside(parameter, config, trials)) is not None
    )


def _outside(parameter: Parameter, config: ServerConfig, trials: Sequence[TrialRecord]) -> Outside | None:
    value = _value(parameter, config)
    if value is None:
        return None
    known = {found for trial in trials if (found := _value(parameter, trial.canonical)) is not None}
    if _is_number(value):  # beside those that leave the flag away
        numbers = sorted(found for found in known if _is_number(found))
        is_covered = bool(numbers) and numbers[0] <= value <= numbers[-1]
        return None if is_covered else Outside(parameter.name, value, tuple(numbers))
    is_covered = any(type(found) is type(value) and found == value for found in known)
    return None if is_covered else Outside(parameter.name, value, tuple(sorted(known, key=str)))


def _value(parameter: Parameter, config: ServerConfig) -> FlagValue | None:
    """False for a flag that is left away."""
    if parameter.is_env:
        return config.env.get(parameter.name)
    return config.flags.get(parameter.name, False)


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)
