"""Asks a study what a configuration would do that was perhaps never measured. Reads the study, changes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import log, log2

from sweeper.deciding.comparable import comparable
from sweeper.deciding.hosts import on_scale_of
from sweeper.deciding.sharing import CLOSING_HOST, scale_host
from sweeper.errors import ConfigError
from sweeper.kept_search import KeptSearch
from sweeper.predicting.break_even import Paces, needed_accept_length
from sweeper.predicting.extrapolation import Outside, outside
from sweeper.records import TrialRecord, TrialState
from sweeper.samplers.encoding import optuna_name
from sweeper.samplers.physics import Forecast
from sweeper.samplers.physics.what_if import predict
from sweeper.searching.speculation import Physics
from sweeper.space import describe, domain_values, walk
from sweeper.spec import FlagValue, Parameter, ServerConfig
from sweeper.statistics.least_squares import Interval
from sweeper.storing.storage import StudyStore


@dataclass(frozen=True)
class Answer:
    """What a configuration should do. `rest_of`: the trial whose other values it has.

    `fitted`: tree numbers that were not asked for and not as in that trial, the nearest that fit what was asked.
    `measured`: the trial that has this very configuration, if one does. `needed`: the trials that it would have to
    equal, each with the accept_length at which it does, its step time being as measured, else as predicted.
    `outside`: what was asked for that lies beyond everything measured.
    """

    config: ServerConfig
    forecast: Forecast
    rest_of: TrialRecord
    measured: TrialRecord | None
    needed: tuple[tuple[TrialRecord, Interval], ...]
    fitted: Mapping[str, FlagValue]
    outside: tuple[Outside, ...] = ()


def ask(store: StudyStore, asked: Mapping[str, str]) -> tuple[KeptSearch, Answer]:
    """What a configuration of the study would do. `asked`: values by the names of flags, or by the ends of them
    (num_steps, topk, draft_tokens); all others are those of the best trial that they go with.

    Raises ConfigError with every mistake, and when the study cannot be asked.
    """
    kept = KeptSearch.of(store)
    physics, trials = kept.physics(store), _best_first(store, kept.objective)
    if physics is None:
        raise ConfigError([f"study.name: nothing can be foretold of {store.name!r}: {kept.unknown}"])
    if not any(physics.speculates(physics.config_of(trial.canonical)) for trial in trials):
        raise ConfigError([f"study.name: {store.name!r} has measured no configuration yet that drafts"])
    values = _values(kept.space.parameters, physics, asked)
    rest_of, completed = _completed(physics, values, trials)
    flags = _nearest_tree(kept, physics, values, completed)
    fitted = {name: value for name, value in flags.items() if completed[name] != value}
    config, canonical = physics.named(flags), _legal(kept, flags)
    sampler = physics.sampler(seed=0)
    forecast = predict(sampler, store.optuna, config)
    measured = next((trial for trial in trials if trial.key == canonical.key()), None)
    rivals = [trial for trial in trials if trial is not measured and (trial.is_baseline or trial is trials[0])]
    needed = _needed(store, kept, rivals, (measured, forecast)) if physics.speculates(config) else []
    beyond = outside(kept.space.parameters, (*values, *fitted), canonical, trials)
    return kept, Answer(canonical, forecast, rest_of, measured, tuple(needed), fitted, beyond)


def _needed(
    store: StudyStore,
    kept: KeptSearch,
    rivals: Sequence[TrialRecord],
    ours: tuple[TrialRecord | None, Forecast],
) -> list[tuple[TrialRecord, Interval]]:
    """What a configuration would need to equal each rival, as the report has it of one that was measured."""
    paces = _paces(store, kept.objective)
    compared = {trial.number: trial for trial in paces.trials}
    measured, forecast = compared.get(ours[0].number) if ours[0] else None, ours[1]
    has, own = (measured.mean("accept_length"), paces.of(measured)) if measured else (None, None)
    step, found = forecast.step_time_ms, list[tuple[TrialRecord, Interval]]()
    for rival in rivals:
        pace = paces.of(compared[rival.number]) if rival.number in compared else None
        if pace is not None and has is not None and own is not None:
            found.append((rival, needed_accept_length((has, has), paces.log_ratio(pace, own))))
        elif pace is not None and step is not None:
            log_step_s, variance = log(step.mean / 1000), step.log_deviation**2
            ratio = paces.log_ratio_to_step(pace, log_step_s, variance)
            found.append((rival, needed_accept_length((1.0, 1.0), ratio)))
    return found


def _paces(store: StudyStore, objective: str) -> Paces:
    """How fast the trials are, as far as they may be compared, on the scale of one host: as the report has it."""
    recorded = store.readable()
    host = scale_host(recorded, objective, str(store.fact(CLOSING_HOST) or ""))
    return Paces(tuple(on_scale_of(comparable(recorded)[0], objective, host)), objective)


def _best_first(store: StudyStore, objective: str) -> list[TrialRecord]:
    """The measured trials."""
    measured = [t for t in store.readable() if t.state is TrialState.COMPLETE and t.mean(objective) is not None]
    return sorted(measured, key=lambda trial: -(trial.mean(objective) or 0.0))


def _values(parameters: Sequence[Parameter], physics: Physics, asked: Mapping[str, str]) -> dict[str, FlagValue]:
    """The asked values by the parameters' names. Raises ConfigError with all mistakes."""
    values: dict[str, FlagValue] = {}
    mistakes: list[str] = []
    roles = physics.roles
    for word, text in asked.items():
        found = _named(word, parameters)
        if found is None:
            names = ", ".join(optuna_name(p) for p in parameters)
            mistakes.append(f"{word}: is not searched in this study, or stands for several; it searches {names}")
            continue
        listed = domain_values(found.domain) or ()
        value = _listed(text, listed)
        if (
            value is None
            and text.isdecimal()
            and int(text) > 0
            and found.name in (roles.num_steps, roles.topk, roles.draft_tokens)
        ):
            value = int(text)  # beyond what was searched: the model goes on
        if value is None:
            mistakes.append(f"{word}: {text!r} is no value of {found.name}; it has {describe(found.domain)}")
        else:
            values[found.name] = value
    if mistakes:
        raise ConfigError(mistakes)
    return values


def _listed(text: str, listed: Sequence[FlagValue]) -> FlagValue | None:
    """The listed value that a text stands for: itself, or the only path with that end."""
    exact = [value for value in listed if str(value).lower() == text.lower()]
    found = exact or [value for value in listed if text and str(value).lower().endswith(f"/{text.lower()}")]
    return found[0] if len(found) == 1 else None


def _named(word: str, parameters: Sequence[Parameter]) -> Parameter | None:
    """The parameter that a word stands for: its name, or the end of the only name that ends so."""
    exact = [p for p in parameters if word in (p.name, optuna_name(p))]
    ending = exact or [p for p in parameters if p.name.endswith(f"_{word}")]
    return ending[0] if len(ending) == 1 else None


def _completed(
    physics: Physics, values: Mapping[str, FlagValue], trials: Sequence[TrialRecord]
) -> tuple[TrialRecord, dict[str, FlagValue]]:
    """The values, and all others as in the best trial under which these parameters exist. Raises ConfigError."""
    space = physics.candidates.space
    for trial in trials:
        theirs = {**physics.baseline_config, **physics.config_of(trial.requested)}

        def choose(parameter: Parameter, theirs: Mapping[str, FlagValue] = theirs) -> FlagValue:
            listed = domain_values(parameter.domain) or ()
            return values.get(parameter.name, theirs.get(optuna_name(parameter), listed[0]))

        flags = walk(space, choose)
        if values.keys() <= flags.keys():
            return trial, flags
    missing = next(p for p in space.parameters if p.name in values and p.name not in flags)
    when = " and ".join(f"{name} is {' or '.join(map(str, v))}" for name, v in missing.when.items())
    raise ConfigError([f"{missing.name}: exists only when {when}; ask for that as well"])


def _nearest_tree(
    kept: KeptSearch, physics: Physics, asked: Mapping[str, FlagValue], flags: Mapping[str, FlagValue]
) -> dict[str, FlagValue]:
    """The flags; where their tree is illegal, with the nearest legal numbers that were not asked for, if any."""
    roles, candidates = physics.roles, kept.candidates()
    numbers = (roles.num_steps, roles.topk, roles.draft_tokens)
    free = [p for p in kept.space.parameters if p.name in numbers and p.name in flags and p.name not in asked]
    listed = [_numbers(p, roles.draft_tokens) or (flags[p.name],) for p in free]
    trees = [dict(zip((p.name for p in free), values, strict=True)) for values in product(*listed)]
    for tree in ({}, *sorted(trees, key=lambda tree: _distance(tree, flags))):
        chosen = {**flags, **tree}
        if not candidates.violations(candidates.canonical(candidates.requested(chosen))):
            return chosen
    return dict(flags)


def _numbers(parameter: Parameter, draft_tokens: str) -> Sequence[FlagValue]:
    """What the parameter may be; draft tokens also what lies between the listed ones, as small trees have few."""
    listed = domain_values(parameter.domain) or ()
    largest = max((value for value in listed if isinstance(value, int)), default=0)
    return range(2, largest + 1) if parameter.name == draft_tokens and largest else listed


def _distance(tree: Mapping[str, FlagValue], flags: Mapping[str, FlagValue]) -> float:
    """How far tree numbers are from those of `flags`, in factors of two."""
    return sum(abs(log2(float(value) / float(flags[name]))) for name, value in tree.items())


def _legal(kept: KeptSearch, flags: Mapping[str, FlagValue]) -> ServerConfig:
    """The canonical configuration. Raises ConfigError with why the engine would refuse it."""
    candidates = kept.candidates()
    canonical = candidates.canonical(candidates.requested(flags))
    if reasons := candidates.violations(canonical):
        raise ConfigError([f"{kept.engine} would not run this: {reason}" for reason in reasons])
    return canonical
