"""What a person would see in MLflow, as plain data that can be compared."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from sweeper.tracking.view import TAG_TRIAL

if TYPE_CHECKING:  # loading MLflow takes seconds, which collecting the tests should not
    from mlflow import MlflowClient
    from mlflow.entities import Run

ACTIVE, DELETED = 1, 2


def client(uri: str) -> MlflowClient:
    from mlflow import MlflowClient

    return MlflowClient(tracking_uri=uri)


def runs(uri: str, study: str = "night", view: int = ACTIVE) -> list[Run]:
    """Those that are of a trial."""
    mlflow = client(uri)
    experiment = mlflow.get_experiment_by_name(study)
    assert experiment is not None
    found = mlflow.search_runs([experiment.experiment_id], run_view_type=view, max_results=1000)
    return sorted(
        (run for run in found if TAG_TRIAL in run.data.tags),
        key=lambda run: int(run.data.tags[TAG_TRIAL]),
    )


def all_runs(uri: str, study: str = "night") -> list[Run]:
    """All that a person sees, also runs that belong to no trial."""
    mlflow = client(uri)
    experiment = mlflow.get_experiment_by_name(study)
    assert experiment is not None
    return list(mlflow.search_runs([experiment.experiment_id], run_view_type=ACTIVE, max_results=1000))


def trial_numbers(uri: str, study: str = "night") -> list[int]:
    return [int(run.data.tags[TAG_TRIAL]) for run in runs(uri, study)]


def everything(uri: str, study: str = "night") -> list[dict[str, Any]]:
    """All that the experiment's runs hold, except what differs by nature (their ids)."""
    return [content(uri, run) for run in runs(uri, study)]


def content(uri: str, run: Run) -> dict[str, Any]:
    mlflow = client(uri)
    return {
        "name": run.info.run_name,
        "status": run.info.status,
        "times": (run.info.start_time, run.info.end_time),
        "tags": run.data.tags,
        "params": run.data.params,
        "metrics": {name: history(mlflow, run, name) for name in run.data.metrics},
        "files": files(uri, run),
    }


def history(mlflow: MlflowClient, run: Run, metric: str) -> list[tuple[int, int, float]]:
    return sorted((m.step, m.timestamp, m.value) for m in mlflow.get_metric_history(run.info.run_id, metric))


def files(uri: str, run: Run) -> dict[str, bytes]:
    found = client(uri).list_artifacts(run.info.run_id)
    return {info.path: file(uri, run, info.path) for info in found}


def file(uri: str, run: Run, name: str) -> bytes:
    from mlflow.artifacts import download_artifacts

    parts = urlsplit(run.info.artifact_uri)
    if parts.scheme == "file":
        return Path(url2pathname(parts.path), name).read_bytes()
    return Path(download_artifacts(run_id=run.info.run_id, artifact_path=name, tracking_uri=uri)).read_bytes()
