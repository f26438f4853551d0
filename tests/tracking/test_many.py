"""A baseline that was launched again and again: what MLflow has is not sent again, and all of it is there."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from typing import Any

import pytest
from mlflow import MlflowClient

from sweeper.spec import TrackingSpec
from sweeper.tracking.client import Calls, open_client
from sweeper.tracking.memory import Memory
from sweeper.tracking.place import place_of
from sweeper.tracking.points import REPEAT_SERIES
from sweeper.tracking.runs import BATCH, Writer
from sweeper.tracking.view import owner_tags, run_view
from tests.tracking import seen
from tests.tracking.clocks import ManualClock
from tests.tracking.studies import FakeStudy, launch, spec_config, trial

pytestmark = [pytest.mark.service, pytest.mark.filterwarnings("ignore::DeprecationWarning")]


class Counting:
    """A client that counts the values that it is given."""

    def __init__(self, client: MlflowClient) -> None:
        self._client = client
        self.num_values = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def log_batch(self, run_id: str, metrics: Sequence[Any] = (), *others: Any, **named: Any) -> None:
        self.num_values += len(metrics)
        self._client.log_batch(run_id, metrics, *others, **named)


def test_a_further_launch_of_a_baseline_sends_its_own_values_alone(sqlite_spec: TrackingSpec) -> None:
    study, memory, clock = FakeStudy(name="night"), Memory(), ManualClock()
    place = place_of(sqlite_spec)
    client: Any = Counting(open_client(place))
    count, config = BATCH // 3 + 1, spec_config(0)
    sent = []
    for number in (count, count + 1):
        base = trial(0, config, launches=tuple(launch(0, config, n) for n in range(number)))
        view = run_view(owner_tags(study.name, study.identity), base, base, study.objective)
        writer = Writer(Calls(client, clock, clock.monotonic_s() + 300), memory, study, place.artifact_root)
        writer.open()
        before = client.num_values
        assert writer.write([view]) == ""
        sent.append(client.num_values - before)
    assert sent[0] > BATCH
    assert sent[1] < 30, "three passes, and the means of all launches"
    (run,) = seen.runs(sqlite_spec.uri)
    assert len(seen.content(sqlite_spec.uri, run)["metrics"][REPEAT_SERIES]) == 3 * (count + 1)


def test_what_mlflow_has_loaded_is_not_searched_for_garbage(sqlite_spec: TrackingSpec) -> None:
    made = [[n] for n in range(5000)]
    before = gc.get_freeze_count()
    open_client(place_of(sqlite_spec))
    assert gc.get_freeze_count() - before >= len(made)
    gc.unfreeze()
