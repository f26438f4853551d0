"""Which of the runs that say they are of a trial are, and which of these is kept. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sweeper.tracking.lost import LOST
from sweeper.tracking.view import TAG_KEY, TAG_LAUNCHES, RunView

if TYPE_CHECKING:
    from mlflow.entities import Run

TAG_SYNCED = "specsweep.synced"
TAG_RETIRED = "specsweep.retired"


def marks_of(run: Run) -> dict[str, str]:
    """The tags by which a run of another trial of the same number is told (RunView.is_of_another)."""
    return {name: value for name, value in run.data.tags.items() if name in (TAG_KEY, TAG_LAUNCHES)}


def is_lost(run: Run, view: RunView) -> bool:
    """Whether it is of a former trial of this number, or of launches that the study has lost."""
    return run.data.tags.get(TAG_RETIRED) == LOST or view.is_of_another(run.data.tags)


def is_usable(run: Run, view: RunView) -> bool:
    """Whether it can become the view: MLflow forgets no parameter and no metric."""
    return TAG_RETIRED not in run.data.tags and not view.contradicts(run.data.params, run.data.metrics)


def age(run: Run) -> tuple[bool, str]:
    """Sort key: the run that was completed first, as far as can be told (all start when the trial did)."""
    return (TAG_SYNCED not in run.data.tags, run.info.run_id)
