"""What is written down about single trials in Optuna: begun, told, left out, infeasible."""

from __future__ import annotations

import optuna
from optuna.trial import TrialState as OptunaState

from sweeper.errors import FailureKind
from sweeper.policy import POLICY, Fault
from sweeper.secrets import masked_config
from sweeper.spec import ServerConfig
from sweeper.storing.storage import StudyStore

CONSTRAINT = "specsweep"
"""Optuna's name for our one constraint: 0 for a measured trial, 1 for one that is infeasible."""

_BEGUN = "begun"


class Books:
    """Keeps the books of one study. `searching` is the study as its sampler sees it."""

    def __init__(self, store: StudyStore, searching: optuna.Study) -> None:
        self._store = store
        self._searching = searching

    def begun(self, number: int) -> int:
        """How often a launch of the trial was begun."""
        return int(self._store.frozen(number).user_attrs.get(_BEGUN, 0))

    def begin(self, number: int, requested: ServerConfig, canonical: ServerConfig) -> None:
        """A launch of the trial is about to be made."""
        trial = self._trial(number)
        trial.set_user_attr("requested", masked_config(requested).model_dump())
        trial.set_user_attr("canonical", masked_config(canonical).model_dump())
        trial.set_user_attr("key", canonical.key())
        trial.set_user_attr(_BEGUN, self.begun(number) + 1)

    def put_back(self, number: int) -> None:
        """The launch that was begun was abandoned on request: nothing is held against the trial."""
        self._trial(number).set_user_attr(_BEGUN, self.begun(number) - 1)

    def score(self, number: int, value: float, estimated: str = "") -> None:
        """The trial was measured. `estimated`: why its value is an estimate (measuring ended early), if it is."""
        if estimated and not self._store.frozen(number).state.is_finished():
            self._trial(number).set_user_attr("estimated", estimated)
        self._constrain(number, 0.0)
        self._searching.tell(number, value, skip_if_finished=True)

    def give_up(self, number: int, kind: FailureKind) -> None:
        """The trial has no score: infeasible if that is the configuration's fault, else failed."""
        if POLICY[kind].fault is Fault.CONFIGURATION:
            self._constrain(number, 1.0)
            self._searching.tell(number, state=OptunaState.PRUNED, skip_if_finished=True)
        else:
            self._searching.tell(number, state=OptunaState.FAIL, skip_if_finished=True)

    def leave_out(self, number: int, state: OptunaState, value: float | None = None) -> None:
        """The trial is none of ours: nothing but its end is told."""
        self._trial(number).set_user_attr("left_out", True)
        self._searching.tell(number, value, state=state, skip_if_finished=True)

    def _trial(self, number: int) -> optuna.Trial:
        """For keeping books only: not of the searching study, since making a Trial makes its sampler plan."""
        return optuna.trial.Trial(self._store.optuna, self._store.frozen(number)._trial_id)

    def _constrain(self, number: int, value: float) -> None:
        frozen = self._store.frozen(number)
        if not frozen.state.is_finished() and CONSTRAINT not in frozen.constraints:
            self._trial(number).set_constraint(CONSTRAINT, value)
