"""How long a proposal takes, with many finished trials behind it."""

from __future__ import annotations

import statistics
import time

import optuna
from optuna.samplers import RandomSampler
from optuna.trial import FrozenTrial

from tests.bench.search.launching import Launches, suggest
from tests.bench.search.methods import METHODS, study_of
from tests.bench.search.simulator import surface
from tests.bench.search.tables import as_markdown

SEED = 0


def measured(methods: tuple[str, ...], counts: tuple[int, ...], num_proposals: int) -> str:
    """A table: median seconds of a proposal, by method and number of finished trials."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    finished = _finished(max(counts))
    rows = []
    for method in methods:
        medians = (_median_s(method, finished[:count], num_proposals) for count in counts)
        rows.append([method, *(f"{median:.2f} s" for median in medians)])
    return as_markdown(("a proposal takes", *(f"with {count} trials" for count in counts)), rows)


def _median_s(method: str, finished: list[FrozenTrial], num_proposals: int) -> float:
    server = surface(SEED)
    study = study_of(METHODS[method], server, SEED)
    study.add_trials(finished)
    taken = []
    for _ in range(num_proposals):
        began = time.perf_counter()
        trial = study.ask()
        suggest(trial, server.drafters, METHODS[method].flat)
        taken.append(time.perf_counter() - began)
        study.tell(trial, state=optuna.trial.TrialState.FAIL)
    return statistics.median(taken)


def _finished(count: int) -> list[FrozenTrial]:
    """Random configurations, all measured; failed ones are among them."""
    study = optuna.create_study(direction="maximize", sampler=RandomSampler(seed=SEED))
    launches = Launches(surface(SEED), repeat=0)
    for _ in range(count):
        launches.next(study)
    return study.get_trials(deepcopy=False)
