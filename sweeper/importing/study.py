"""Imported launches written as a study: like one that a sweep measured, and never continued by one.

A study is written anew whenever something is added: its space grows with the values that were seen. Numbers of
trials stay, and so does the study's identity, so that MLflow's runs stay too.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import optuna
from optuna.trial import TrialState as OptunaState

from sweeper.books import Books
from sweeper.deciding.comparable import comparable
from sweeper.deciding.verdict import Verdict, decide
from sweeper.engines.base import HostFacts
from sweeper.engines.registry import roles_of, simplicity_of, speculates_of
from sweeper.errors import ConfigError
from sweeper.fingerprint import IMPORTED
from sweeper.importing.launches import IMPORTED_FILE, Imported, facts_of
from sweeper.importing.space import Spanned, spanned
from sweeper.kept_search import KeptSearch
from sweeper.night_spec import MAX_FINALISTS
from sweeper.records import LaunchRecord, Purpose, TrialRecord
from sweeper.samplers.encoding import distribution, encode, optuna_name
from sweeper.searching.choice import PHYSICAL
from sweeper.space import describe
from sweeper.spec import ServerConfig, StudySpec
from sweeper.storing.storage import StudyStore

OBJECTIVES = ("output_throughput", "decode_throughput", "mean_prompt_throughput", "request_throughput")
"""What an imported study is ranked by: the first that all of its launches have."""

_LOAD_FACT = "imported_load"


@dataclass(frozen=True)
class ImportedStudy:
    """An imported study as MLflow's view needs it."""

    store: StudyStore
    objective: str

    @property
    def name(self) -> str:
        """The study's name."""
        return self.store.name

    @property
    def identity(self) -> str:
        """A random word of this very study."""
        return str(self.store.fact("identity"))

    @property
    def facts(self) -> Mapping[str, str]:
        """What all trials have in common."""
        return self.store.fact("fingerprint") or {}

    def trials(self) -> tuple[TrialRecord, ...]:
        """Every trial, as recorded."""
        return self.store.trials()

    def artifact(self, trial_number: int, name: str) -> bytes:
        """The content of an artifact. Raises KeyError when there is none of that name."""
        return self.store.artifact(trial_number, name)

    def verdict_text(self) -> str | None:
        """The verdict in words."""
        verdict = self.store.fact("verdict")
        return verdict["text"] if verdict else None


@dataclass(frozen=True)
class Batch:
    """What is to be added: launches measured on `engine` under `load`."""

    engine: str
    load: Mapping[str, str]
    launches: Sequence[Imported]


def earlier_launches(store: StudyStore) -> list[Imported]:
    """The launches of an imported study; none of a new one.

    Raises ConfigError for a study that a sweep measured, SpecsweepError for one that cannot be read.
    """
    store.require_readable()
    trials = store.trials()
    fingerprint = store.fact("fingerprint")
    if (trials or fingerprint) and not (fingerprint and IMPORTED in fingerprint):
        instead = "import into a study of its own: study.name=OTHER"
        raise ConfigError([f"study.name: {store.name!r} was measured by a sweep; {instead}"])
    speculates = speculates_of(fingerprint["engine.name"]) if fingerprint else None
    return [
        Imported(speculates is not None and speculates(launch.requested), launch)
        for trial in trials
        for launch in trial.launches
    ]


def require_same_load(store: StudyStore, batch: Batch) -> None:
    """Raises ConfigError when the study was imported from another engine, or under another load."""
    fingerprint = store.fact("fingerprint") or {}
    known = {"engine": fingerprint.get("engine.name", batch.engine), **(store.fact(_LOAD_FACT) or {})}
    told = {"engine": batch.engine, **batch.load}
    mistakes = [
        f"study.name: {store.name!r} has results of {name} {known[name]!r}, these are of {told[name]!r}; they "
        f"do not "
        "compare: study.name=OTHER"
        for name in sorted(known.keys() & told.keys())
        if known[name] != told[name]
    ]
    if mistakes:
        raise ConfigError(mistakes)


def write(old: StudyStore | None, place: StudySpec, batch: Batch) -> ImportedStudy:
    """Write all launches, earlier ones first, into the study anew; `old` is what it was, if it was.

    Raises ConfigError when they cannot be ranked; nothing has been changed then.
    """
    trials = _numbered(batch)
    objective = _objective([launch for _, group in trials for launch in group])
    identity, load = None, dict(batch.load)
    if old is not None:
        identity, load = old.fact("identity"), {**(old.fact(_LOAD_FACT) or {}), **load}
    folder = Path(place.dir) / "artifacts" / place.name
    folder.mkdir(parents=True, exist_ok=True)
    store = StudyStore(optuna.create_study(study_name=place.name, direction="maximize"), folder)  # in memory
    store.set_fact("identity", identity or secrets.token_hex(8))
    store.set_fact(_LOAD_FACT, load)
    speculates = speculates_of(batch.engine)
    configs = [group[0].requested for _, group in trials]
    span = spanned(configs, [speculates(config) for config in configs], roles_of(batch.engine))
    everything = [launch for _, group in trials for launch in group]
    store.set_fact("fingerprint", _fingerprint(batch, load, span, objective, everything))
    KeptSearch(
        engine=batch.engine,
        objective=objective,
        space=span.space,
        base=span.base,
        facts=HostFacts(engine_version=facts_of(everything).get("engine_version", "")),
        unknown=_unknown(batch.engine, objective, configs),
        as_told=True,
    ).keep(store)
    _write_trials(store, trials, span, objective)
    _give_verdict(store, batch.engine, objective)
    return ImportedStudy(_put(store, place), objective)


def _put(made: StudyStore, place: StudySpec) -> StudyStore:
    """The study as it was made, in the place of the one of its name: one write per trial instead of twenty."""
    storage = StudyStore.open(place.storage, place.name, place.dir, create=True).optuna._storage
    optuna.delete_study(study_name=place.name, storage=storage)
    optuna.copy_study(from_study_name=made.name, from_storage=made.optuna._storage, to_storage=storage)
    return StudyStore.open(place.storage, place.name, place.dir, create=False)


def _numbered(batch: Batch) -> list[tuple[int, list[LaunchRecord]]]:
    """Trial number to its launches, in their order. Trial 0 is the simplest configuration that does not draft."""
    groups: dict[str, list[Imported]] = {}
    for one in batch.launches:
        groups.setdefault(one.record.canonical.key(), []).append(one)
    plain = [group for group in groups.values() if not group[0].drafts]
    simple = simplicity_of(batch.engine)
    base = min(plain, key=lambda group: simple(group[0].record.canonical), default=None)
    rest = [group for group in groups.values() if group is not base]
    rest.sort(key=lambda group: group[0].record.trial_number or len(batch.launches) + 1)
    ordered = [*([(0, base)] if base else []), *enumerate(rest, start=1)]
    confirms = _all_repeated([group for _, group in ordered], has_base=base is not None)
    return [(number, _placed(number, group, confirms=confirms)) for number, group in ordered]


def _all_repeated(groups: Sequence[Sequence[Imported]], *, has_base: bool) -> bool:
    """Whether the repeats can carry a verdict: everything was repeated, so nothing was chosen by its value.

    Of more than MAX_FINALISTS configurations the joint error takes too long to find.
    """
    return has_base and 1 < len(groups) <= MAX_FINALISTS + 1 and all(len(group) > 1 for group in groups)


def _placed(number: int, group: Sequence[Imported], *, confirms: bool) -> list[LaunchRecord]:
    """A trial's launches under their numbers; why they were made is not known, but what they can show is."""
    first, again = (Purpose.SEARCH, Purpose.RECHECK) if number else (Purpose.BASELINE, Purpose.CONTROL)
    return [
        one.record.model_copy(
            update={
                "trial_number": number,
                "launch_number": index,
                "purpose": Purpose.CONFIRM if confirms else again if index else first,
                "canonical": group[0].record.canonical,
                "requested": group[0].record.requested,
            }
        )
        for index, one in enumerate(group)
    ]


def _objective(launches: Sequence[LaunchRecord]) -> str:
    found = next((name for name in OBJECTIVES if all(name in launch.metrics for launch in launches)), None)
    if found is None:
        none = f"none of {', '.join(OBJECTIVES)} is told of each"
        raise ConfigError([f"the results cannot be ranked: {none}; --where takes a part"])
    return found


def _fingerprint(
    batch: Batch, load: Mapping[str, str], span: Spanned, objective: str, launches: Sequence[LaunchRecord]
) -> dict[str, str]:
    """What is known that a sweep would have to have in common with these results, and whose they are."""
    known = facts_of(launches)
    files = dict.fromkeys(launch.provenance[IMPORTED_FILE] for launch in launches)
    return {
        "engine.name": batch.engine,
        **({"engine.version": known["engine_version"]} if "engine_version" in known else {}),
        **{f"engine.flags.{name}": repr(value) for name, value in span.base.flags.items()},
        **{f"engine.env.{name}": repr(value) for name, value in span.base.env.items()},
        "objective": objective,
        **{f"space.{optuna_name(p)}": describe(p.domain) for p in span.space.parameters},
        **{f"workload.{name}": load[name] for name in ("concurrency", "request_rate") if name in load},
        **{f"imported.{name}": load[name] for name in ("workload", "model") if name in load},
        IMPORTED: f"{len(launches)} launches from {', '.join(files)}",
    }


def _unknown(engine: str, objective: str, configs: Sequence[ServerConfig]) -> str:
    """Why the physics cannot say anything of these results; empty when it can."""
    roles, speculates = roles_of(engine), speculates_of(engine)
    drafting = [config for config in configs if speculates(config)]
    if roles is None or not roles.topk:
        return f"how {engine} drafts is not modelled"
    if objective not in PHYSICAL:
        return f"the results are ranked by {objective}, not by one of {', '.join(PHYSICAL)}"
    numbers = [config.flags.get(name) for config in drafting for name in (roles.num_steps, roles.topk)]
    if not drafting or not all(type(value) is int and value > 0 for value in numbers):
        return f"{roles.num_steps} and {roles.topk} are not told of every configuration that drafts"
    others = {str(c.flags.get(roles.algorithm)).upper() for c in drafting} - set(roles.algorithms)
    return f"{sorted(others)[0]} does not draft as {', '.join(roles.algorithms)} do" if others else ""


def _write_trials(
    store: StudyStore, trials: Sequence[tuple[int, list[LaunchRecord]]], span: Spanned, objective: str
) -> None:
    """Each trial with its parameters, then its launches, then its value."""
    books = Books(store, store.optuna)
    domains = {parameter.name: parameter for parameter in span.space.parameters}
    if not trials or trials[0][0] != 0:  # the baseline's place, until one is imported
        store.optuna.add_trial(optuna.trial.create_trial(state=OptunaState.WAITING))
    for number, launches in trials:
        values = {} if number == 0 else span.values(launches[0].requested)
        store.optuna.add_trial(
            optuna.trial.create_trial(
                state=OptunaState.RUNNING,
                params={optuna_name(domains[n]): encode(domains[n], v) for n, v in values.items()},
                distributions={optuna_name(domains[n]): distribution(domains[n]) for n in values},
            )
        )
        books.begin(number, launches[0].requested, launches[0].canonical)
        for launch in launches:
            store.save_launch(launch, {})
        books.score(number, launches[0].metrics[objective], launches[0].estimated)


def _give_verdict(store: StudyStore, engine: str, objective: str) -> None:
    """As at the end of a sweep."""
    verdict: Verdict = decide(comparable(store.trials())[0], objective, simplicity_of(engine))
    store.set_fact("verdict", verdict.model_dump(mode="json"))
