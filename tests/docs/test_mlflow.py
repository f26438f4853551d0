"""The filters of docs/mlflow.md find what they say, in a night of forty trials."""

from __future__ import annotations

import re

import pytest
from mlflow import MlflowClient

from sweeper.tracking import Tracker
from tests.browser.night import NUM_TRIALS, OUT_OF_MEMORY, night
from tests.docs.pages import DOCS
from tests.tracking.clocks import ManualClock
from tests.tracking.conftest import spec_for

pytestmark = pytest.mark.service

PAGE = (DOCS / "mlflow.md").read_text(encoding="utf-8")
FILTERS = re.findall(r"filter `([^`]+)`", PAGE)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> MlflowClient:
    folder = tmp_path_factory.mktemp("mlflow")
    spec = spec_for(f"sqlite:///{folder}/mlflow.db", folder)
    assert Tracker(spec, ManualClock()).sync(night()).num_written == NUM_TRIALS
    return MlflowClient(spec.uri)


def found(client: MlflowClient, text: str) -> set[int]:
    (experiment,) = [one for one in client.search_experiments() if one.name == "kimi-night"]
    runs = client.search_runs([experiment.experiment_id], text, max_results=100)
    return {int(run.data.tags["specsweep.trial"]) for run in runs}


@pytest.mark.parametrize("text", FILTERS)
def test_a_filter_finds_some_and_not_all(client: MlflowClient, text: str) -> None:
    assert 0 < len(found(client, text)) < NUM_TRIALS


def test_the_filter_for_memory_finds_those_that_ran_out_of_it(client: MlflowClient) -> None:
    (text,) = [text for text in FILTERS if "out_of_memory" in text]
    assert found(client, text) == set(OUT_OF_MEMORY)
