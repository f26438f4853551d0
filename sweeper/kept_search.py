"""What a study keeps of how it was searched, so that it can be asked without its host or its configuration."""

from __future__ import annotations

import json

from pydantic import ValidationError

from sweeper.engines.base import Engine, HostFacts
from sweeper.engines.registry import canonical_as_told, engine_for
from sweeper.errors import ConfigError
from sweeper.frozen import Frozen
from sweeper.probing.findings import all_reduce_of
from sweeper.searching.candidates import Candidates
from sweeper.searching.speculation import Physics
from sweeper.secrets import masked_config
from sweeper.spec import ServerConfig, SpaceSpec
from sweeper.storing.storage import StudyStore

_FACT = "searched"


class KeptSearch(Frozen):
    """A search as it was set up. `unknown`: why the physics cannot say anything about it; else empty.

    `base`: flags and environment that every launch got. `objective`: the metric that holds it. `as_told`: others
    measured it, so nothing of it is refused, and nothing is filled in that they do not tell.
    """

    engine: str
    objective: str
    space: SpaceSpec
    base: ServerConfig
    facts: HostFacts
    unknown: str = ""
    as_told: bool = False

    def keep(self, store: StudyStore) -> None:
        """Write it down in the study."""
        kept = self.model_copy(update={"base": masked_config(self.base)})
        store.set_fact(_FACT, kept.model_dump(mode="json"))

    @classmethod
    def of(cls, store: StudyStore) -> KeptSearch:
        """What a study keeps. Raises ConfigError when it keeps nothing, or nothing that this version reads."""
        stored = store.fact(_FACT)
        if stored is None:
            raise ConfigError(
                [f"study.name: {store.name!r} does not say how it was searched; `specsweep run` writes it down"]
            )
        try:
            return cls.model_validate_json(json.dumps(stored))
        except ValidationError as error:
            raise ConfigError([f"study.name: {store.name!r} was searched by another version: {error}"]) from None

    def candidates(self) -> Candidates:
        """The space under its engine's rules."""
        if self.as_told:
            return Candidates(self.space, self.base, canonical_as_told(self.engine), lambda _: [])
        engine = engine_for(self.engine)
        return candidates_of(self.space, self.base, engine, self.facts)

    def physics(self, store: StudyStore) -> Physics | None:
        """The search of `store` as the physics sees it; None where it does not know the space."""
        if self.unknown:
            return None
        engine, candidates = engine_for(self.engine), self.candidates()
        roles = engine.speculation()
        if roles is None:
            return None
        baseline = candidates.canonical(engine.baseline(self.base, self.facts))
        return Physics(candidates, roles, baseline, all_reduce=lambda: all_reduce_of(store), facts=self.facts)


def candidates_of(space: SpaceSpec, base: ServerConfig, engine: Engine, facts: HostFacts) -> Candidates:
    """A space under an engine's rules on a host."""
    return Candidates(
        space,
        base,
        lambda config: engine.canonical(config, facts),
        lambda config: engine.violations(config, facts),
    )
