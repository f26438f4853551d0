"""How a sweep searches: which sampler, why, and what stands in the way of one that was asked for. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sweeper.engines.base import Engine, Speculation
from sweeper.samplers.choice import LISTED_ONLY, PHYSICS, gp_is_missing
from sweeper.searching.candidates import ENUMERABLE
from sweeper.space import domain_values, num_combinations
from sweeper.spec import FlagValue, ServerConfig, SweepSpec

PHYSICAL = ("output_throughput", "decode_throughput")
"""Objectives that are accept_length over step time: what the physics models."""

MAX_VALUES = 500
"""A parameter with more values than this is not listed for the physics."""


@dataclass(frozen=True)
class Search:
    """The sampler by name, and in words what it searches or why it is that one."""

    sampler: str
    words: str

    @property
    def text(self) -> str:
        """As the log says it at the start."""
        return f"search: {self.sampler} ({self.words})"


def search_of(spec: SweepSpec, engine: Engine) -> Search:
    """The sampler of a sweep; `auto` is decided."""
    asked = spec.study.sampler
    if asked not in ("auto", "physics"):
        return Search(asked, "as asked")
    reason = unknown_to_physics(spec, engine)
    roles = engine.speculation()
    if reason or roles is None:
        return Search("tpe", f"not physics: {reason}")
    return Search("physics", ", ".join(p.name for p in spec.space.parameters if p.name in roles.names))


def sampler_mistakes(spec: SweepSpec, engine: Engine) -> list[str]:
    """Why the sampler that was asked for cannot search this space, as mistakes in the configuration."""
    asked = spec.study.sampler
    reason = ""
    if asked == "gp" and (missing := gp_is_missing()):
        reason = (
            f"needs {missing}, which is not installed here: pip install {missing}, or tpe, which needs nothing"
        )
    elif asked in LISTED_ONLY:
        count = num_combinations(spec.space)
        if count is None:
            reason = "needs listed values, but the space has an interval; choice(...) or range(...), or tpe"
        elif count > ENUMERABLE:
            reason = f"would list {count:,} combinations, more than {ENUMERABLE:,}; a smaller space, or tpe"
    elif asked == "physics" and (why := unknown_to_physics(spec, engine)):
        reason = f"does not know this sweep: {why}; auto or tpe"
    lines = [f"study.sampler: {asked!r} {reason}"] if reason else []
    return [*lines, *_warm_start_mistakes(spec, engine)]


def _warm_start_mistakes(spec: SweepSpec, engine: Engine) -> list[str]:
    names, search = spec.study.warm_start, search_of(spec, engine)
    if spec.study.name in names:
        return [f"study.warm_start: {spec.study.name!r} is this study itself"]
    if names and search.sampler != PHYSICS:
        return [
            f"study.warm_start: only physics learns from others, and this is {search.sampler} ({search.words})"
        ]
    return []


def unknown_to_physics(spec: SweepSpec, engine: Engine) -> str:
    """Why the physics cannot search this sweep; empty when it can."""
    roles = engine.speculation()
    if roles is None:
        return f"nothing is known of how {engine.name} drafts"
    if spec.objective_metric not in PHYSICAL:
        return f"the objective is {spec.objective.text(spec.workload.name)}, not one of {', '.join(PHYSICAL)}"
    values = _values(spec)
    return _long_values(spec) or _roles_missing(roles, spec, values) or _other_drafting(roles, values, engine)


def _values(spec: SweepSpec) -> Mapping[str, Sequence[FlagValue]]:
    """All values that each flag may have in this sweep."""
    searched = {p.name: domain_values(p.domain) or () for p in spec.space.parameters if not p.is_env}
    return {**{name: (value,) for name, value in spec.engine.flags.items()}, **searched}


def _long_values(spec: SweepSpec) -> str:
    for parameter in spec.space.parameters:
        values = domain_values(parameter.domain)
        if values is None:
            return f"{parameter.name} is an interval, and it needs listed values"
        if len(values) > MAX_VALUES:
            return f"{parameter.name} has {len(values):,} values, more than {MAX_VALUES:,}"
    return ""


def _roles_missing(roles: Speculation, spec: SweepSpec, values: Mapping[str, Sequence[FlagValue]]) -> str:
    searched = {parameter.name for parameter in spec.space.parameters}
    numbers = roles.numbers
    if searched.isdisjoint(numbers):
        return f"the space searches none of {', '.join(numbers)}"
    for name in numbers:
        if not all(type(value) is int and value > 0 for value in values.get(name, ())):
            return f"{name} has values that are no whole numbers above 0"
    return "" if roles.num_steps in values else f"{roles.num_steps} is neither searched nor set"


def _other_drafting(roles: Speculation, values: Mapping[str, Sequence[FlagValue]], engine: Engine) -> str:
    """Algorithms to which the three numbers mean something else, or flags that change them while serving."""
    algorithms = [v for v in values.get(roles.algorithm, ()) if _speculates(roles, v, engine)]
    if not algorithms:
        return f"no value of {roles.algorithm} speculates"
    for algorithm in algorithms:
        if str(algorithm).upper() not in roles.algorithms:
            return f"{roles.algorithm} {algorithm} does not draft as {', '.join(roles.algorithms)} do"
    changing = [name for name in roles.changing if any(value is not False for value in values.get(name, ()))]
    return f"{changing[0]} changes the number of steps while serving" if changing else ""


def _speculates(roles: Speculation, algorithm: FlagValue, engine: Engine) -> bool:
    return engine.is_speculative(ServerConfig(flags={roles.algorithm: algorithm}))
