from __future__ import annotations

import pytest

from sweeper.config import load
from sweeper.errors import ConfigError

pytestmark = pytest.mark.compose


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (["study.storage=mysql://db/x"], "study.storage: 'mysql://db/x' is not supported; use sqlite:///PATH, or"),
        (
            ["study.storage=postgresql+psycopg2://db/x"],
            "names a driver that is not installed; write postgresql",
        ),
        (
            ["study.storage=postgresql://me:hush@db:port/x"],
            "is not an address; write postgresql://USER@HOST:PORT/",
        ),
        (
            ["study.storage=sqlite:////d/mlflow.db", "tracking.uri=sqlite:////d/mlflow.db"],
            "MLflow's database too",
        ),
        (["study.lease_s=1"], "study.lease_s: 1 should be 2 or greater"),
    ],
)
def test_a_storage_that_cannot_hold_a_study_is_refused(overrides: list[str], said: str) -> None:
    with pytest.raises(ConfigError) as seen:
        load(overrides)
    assert said in str(seen.value)
    assert "hush" not in str(seen.value)


def test_a_shared_storage_is_taken_and_artifacts_may_lie_elsewhere() -> None:
    study = load(["study.storage=postgresql://db/x", 'study.artifacts="~/raw"']).spec.study
    assert study.storage == "postgresql://db/x"
    assert study.artifacts.endswith("/raw")
    assert not study.artifacts.startswith("~")
    assert load([]).spec.study.artifacts == "sweeps/artifacts"
