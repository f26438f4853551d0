"""A sweep as the physics sampler sees it: its space, the roles of its flags, and what each trial showed. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from itertools import zip_longest
from typing import Any

from optuna.trial import FrozenTrial
from optuna.trial import TrialState as OptunaState
from pydantic import ValidationError

from sweeper.engines.base import HostFacts, Speculation
from sweeper.records import TrialRecord, TrialState
from sweeper.samplers.encoding import decode, encode, optuna_name
from sweeper.samplers.physics import (
    AllReduce,
    FlagPrior,
    Link,
    Observation,
    PhysicsSampler,
    Roles,
    SearchParameter,
    SearchSpace,
    Spelling,
    flag_priors,
)
from sweeper.samplers.physics.roles import KNOWN_FLAGS
from sweeper.searching.candidates import Candidates
from sweeper.space import active, domain_values
from sweeper.spec import Choice, FlagValue, Parameter, ServerConfig

Config = Mapping[str, FlagValue]
"""Values by the study's names (`env.NAME` for variables), in the flags' own spelling; active parameters only."""

_LAUNCH = "launch:"

NO_GRAPHS = KNOWN_FLAGS["disable_cuda_graph"]
"""What is expected of the flag that switches CUDA graphs off, whatever an engine calls it."""


@dataclass(frozen=True)
class Physics:
    """The search of one study by the physics. `roles`: the engine's; `baseline`: canonical, without speculation.

    `earlier`: what other studies on the same host showed. `all_reduce`: reads the timings of all-reduces, which
    may be taken after this was made. `facts`: of the host.
    """

    candidates: Candidates
    roles: Speculation
    baseline: ServerConfig
    earlier: tuple[Observation, ...] = ()
    all_reduce: Callable[[], AllReduce | None] = lambda: None
    facts: HostFacts = field(default_factory=HostFacts)

    def sampler(self, seed: int) -> PhysicsSampler:
        """A sampler whose proposals depend on the seed and on the study's trials alone."""
        times = self.all_reduce()
        if not self._made or self._made[-1][0] != times:
            made = PhysicsSampler(
                self.space,
                self.sampler_roles,
                observe=self.observe,
                spelling=self.spelling,
                earlier=self.earlier,
                all_reduce=times,
            )
            self._made[:] = [(times, made)]
        return self._made[-1][1].with_seed(seed)

    @cached_property
    def _made(self) -> list[tuple[AllReduce | None, PhysicsSampler]]:
        """The sampler that was made last, with the timings that it was made for."""
        return []

    @cached_property
    def space(self) -> SearchSpace:
        """The parameters, with the engine's rules for what is legal and what is the same."""
        return SearchSpace(tuple(_parameter(p, self._by_name) for p in self._parameters), self._normal)

    @cached_property
    def _normal(self) -> _Normal:
        return _Normal(self.candidates)

    @cached_property
    def sampler_roles(self) -> Roles:
        """Which parameters shape acceptance; those that are not searched have their fixed values."""
        flags, searched = self.candidates.base.flags, self._by_name
        topk, tokens = (
            name if name in searched or name in flags else None
            for name in (self.roles.topk, self.roles.draft_tokens)
        )
        names = (*self.roles.drafter, self.roles.num_steps, topk, tokens)
        return Roles(
            drafter=tuple(name for name in self.roles.drafter if name in searched),
            num_steps=self.roles.num_steps,
            topk=topk,
            draft_tokens=tokens,
            speculates=self.speculates,
            fixed={
                name: flags[name] for name in names if name is not None and name in flags and name not in searched
            },
            default=self.baseline_config,
            flags=self._flag_priors(),
        )

    def _flag_priors(self) -> Mapping[str, FlagPrior]:
        """What the engine tells of its flags; and the machine, where it is known and the same in all the space."""
        base = self.baseline.flags
        found = {self.roles.link(self.baseline, self.facts)} | {
            self.roles.link(ServerConfig(flags={**base, parameter.name: value}), self.facts)
            for parameter in self._parameters
            for value in domain_values(parameter.domain) or ()
            if not parameter.is_env
        }
        link = found.pop() if len(found) == 1 else ""
        ours = self.roles.no_graphs if self.roles.no_graphs not in KNOWN_FLAGS else ""
        graphs = {name: NO_GRAPHS for name in self._by_optuna_name if name == ours}
        return graphs | (flag_priors(Link(link), self._by_optuna_name) if link else {})

    def speculates(self, config: Config) -> bool:
        """Whether a configuration drafts. Where the algorithm is fixed, only the baseline does not."""
        if self.roles.algorithm in self._by_name:
            return str(config.get(self.roles.algorithm, "none")).lower() not in ("none", "false")
        numbers = (self.roles.num_steps, self.roles.topk, self.roles.draft_tokens)
        return any(name in config for name in numbers if name in self._by_name)

    @cached_property
    def spelling(self) -> Spelling:
        """Between the study's values (indices of ordered choices) and the flags' own."""
        return Spelling(self._params, self.config)

    def config(self, params: Mapping[str, Any]) -> Config:
        """The flags' own values for a trial's parameters."""
        named = self._by_optuna_name
        return {name: decode(named[name], value) for name, value in params.items() if name in named}

    @cached_property
    def baseline_config(self) -> Config:
        """The baseline in terms of the space: each parameter's value that changes nothing about it, if listed."""

        def unchanged(parameter: Parameter) -> FlagValue | None:
            values = domain_values(parameter.domain) or ()
            if parameter.name == self.roles.algorithm:
                return next((v for v in values if not self.speculates({parameter.name: v})), None)
            if parameter.name in self.roles.names:
                return None
            return next((v for v in values if self._changes_nothing(parameter, v)), None)

        return self._chosen(unchanged)

    def observe(self, trial: FrozenTrial) -> Observation | None:
        """What a finished trial of ours shows of its configuration; None when it says nothing of it.

        A failure that is the configuration's own violates a constraint; one of the host's or of the tooling does
        not. A value is the objective, also one that was estimated when measuring ended early.
        """
        if trial.user_attrs.get("left_out"):
            return None
        config = self.baseline_config if trial.number == 0 else self.config(trial.params)
        if trial.number and (canonical := trial.user_attrs.get("canonical")):
            with suppress(ValidationError):  # damaged: the store tells it
                self._normal.keep(self.space.active(config), ServerConfig.model_validate(canonical))
        if any(value > 0 for value in trial.constraints.values()):
            return Observation(config, failed=True)
        if trial.state is not OptunaState.COMPLETE or trial.value is None:
            return None
        return _observed(config, trial.value, _shown(trial.user_attrs))

    def observe_record(self, trial: TrialRecord, objective: str) -> Observation | None:
        """The same of a trial of another study, whose space may be another: by its configuration."""
        config = self.config_of(trial.requested)
        if trial.state is TrialState.INFEASIBLE:
            return Observation(config, failed=True)
        value = trial.mean(objective)
        if trial.state is not TrialState.COMPLETE or value is None:
            return None
        return _observed(config, value, [(n.metrics, n.accepted_per_position) for n in trial.measured])

    def config_of(self, server: ServerConfig) -> Config:
        """A server's configuration in terms of the space; a value that is not listed is kept as it is."""
        return self._chosen(lambda parameter: self._value_of(server, parameter))

    def named(self, flags: Mapping[str, FlagValue]) -> Config:
        """The same values by the study's names."""
        return {optuna_name(self._by_name[name]): value for name, value in flags.items()}

    def _chosen(self, value_of: Callable[[Parameter], FlagValue | None]) -> Config:
        """The values of the parameters that exist under those before them; None leaves a parameter out."""
        chosen: dict[str, FlagValue] = {}
        for parameter in self._parameters:
            value = value_of(parameter) if parameter in active(self._parameters, chosen) else None
            if value is not None:
                chosen[parameter.name] = value
        return self.named(chosen)

    @property
    def _parameters(self) -> tuple[Parameter, ...]:
        return self.candidates.space.parameters

    @cached_property
    def _by_name(self) -> dict[str, Parameter]:
        return {p.name: p for p in self._parameters}

    @cached_property
    def _by_optuna_name(self) -> dict[str, Parameter]:
        return {optuna_name(p): p for p in self._parameters}

    def _value_of(self, server: ServerConfig, parameter: Parameter) -> FlagValue | None:
        """A parameter's value on a server. A flag that is left away has the one that changes nothing."""
        raw: FlagValue | None = (server.env if parameter.is_env else server.flags).get(parameter.name)
        if raw is None:
            return self.baseline_config.get(optuna_name(parameter))
        listed = domain_values(parameter.domain) or ()
        return next((v for v in listed if v == raw or (parameter.is_env and str(v) == raw)), raw)

    def _params(self, config: Config) -> dict[str, FlagValue]:
        named = self._by_optuna_name
        return {name: encode(named[name], value) for name, value in config.items() if name in named}

    def _changes_nothing(self, parameter: Parameter, value: FlagValue) -> bool:
        """Whether the baseline with this value is the baseline."""
        if parameter.is_env:
            same = ServerConfig(flags=self.baseline.flags, env={**self.baseline.env, parameter.name: str(value)})
        else:
            same = ServerConfig(
                flags={k: v for k, v in {**self.baseline.flags, parameter.name: value}.items() if v is not False},
                env=self.baseline.env,
            )
        return self.candidates.canonical(same).key() == self.baseline.key()


class _Normal:
    """The canonical form of a configuration under the engine's rules, remembered; None for an illegal one."""

    def __init__(self, candidates: Candidates) -> None:
        self._candidates = candidates
        self._named = {optuna_name(p): p.name for p in candidates.space.parameters}
        self._known: dict[tuple[tuple[str, FlagValue], ...], Config | None] = {}

    def __call__(self, config: Config) -> Config | None:
        key = tuple(config.items())
        if key not in self._known:
            self._known[key] = self._normal(config)
        return self._known[key]

    def keep(self, config: Config, canonical: ServerConfig) -> None:
        """The study knows the canonical form of one of its trials, so that it need not be worked out again."""
        self._known[tuple(config.items())] = _by_name(canonical.with_secrets_of(self._candidates.base))

    def _normal(self, config: Config) -> Config | None:
        flags = {self._named[name]: value for name, value in config.items()}
        canonical = self._candidates.canonical(self._candidates.requested(flags))
        return None if self._candidates.violations(canonical) else _by_name(canonical)


def _by_name(config: ServerConfig) -> Config:
    return {**config.flags, **{f"env.{name}": value for name, value in config.env.items()}}


def _parameter(parameter: Parameter, named: Mapping[str, Parameter]) -> SearchParameter:
    domain = parameter.domain
    values = tuple(domain_values(domain) or ())
    ordered = not isinstance(domain, Choice) or domain.ordered
    return SearchParameter(
        name=optuna_name(parameter),
        values=tuple(sorted(values)) if ordered else values,
        ordered=ordered,
        when={optuna_name(named[name]): allowed for name, allowed in parameter.when.items()},
    )


Shown = tuple[Mapping[str, float], Sequence[int]]
"""Of one measured launch: its metrics, and how many drafts were accepted at each position."""


def _shown(attrs: Mapping[str, Any]) -> list[Shown]:
    """The measured launches in a trial's attributes (storing/storage.py writes them)."""
    records = [value["record"] for name, value in attrs.items() if name.startswith(_LAUNCH)]
    return [(r["metrics"], r["accepted_per_position"]) for r in records if r.get("failure") is None]


def _observed(config: Config, throughput: float, launches: Sequence[Shown]) -> Observation:
    """An observation of these launches, the verify steps of all of them pooled."""
    lengths = [metrics["accept_length"] for metrics, _ in launches if "accept_length" in metrics]
    counted = [
        (metrics["num_verify_steps"], n) for metrics, n in launches if n and metrics.get("num_verify_steps")
    ]
    steps = sum(count for count, _ in counted)
    accepted = zip_longest(*(positions for _, positions in counted), fillvalue=0)
    return Observation(
        config,
        throughput=throughput,
        accept_length=sum(lengths) / len(lengths) if lengths else None,
        survival=tuple(sum(numbers) / steps for numbers in accepted) or None,
    )
