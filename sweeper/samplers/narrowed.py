"""Shows a sampler whose time grows with each trial no more than a few thousand of them."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Any

from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState

from sweeper.samplers.snapshot import hand_over, snapshot

MOST_SEEN = 3000
"""So many trials are seen. Optuna's TPE takes 0.02 s to read a thousand, four times for a proposal."""

BEST = 25
"""As many as Optuna's TPE ever calls good: from all others it learns what to keep away from."""


class NarrowedSampler(BaseSampler):
    """The wrapped sampler sees the best trials and the newest; all of them while there are not more than `most`.

    Those that are under way are seen in any case. What it notes about its trial is kept. For one objective.
    """

    def __init__(self, inner: BaseSampler, most: int = MOST_SEEN) -> None:
        self._inner = inner
        self._most = most
        self._seen: Study | None = None

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """Choose what is seen."""
        self._inner.before_trial(study, trial)
        finished = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE, TrialState.PRUNED))
        if len(finished) > self._most:
            running = study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
            trials = [*chosen(finished, study.direction, self._most), *running]
            self._seen = snapshot(study.directions, trials)

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """The wrapped sampler's, over what is seen."""
        return self._inner.infer_relative_search_space(self._seen or study, trial)

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """The wrapped sampler's, over what is seen."""
        if self._seen is None:
            return self._inner.sample_relative(study, trial, search_space)
        found = self._inner.sample_relative(self._seen, trial, search_space)
        hand_over(self._seen, study, trial)
        return found

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:  # noqa: ANN401  (Optuna's own signature)
        """The wrapped sampler's, over what is seen."""
        return self._inner.sample_independent(self._seen or study, trial, param_name, param_distribution)


def chosen(trials: Sequence[FrozenTrial], direction: StudyDirection, most: int) -> list[FrozenTrial]:
    """Of finished `trials` the best and the newest, in their order: `most` of them, if there are so many."""
    newest = trials[-(most - BEST) :]
    sign = -1.0 if direction is StudyDirection.MINIMIZE else 1.0
    older = [(sign * t.value, -n) for n, t in enumerate(trials[: -len(newest)]) if t.value is not None]
    best = sorted(-n for _, n in heapq.nlargest(BEST, older))
    return [*(trials[n] for n in best), *newest]
