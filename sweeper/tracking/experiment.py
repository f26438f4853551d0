"""Which experiment shows a study: the one of its name, or another when that one shows a study of the same name.

Two folders may well hold a study `night` each and share an MLflow server; their runs must never mix.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from sweeper.tracking.client import Calls, given
from sweeper.tracking.place import PlaceUnusable
from sweeper.tracking.view import TAG_STUDY, TAG_STUDY_ID

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Experiment


def lookup(client: Callable[[], MlflowClient], study: str, identity: str) -> tuple[str, Experiment | None]:
    """The name of the study's experiment, `night` or else `night-1f2e3d`, and the experiment if it exists.

    One that a user gave another name is found by its mark. `client` is asked for before each call. Without an
    identity the first of the names will do. Raises PlaceUnusable when both names are taken.
    """
    other_name, free = f"{study}-{identity[:6]}", ""
    for name in (study, other_name):
        experiment = client().get_experiment_by_name(name)
        if experiment is None:
            free = free or name
        elif not identity or is_ours(experiment.tags, identity):
            return name, experiment
        if not identity:
            break
    if identity.isalnum():
        ours = f"tags.`{TAG_STUDY_ID}` = '{identity}' AND tags.`{TAG_STUDY}` = '{study}'"
        for experiment in client().search_experiments(filter_string=ours):
            return experiment.name, experiment
    if not free:
        raise PlaceUnusable(f"the experiments {study!r} and {other_name!r} show other studies")
    return free, None


def is_ours(tags: Mapping[str, str], identity: str) -> bool:
    """Whether an experiment or a run is the study's. One without the mark was made before there was one: it is."""
    return bool(tags.get(TAG_STUDY_ID, identity) == identity)


def open_experiment(
    calls: Calls, study: str, identity: str, artifact_root: str | None
) -> tuple[str, Mapping[str, str]]:
    """The number and the tags of the study's experiment, which is made if missing and bears the study's marks.

    Raises PlaceUnusable when a user deleted it.
    """
    name, found = lookup(calls.client, study, identity)
    mark = {TAG_STUDY_ID: identity, TAG_STUDY: study}
    if found is None:
        return given(calls.client().create_experiment(name, artifact_location=artifact_root, tags=mark)), mark
    number = given(found.experiment_id)
    if found.lifecycle_stage != "active":
        raise PlaceUnusable(f"the experiment {name!r} was deleted; restore it there or name the study differently")
    for tag in mark.keys() - found.tags.keys():
        calls.client().set_experiment_tag(number, tag, mark[tag])
    return number, found.tags
