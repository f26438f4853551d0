"""Runs a method on a simulated server, and many methods on many servers."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from multiprocessing import get_context
from pathlib import Path

import optuna

from tests.bench.search import ours, results
from tests.bench.search.launching import Launches
from tests.bench.search.methods import BUDGET, METHODS, study_of
from tests.bench.search.results import Run, RunKey
from tests.bench.search.simulator import Surface, surface
from tests.bench.search.simulator.configurations import ALGORITHM, NONE
from tests.bench.search.simulator.regimes import kind_of

DEVELOPMENT = range(40)
"""The seeds that samplers are developed on; they are judged on others (1000 and above)."""


def run(wanted: RunKey, budget: int = BUDGET) -> Run:
    """One night of so many restarts; the same run for the same key."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return run_on(surface(wanted.seed, wanted.wrong), wanted, budget)


def run_on(server: Surface, wanted: RunKey, budget: int) -> Run:
    """As `run`, on a given server."""
    best = server.best()
    method = METHODS[wanted.method]
    study = study_of(method, server, 1000 * wanted.seed + wanted.repeat)
    launches = Launches(server, wanted.repeat, flat=method.flat, as_value=method.as_value)
    shares: list[float] = []
    stops_after: int | None = None
    for restart in range(1, budget + 1):
        launches.next(study)
        named = launches.named()
        shares.append(round(server.true_mean(named) / best.throughput, 5) if named else 0.0)
        if stops_after is None and ours.is_ours(study) and ours.would_stop(study):
            stops_after = restart
    return Run(
        **wanted._asdict(),
        regime=server.regime,
        quality=kind_of(wanted.seed)[1],
        baseline_is_best=best.config[ALGORITHM] == NONE,
        num_failures=launches.num_failures,
        shares=tuple(shares),
        gains_pct=ours.gains_pct(study) if ours.is_ours(study) else (),
        stops_after=stops_after,
        foretold=ours.foretold(study) if ours.is_ours(study) else None,
    )


def missing(
    path: Path, methods: Sequence[str], seeds: Iterable[int], wrong: float, num_repeats: int
) -> list[RunKey]:
    """The runs that the file does not have yet, server by server."""
    done = {found.key for found in results.load(path)}
    keys = (
        RunKey(method, wrong, seed, repeat) for seed, repeat, method in product(seeds, range(num_repeats), methods)
    )
    return [wanted for wanted in keys if wanted not in done]


def run_all(wanted: Sequence[RunKey], num_processes: int) -> Iterator[Run]:
    """All runs in their order, in processes with one thread of linear algebra each. Raises ValueError for many."""
    if num_processes not in (1, 2):
        raise ValueError(f"processes: 1 or 2, not {num_processes}")
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = "1"
    with ProcessPoolExecutor(num_processes, mp_context=get_context("spawn")) as pool:
        yield from pool.map(run, wanted)
