"""Writes a study of many finished trials as a sweep would have, in one transaction per thousand of them."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import optuna
import sqlalchemy
from optuna.distributions import BaseDistribution, distribution_to_json
from optuna.storages._rdb import models
from optuna.trial import TrialState

from sweeper import config
from sweeper.books import CONSTRAINT
from sweeper.config.compose import Loaded
from sweeper.engines.registry import engine_for
from sweeper.errors import FailureKind
from sweeper.kept_search import candidates_of
from sweeper.records import LaunchRecord, Purpose
from sweeper.samplers.physics.forecast import FORECAST_ATTR, Estimate, Forecast, to_json
from sweeper.samplers.physics.proposing import PLAN_ATTR
from sweeper.spec import ServerConfig
from sweeper.storing.later_launches import lean_backend
from sweeper.study import Study
from sweeper.study_setup import open_study
from tests.bench.scale_study.records import BEGAN, FACTS, failure_of, record

CHUNK = 1000
BASELINE_EVERY = 8


def overrides(directory: Path, num_trials: int, sampler: str, storage: str = "") -> list[str]:
    """A sweep of SGLang whose space has some hundred thousand legal configurations."""
    return [
        "preset=sglang_any",
        "host.ssh.destination=gpu1",
        "model.path=/models/m",
        "engine.flags.tp_size=8",
        "space.speculative_draft_model_path='choice(/models/a,/models/b)'",
        "+space.schedule_conservativeness='choice(0.7,0.8,0.9,1.0,1.1,1.2,1.3,1.4)'",
        "+space.env.NCCL_PROTO='choice(LL,Simple)'",
        "+space.env.NCCL_MIN_NCHANNELS='choice(4,8,16,32)'",
        f"study.dir={directory}",
        "study.name=night",
        f"study.sampler={sampler}",
        *([f"study.storage={storage}"] if storage else []),
        f"budget.trials={num_trials + 1000}",
        "budget.least_gain_pct=0",
        "budget.hours=2000",
        f"budget.baseline_every={BASELINE_EVERY}",
    ]


def load(directory: Path, num_trials: int, sampler: str, storage: str = "") -> Loaded:
    """The sweep's configuration."""
    return config.load(overrides(directory, num_trials, sampler, storage))


def opened(loaded: Loaded) -> Study:
    """The study as a sweep opens it, made if absent."""
    return open_study(loaded.spec, engine_for(loaded.spec.engine.name), FACTS)[0]


@dataclass
class Row:
    """What is written of one trial."""

    number: int
    state: TrialState
    value: float | None
    params: Mapping[str, tuple[Any, BaseDistribution]]
    user_attrs: dict[str, Any]
    system_attrs: dict[str, Any]
    later: dict[str, Any] = field(default_factory=dict)


def build(loaded: Loaded, num_trials: int) -> Study:
    """The study, filled with `num_trials` finished trials and the launches of the baseline in between."""
    study = opened(loaded)
    storage = lean_backend(study.store.optuna)
    assert storage is not None
    engine = storage.engine
    rows = list(trial_rows(loaded, num_trials))
    for start in range(0, num_trials, CHUNK):
        with engine.begin() as connection:
            _insert(connection, study.store.optuna._study_id, rows[start : start + CHUNK])
    return study


def trial_rows(loaded: Loaded, num_trials: int) -> Iterator[Row]:
    """Distinct, legal configurations, drawn at random and measured one after the other."""
    engine = engine_for(loaded.spec.engine.name)
    base = ServerConfig(flags=loaded.spec.engine.flags, env=loaded.spec.engine.env)
    candidates = candidates_of(loaded.spec.space, base, engine, FACTS)
    rng = random.Random(0)
    nth = 0
    baseline = engine.baseline(base, FACTS)
    zero = _row(0, baseline, baseline, record(baseline, (0, 0, Purpose.BASELINE), nth, rng, None), {})
    yield zero
    seen = {baseline.key()}
    for number in range(1, num_trials):
        values, key = {}, None
        while key is None or key in seen:
            values = candidates.propose(lambda name, dist: _drawn(rng, dist))
            key = candidates.key(values)
        seen.add(key)
        requested = candidates.requested(candidates.values(lambda name, _, v=values: v[name]))  # type: ignore[misc]
        canonical = candidates.canonical(requested)
        nth += 1
        made = record(canonical, (number, 0, Purpose.SEARCH), nth, rng, failure_of(number))
        params = {name: (value, candidates.distributions[name]) for name, value in values.items()}
        row = _row(number, requested, canonical, made, params)
        if number % BASELINE_EVERY == 0:
            nth += 1
            launch = 1 + number // BASELINE_EVERY
            again = record(baseline, (0, launch, Purpose.CONTROL), nth, rng, None)
            row.later[f"launch:0:{launch}"] = _saved(again)
        yield row


def _drawn(rng: random.Random, distribution: BaseDistribution) -> Any:
    if isinstance(distribution, optuna.distributions.CategoricalDistribution):
        return rng.choice(distribution.choices)
    assert isinstance(distribution, optuna.distributions.IntDistribution)
    return rng.randrange(distribution.low, distribution.high + 1, distribution.step)


def _saved(made: LaunchRecord) -> dict[str, Any]:
    return {"record": json.loads(made.model_dump_json()), "artifacts": []}


def _row(
    number: int,
    requested: ServerConfig,
    canonical: ServerConfig,
    made: LaunchRecord,
    params: Mapping[str, tuple[Any, BaseDistribution]],
) -> Row:
    kind = made.failure.kind if made.failure else None
    constraint = (
        {} if kind is FailureKind.BENCHMARK_FAILED else {f"constraints:{CONSTRAINT}": float(kind is not None)}
    )
    states = {None: TrialState.COMPLETE, FailureKind.OUT_OF_MEMORY: TrialState.PRUNED}
    span = Estimate(*(made.metrics.get("output_throughput", 200.0) * share for share in (1.02, 0.9, 1.1)))
    forecast = Forecast(span, span, span, 0.95, "most to gain or to learn", 0.01, 0.02, {"plain": (5.3, 0.1)})
    return Row(
        number=number,
        state=states.get(kind, TrialState.FAIL),
        value=made.metrics.get("output_throughput"),
        params=params,
        user_attrs={
            "requested": requested.model_dump(),
            "canonical": canonical.model_dump(),
            "key": canonical.key(),
            "begun": 1,
            "launch:0": _saved(made),
            **({"estimated": made.estimated} if made.estimated else {}),
        },
        system_attrs={
            **({PLAN_ATTR: {name: value for name, (value, _) in params.items()}} if params else {}),
            **({FORECAST_ATTR: to_json(forecast)} if params else {}),
            **constraint,
        },
    )


def _insert(connection: sqlalchemy.Connection, study_id: int, rows: list[Row]) -> None:
    insert = sqlalchemy.insert
    trials = [
        {
            "number": row.number,
            "study_id": study_id,
            "state": row.state,
            "datetime_start": BEGAN.replace(tzinfo=None),
            "datetime_complete": BEGAN.replace(tzinfo=None),
        }
        for row in rows
    ]
    connection.execute(insert(models.TrialModel.__table__), trials)
    table = models.TrialModel.__table__.c
    numbers = connection.execute(
        sqlalchemy.select(table.number, table.trial_id).where(
            table.study_id == study_id, table.number >= rows[0].number
        )
    )
    ids: dict[int, int] = {row.number: row.trial_id for row in numbers}
    params = [
        {
            "trial_id": ids[row.number],
            "param_name": name,
            "param_value": distribution.to_internal_repr(value),
            "distribution_json": distribution_to_json(distribution),
        }
        for row in rows
        for name, (value, distribution) in row.params.items()
    ]
    values = [
        {"trial_id": ids[row.number], "objective": 0, "value": row.value, "value_type": "FINITE"}
        for row in rows
        if row.value is not None
    ]
    tables = (
        (models.TrialUserAttributeModel, [(row, row.user_attrs) for row in rows]),
        (models.TrialSystemAttributeModel, [(row, row.system_attrs) for row in rows]),
    )
    if params:
        connection.execute(insert(models.TrialParamModel.__table__), params)
    if values:
        connection.execute(insert(models.TrialValueModel.__table__), values)
    for model, attrs in tables:
        lines = [
            {"trial_id": ids[row.number], "key": key, "value_json": json.dumps(value)}
            for row, named in attrs
            for key, value in named.items()
        ]
        connection.execute(insert(model.__table__), lines)
    later = [
        {"study_id": study_id, "key": key, "value_json": json.dumps(value)}
        for row in rows
        for key, value in row.later.items()
    ]
    if later:
        connection.execute(insert(models.StudyUserAttributeModel.__table__), later)
