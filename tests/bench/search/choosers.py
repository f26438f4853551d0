"""Optuna samplers as choosers among the published configurations of a cell."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import optuna
from optuna.distributions import CategoricalDistribution
from optuna.samplers import BaseSampler

from sweeper.samplers.choice import Listed, SamplerSettings, make_factory
from sweeper.samplers.distinct import Choose, DistinctSampler, Values
from sweeper.samplers.physics import PhysicsSampler, Roles, SearchParameter, SearchSpace, predict
from tests.bench.search.ours import speculates
from tests.bench.search.published import Cell, Measured, Shape
from tests.bench.search.replay import fastest
from tests.bench.search.simulator.configurations import (
    ALGORITHM,
    DRAFT_TOKENS,
    EAGLE3,
    NONE,
    NUM_STEPS,
    TOPK,
    Config,
)

NAMES = (NUM_STEPS, TOPK, DRAFT_TOKENS)


class StudyChooser:
    """Follows an Optuna sampler; names what measured best."""

    def __init__(self, cell: Cell, sampler: BaseSampler) -> None:
        self._choices = _choices(cell)
        self.study = optuna.create_study(direction="maximize", sampler=sampler)
        self._pending: tuple[optuna.Trial, Shape] | None = None
        if cell.baseline is not None:
            known = optuna.trial.create_trial(
                params={ALGORITHM: NONE},
                distributions={ALGORITHM: CategoricalDistribution((NONE, EAGLE3))},
                value=cell.baseline,
            )
            self.study.add_trial(known)

    def next(self, measured: Mapping[Shape, Measured]) -> Shape:
        """The sampler's next proposal."""
        self.tell(measured)
        trial = self.study.ask()
        trial.suggest_categorical(ALGORITHM, (NONE, EAGLE3))
        values = [trial.suggest_categorical(name, self._choices[name]) for name in NAMES]
        shape = _shape(values)
        self._pending = trial, shape
        return shape

    def name(self, measured: Mapping[Shape, Measured]) -> Shape:
        """What measured best."""
        return fastest(measured)

    def tell(self, measured: Mapping[Shape, Measured]) -> None:
        """Tell the study what the last proposal measured."""
        if self._pending is None:
            return
        trial, shape = self._pending
        if (accept_length := measured[shape].accept_length) is not None:
            trial.set_user_attr("accept_length", accept_length)
        self.study.tell(trial, measured[shape].throughput)
        self._pending = None


def tpe(cell: Cell, seed: int) -> StudyChooser:
    """specsweep's sampler where nothing is known of the engine, with one random trial instead of ten."""
    choices = _choices(cell)

    def propose(choose: Choose) -> Values:
        walk = {name: choose(name, CategoricalDistribution(choices[name])) for name in NAMES}
        return {ALGORITHM: EAGLE3, **walk}

    def fresh(values: Mapping[str, Any]) -> bool:
        shape = _shape([values[name] for name in NAMES])
        return shape in cell.shapes and shape not in _tried(chooser.study)

    def untried() -> list[Values]:
        return [_params(shape) for shape in cell.shapes if shape not in _tried(chooser.study)]

    chooser = StudyChooser(
        cell,
        DistinctSampler(make_factory(SamplerSettings("tpe", seed, 1), Listed()), seed, propose, fresh, untried),
    )
    return chooser


def _tried(study: optuna.Study) -> set[Shape]:
    trials = study.get_trials(deepcopy=False)
    return {_shape([t.params[name] for name in NAMES]) for t in trials if NUM_STEPS in t.params}


class ForecastingChooser(StudyChooser):
    """Follows specsweep's own sampler; names what measured best, or what is expected to be faster still."""

    def __init__(self, cell: Cell, sampler: PhysicsSampler) -> None:
        super().__init__(cell, sampler)
        self._cell, self._sampler = cell, sampler

    def name(self, measured: Mapping[Shape, Measured]) -> Shape:
        """The fastest by measurement, where there is one, else by forecast."""
        self.tell(measured)
        found = {shape: measured[shape].throughput for shape in measured}
        for shape in self._cell.shapes.keys() - found.keys():
            forecast = predict(self._sampler, self.study, _params(shape))
            if forecast.throughput is not None:
                found[shape] = forecast.throughput.mean
        return max(found, key=found.__getitem__)


def ours(cell: Cell, seed: int) -> StudyChooser:
    """specsweep's sampler that knows what speculative decoding is; it names what it measured."""
    return StudyChooser(cell, _physics(cell, seed))


def ours_by_forecast(cell: Cell, seed: int) -> StudyChooser:
    """The same; it may also name what it did not measure."""
    return ForecastingChooser(cell, _physics(cell, seed))


def _physics(cell: Cell, seed: int) -> PhysicsSampler:
    drafting = {ALGORITHM: (EAGLE3,)}
    choices = _choices(cell)

    def normal(config: Config) -> Config | None:
        if config[ALGORITHM] == NONE:
            return config if cell.baseline is not None else None
        return config if _shape([config[name] for name in NAMES]) in cell.shapes else None

    parameters = (SearchParameter(name, choices[name], ordered=True, when=drafting) for name in NAMES)
    space = SearchSpace((SearchParameter(ALGORITHM, (NONE, EAGLE3)), *parameters), normal)
    roles = Roles((), NUM_STEPS, TOPK, DRAFT_TOKENS, speculates)
    return PhysicsSampler(space, roles, seed)


CHOOSERS: dict[str, Callable[[Cell, int], StudyChooser]] = {
    "tpe": tpe,
    "ours": ours,
    "ours_by_forecast": ours_by_forecast,
}


def _choices(cell: Cell) -> dict[str, tuple[int, ...]]:
    """The values that each parameter has in a cell."""
    columns = zip(*cell.shapes, strict=True)
    return {name: tuple(sorted(set(column))) for name, column in zip(NAMES, columns, strict=True)}


def _params(shape: Shape) -> dict[str, Any]:
    return {ALGORITHM: EAGLE3, **dict(zip(NAMES, shape, strict=True))}


def _shape(values: list[Any]) -> Shape:
    num_steps, topk, draft_tokens = values
    return int(num_steps), int(topk), int(draft_tokens)
