"""Opens the study of a sweep: its space under the engine's rules, its sampler, and what it learns from others."""

from __future__ import annotations

from dataclasses import dataclass

from sweeper.deciding.lossless import Gate
from sweeper.deciding.sharing import Ranking
from sweeper.engines.base import Engine, HostFacts
from sweeper.fingerprint import fingerprint
from sweeper.kept_search import KeptSearch, candidates_of
from sweeper.probing.findings import all_reduce_of
from sweeper.samplers.choice import PHYSICS, SamplerSettings
from sweeper.searching.candidates import Candidates
from sweeper.searching.choice import search_of, unknown_to_physics
from sweeper.searching.speculation import Physics
from sweeper.searching.warm_start import earlier_observations
from sweeper.spec import ServerConfig, SweepSpec
from sweeper.storing.storage import StudyStore
from sweeper.storing.study_facts import identity_of, searched_otherwise
from sweeper.study import Study


@dataclass(frozen=True)
class Prepared:
    """A study with what it was made of. `notes`: what should be said of its search, one line each."""

    study: Study
    candidates: Candidates
    sampler: SamplerSettings
    notes: tuple[str, ...]


def open_study(spec: SweepSpec, engine: Engine, facts: HostFacts) -> tuple[Study, list[str]]:
    """The study of a sweep, made if it does not exist yet, and what should be said of its search, one line each.

    Raises ConfigError, StudyMismatch for one that was measured with other settings, and SpecsweepError for one of
    which something cannot be read.
    """
    store = StudyStore.of(spec.study, create=True)
    store.require_readable()
    prepared = study_in(store, spec, engine, facts)
    study, candidates = prepared.study, prepared.candidates
    study.require_same(fingerprint(spec, facts))
    identity_of(store)  # made before anything is written under it
    unknown = unknown_to_physics(spec, engine)
    KeptSearch(
        engine=engine.name,
        objective=spec.objective_metric,
        space=spec.space,
        base=candidates.base,
        facts=facts,
        unknown=unknown,
    ).keep(store)
    otherwise = searched_otherwise(store, prepared.sampler.name, prepared.sampler.seed)
    return study, [*prepared.notes, *filter(None, [otherwise]), *candidates.never_legal()]


def study_in(store: StudyStore, spec: SweepSpec, engine: Engine, facts: HostFacts) -> Prepared:
    """A store as the study of a sweep. Writes nothing.

    Raises ConfigError.
    """
    base = ServerConfig(flags=spec.engine.flags, env=spec.engine.env)
    candidates = candidates_of(spec.space, base, engine, facts)
    candidates.require_any(engine.is_speculative)
    baseline, search = engine.baseline(base, facts), search_of(spec, engine)
    notes = [search.text]
    sampler = SamplerSettings(search.sampler, spec.study.seed, spec.study.startup_trials)
    roles = engine.speculation()
    if roles is not None and search.sampler == PHYSICS:
        physics = Physics(candidates, roles, baseline, facts=facts)
        earlier, told = earlier_observations(spec.study, physics, fingerprint(spec, facts), spec.objective_metric)
        notes += told
        made = Physics(candidates, roles, baseline, earlier, lambda: all_reduce_of(store), facts).sampler
        sampler = SamplerSettings(search.sampler, spec.study.seed, spec.study.startup_trials, made)
    gate = Gate(allow_lossy=spec.verdict.allow_lossy)
    study = Study(store, candidates, baseline, sampler, Ranking(spec.objective_metric, gate))
    return Prepared(study, candidates, sampler, tuple(notes))
