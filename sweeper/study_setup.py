"""Opens the study of a sweep: its space under the engine's rules, its sampler, and what it learns from others."""

from __future__ import annotations

from sweeper.deciding.lossless import Gate
from sweeper.engines.base import Engine, HostFacts
from sweeper.fingerprint import fingerprint
from sweeper.kept_search import KeptSearch, candidates_of
from sweeper.probing.findings import all_reduce_of
from sweeper.samplers.choice import PHYSICS, SamplerSettings
from sweeper.searching import search_of, unknown_to_physics
from sweeper.spec import ServerConfig, SweepSpec
from sweeper.speculation import Physics
from sweeper.storage import StudyStore
from sweeper.study import Ranking, Study
from sweeper.study_facts import searched_otherwise
from sweeper.warm_start import earlier_observations


def open_study(spec: SweepSpec, engine: Engine, facts: HostFacts) -> tuple[Study, list[str]]:
    """The study of a sweep, made if it does not exist yet, and what should be said of its search, one line each.

    Raises ConfigError, and StudyMismatch for one that was measured with other settings.
    """
    store = StudyStore.of(spec.study, create=True)
    base = ServerConfig(flags=spec.engine.flags, env=spec.engine.env)
    candidates = candidates_of(spec.space, base, engine, facts)
    candidates.require_any(engine.is_speculative)
    baseline, roles, search = engine.baseline(base, facts), engine.speculation(), search_of(spec, engine)
    current = fingerprint(spec, facts)
    notes = [search.text]
    sampler = SamplerSettings(search.sampler, spec.study.seed, spec.study.startup_trials)
    if roles is not None and search.sampler == PHYSICS:
        physics = Physics(candidates, roles, baseline, facts=facts)
        earlier, told = earlier_observations(spec.study, physics, current, spec.objective_metric)
        notes += told
        made = Physics(candidates, roles, baseline, earlier, lambda: all_reduce_of(store), facts).sampler
        sampler = SamplerSettings(search.sampler, spec.study.seed, spec.study.startup_trials, made)
    gate = Gate(allow_lossy=spec.verdict.allow_lossy)
    study = Study(store, candidates, baseline, sampler, Ranking(spec.objective_metric, gate))
    study.require_same(current)
    unknown = unknown_to_physics(spec, engine)
    KeptSearch(
        engine=engine.name,
        objective=spec.objective_metric,
        space=spec.space,
        base=base,
        facts=facts,
        unknown=unknown,
    ).keep(store)
    otherwise = searched_otherwise(store, sampler.name, sampler.seed)
    return study, [*notes, *filter(None, [otherwise]), *candidates.never_legal()]
