"""Which experiment shows a study: the one of its name, or another when that one shows a study of the same name.

Two folders may well hold a study `night` each and share an MLflow server; their runs must never mix.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from sweeper.tracking.client import Calls, given
from sweeper.tracking.place import PlaceUnusable
from sweeper.tracking.view import TAG_STUDY_ID

if TYPE_CHECKING:
    from mlflow.entities import Experiment


def lookup(get: Callable[[str], Experiment | None], study: str, identity: str) -> tuple[str, Experiment | None]:
    """The name of the study's experiment, `night` or else `night-1f2e3d`, and the experiment if it exists.

    `get` finds an experiment by name. Without an identity the first will do. Raises PlaceUnusable when both
    names are taken.
    """
    other_name = f"{study}-{identity[:6]}"
    for name in (study, other_name):
        experiment = get(name)
        if experiment is None or not identity or is_ours(experiment.tags, identity):
            return name, experiment
    raise PlaceUnusable(f"the experiments {study!r} and {other_name!r} show other studies")


def is_ours(tags: Mapping[str, str], identity: str) -> bool:
    """Whether an experiment or a run is the study's. One without the mark was made before there was one: it is."""
    return bool(tags.get(TAG_STUDY_ID, identity) == identity)


def open_experiment(
    calls: Calls, study: str, identity: str, artifact_root: str | None
) -> tuple[str, Mapping[str, str]]:
    """The number and the tags of the study's experiment, which is made if missing and bears the study's mark.

    Raises PlaceUnusable when a user deleted it.
    """
    name, found = lookup(lambda name: calls.client().get_experiment_by_name(name), study, identity)
    mark = {TAG_STUDY_ID: identity}
    if found is None:
        return given(calls.client().create_experiment(name, artifact_location=artifact_root, tags=mark)), mark
    number = given(found.experiment_id)
    if found.lifecycle_stage != "active":
        raise PlaceUnusable(f"the experiment {name!r} was deleted; restore it there or name the study differently")
    if TAG_STUDY_ID not in found.tags:
        calls.client().set_experiment_tag(number, TAG_STUDY_ID, identity)
    return number, found.tags
