"""Which settings of NCCL a space searches, and what keeps them from being timed. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from sweeper.engines.all_reduces import NCCL, AllReduces
from sweeper.engines.base import Engine, HostFacts
from sweeper.facts import all_values
from sweeper.probing.commands import Messages
from sweeper.samplers.choice import PHYSICS
from sweeper.samplers.encoding import optuna_name
from sweeper.searching.choice import search_of
from sweeper.space import domain_values
from sweeper.spec import FlagValue, Parameter, ServerConfig, SpaceSpec, SweepSpec

MAX_SETTINGS = 200
"""At 5 to 15 s each, more of them cost more than they can save."""

Values = Mapping[str, FlagValue]
"""Of the searched variables, by the study's names (`env.NAME`); one that is not there is unset."""


@dataclass(frozen=True)
class Setting:
    """One setting of NCCL: `env` as the server gets it, and all `values` of the space that come to it.

    `is_default`: the baseline has it too, which runs.
    """

    env: Mapping[str, str]
    values: tuple[Values, ...]
    is_default: bool = False

    @property
    def text(self) -> str:
        """`NCCL_PROTO=LL NCCL_MIN_NCHANNELS=8`."""
        return " ".join(f"{name}={value}" for name, value in self.env.items()) or "nothing set"


def variables(space: SpaceSpec) -> tuple[Parameter, ...]:
    """The searched variables of NCCL."""
    return tuple(p for p in space.parameters if p.is_env and p.name.startswith(NCCL))


def settings_of(
    space: SpaceSpec, baseline: ServerConfig, canonical: Callable[[ServerConfig], ServerConfig | None]
) -> tuple[Setting, ...]:
    """Every distinct, legal setting, the baseline's first. `canonical`: None for an illegal configuration.

    A variable that depends on others than these can be unset beside any values of the rest.
    """
    searched = variables(space)
    found: dict[frozenset[tuple[str, str]], list[Values]] = {}
    shown: dict[frozenset[tuple[str, str]], Mapping[str, str]] = {}
    for values in ({}, *_combinations(searched)):
        env = {p.name: str(values[optuna_name(p)]) for p in searched if optuna_name(p) in values}
        made = canonical(ServerConfig(flags=baseline.flags, env={**baseline.env, **env}))
        if made is not None:
            key = frozenset((name, value) for name, value in made.env.items() if name.startswith(NCCL))
            found.setdefault(key, []).append(values)
            shown.setdefault(key, env)
    return tuple(Setting(shown[key], tuple(alike), is_default={} in alike) for key, alike in found.items())


def probe_mistakes(spec: SweepSpec, engine: Engine) -> list[str]:
    """Why nothing could come of `probe.nccl`, as far as no host is needed to see it."""
    if not spec.probe.nccl:
        return []
    search = search_of(spec, engine)
    used = engine.all_reduces(all_values(spec), HostFacts())
    searched = variables(spec.space)
    count = num_settings(searched)
    reason = ""
    if used is None:
        reason = f"{engine.name} does not use NCCL"
    elif not searched:
        reason = f"the space searches none of NCCL's variables (space.env.{NCCL}...)"
    elif search.sampler != PHYSICS:
        reason = f"only physics makes use of it, and this search is {search.sampler} ({search.words})"
    elif spec.host.nodes:
        reason = "it times the GPUs of one host, and this server spans several"
    elif used.num_ranks < 2:
        reason = f"one GPU adds nothing up: engine.flags.{used.ranks_flag} says how many the server uses"
    elif count > MAX_SETTINGS:
        reason = f"the space has {count:,} settings of NCCL; more than {MAX_SETTINGS} take too long"
    return [f"probe.nccl: true, but {reason}; or probe.nccl=false"] if reason else []


def messages_of(used: AllReduces, num_gpus: int, tokens: tuple[int, ...]) -> Messages:
    """What to time for a server. `num_gpus`: how many may be used, 0 where that is not known.

    Raises ValueError with what of the host or the model stands against it.
    """
    if used.hidden_size is None or used.num_layers is None:
        raise ValueError("the model's config.json does not tell its hidden size and its layers")
    if 0 < num_gpus < used.num_ranks:
        raise ValueError(f"the server uses {used.num_ranks} GPUs, and {num_gpus} can be used on this host")
    return Messages(used.num_ranks, used.hidden_size, used.num_layers, tokens)


def num_settings(searched: Sequence[Parameter]) -> int:
    """How many combinations there are at most."""
    count = 1
    for parameter in searched:
        count *= len(domain_values(parameter.domain) or ()) + bool(parameter.when)
    return count


def _combinations(searched: Sequence[Parameter]) -> Iterator[Values]:
    """All values together that some configuration of the space has."""
    names = {parameter.name for parameter in searched}
    options = [(*(domain_values(p.domain) or ()), *((None,) if p.when else ())) for p in searched]
    for values in product(*options):
        chosen = {p.name: value for p, value in zip(searched, values, strict=True) if value is not None}
        if all(_may_be(parameter, chosen, names) for parameter in searched):
            yield {optuna_name(p): chosen[p.name] for p in searched if p.name in chosen}


def _may_be(parameter: Parameter, chosen: Mapping[str, FlagValue], names: set[str]) -> bool:
    """Whether a variable can be set, or unset, beside the others."""
    inner = {name: allowed for name, allowed in parameter.when.items() if name in names}
    held = all(chosen.get(name) in allowed for name, allowed in inner.items())
    return held if parameter.name in chosen else not held or len(inner) < len(parameter.when)
