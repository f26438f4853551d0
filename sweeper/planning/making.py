"""Makes the plan of a sweep from its specification and from what is known without its host. Starts nothing."""

from __future__ import annotations

import datetime
import statistics
from collections.abc import Callable, Iterable
from pathlib import Path

from launchers.clock import Clock
from sweeper.deadline import NightSpan
from sweeper.engines.base import Engine, HostFacts
from sweeper.engines.registry import engine_for
from sweeper.fingerprint import fingerprint, of_all_hosts, require_same
from sweeper.known_secrets import KNOWN
from sweeper.nights.night_facts import NightFacts, required_span
from sweeper.nights.purses import Purses
from sweeper.planning.ending import deadlines, ends, launches_to_go, within
from sweeper.planning.history import MODEL_UNKNOWN, Known, fingerprint_of, known_of, launch_time, learned_of
from sweeper.planning.launches import next_launches
from sweeper.planning.model import Plan
from sweeper.planning.search import search_words, standing_words, unchecked
from sweeper.planning.survey import survey
from sweeper.searching.choice import search_of
from sweeper.serving.placing import Placing
from sweeper.spec import SweepSpec
from sweeper.storing.storage import StudyStore
from sweeper.storing.study_place import study_names
from sweeper.study_setup import study_in

Notes = Callable[[Engine, HostFacts], Iterable[str]]
"""What a sweep's owner should know before it begins, one line each."""


def plan_of(spec: SweepSpec, count: int, clock: Clock, notes: Notes = lambda engine, facts: ()) -> Plan:
    """The plan, with the next launch and `count` trials of the search. The host is not asked, nothing is written.

    Raises ConfigError, and StudyMismatch for a study that a start would refuse, as far as that can be seen.
    """
    engine, store = engine_for(spec.engine.name), _stored(spec)
    known = known_of(spec, engine, store)
    if store is not None:
        _require_same(spec, store, known)
    copy = store.in_memory() if store else StudyStore.new_in_memory(spec.study.name, Path(spec.study.dir))
    prepared = study_in(copy, spec, engine, known.facts)
    candidates, baseline = prepared.candidates, prepared.study.baseline
    space = survey(candidates, baseline, engine.speculation())
    budget = within(spec.budget, space.to_try)
    span = required_span(budget, clock, NightFacts(copy, spec.host.name).last())
    trials = copy.trials()
    is_complete = prepared.study.next_step(budget) is None
    progress = prepared.study.progress(budget)
    launches = launches_to_go(progress, budget, is_complete=is_complete)
    time, now = launch_time(spec, known), clock.now()
    end = ends(launches, time, _spread_s(spec, known), now)
    purses = Purses(spec, spec.host.name).of(trials, span, _until_s(span, now))
    made = Plan(
        study=spec.study.name,
        host=spec.host.name,
        engine=_engine_name(engine, known),
        model=spec.model.path or spec.model.name,
        objective=spec.objective.text(spec.workload.name),
        stands=standing_words(trials, progress, is_new=store is None, is_complete=is_complete),
        trials_done=progress.trials_done,
        trials_total=progress.trials_total,
        space=space,
        search=search_words(spec, search_of(spec, engine), prepared.notes[1:]),
        launches=tuple(next_launches(prepared, Placing(spec, engine, known.facts), budget, count)),
        num_launches=launches,
        launch_time=time,
        now=now,
        end_expected_at=end[0],
        end_earliest_at=end[1],
        end_latest_at=end[2],
        deadlines=deadlines(purses, learned_of(spec, known), budget, launches, span),
        facts=known.source,
        unchecked=unchecked(spec, has_own_facts=known.is_own, has_path=known.facts.model_path != MODEL_UNKNOWN),
        notes=tuple(notes(engine, known.facts)),
    )
    return Plan.model_validate(KNOWN.hide_json(made.model_dump(mode="json")))


def _stored(spec: SweepSpec) -> StudyStore | None:
    """The sweep's study; None when it does not exist yet.

    Raises StorageUnusable when it cannot be opened, SpecsweepError for one that a start would refuse as damaged.
    """
    if spec.study.name not in study_names(spec.study.storage):
        return None
    store = StudyStore.of(spec.study)
    store.require_readable()
    return store


def _require_same(spec: SweepSpec, store: StudyStore, known: Known) -> None:
    """Raises StudyMismatch where a start would be refused: what is read from the host is taken to be as it was."""
    stored, current = fingerprint_of(store, spec.host.name), fingerprint(spec, known.facts)
    if not stored:
        return
    if not known.is_own:  # nobody knows what the host would tell
        stored, current = (
            {path: value for path, value in settings.items() if not _is_read(path)}
            for settings in (stored, current)
        )
    if store.database.is_shared and "host.name" not in stored:
        current = of_all_hosts(current)[0]
    require_same(store.name, stored, current)


def _is_read(path: str) -> bool:
    """Whether the host tells it, rather than the configuration."""
    return path.startswith(("engine.version", "engine.build", "host.", "model.")) and path not in (
        "host.name",
        "model.name",
    )


def _engine_name(engine: Engine, known: Known) -> str:
    return f"{engine.name} {known.facts.engine_version}".rstrip()


def _spread_s(spec: SweepSpec, known: Known) -> float:
    """Standard deviation of what one launch takes; 0 where it is not known."""
    times = [value for values in learned_of(spec, known).by_kind.values() for value in values]
    return statistics.stdev(times) if len(times) > 1 else 0.0


def _until_s(span: NightSpan | None, now: datetime.datetime) -> float | None:
    return None if span is None else (span.ends_at - now).total_seconds()
