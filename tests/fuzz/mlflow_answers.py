"""An MLflow server whose every answer is the fuzzer's, over a real connection."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable

from launchers.clock import SystemClock
from sweeper.spec import TrackingSpec
from sweeper.tracking import Tracker
from tests.tracking.gateway import NONSENSE, Gateway
from tests.tracking.studies import make_study

SYNC_S = 2.0


def answer_seeds() -> tuple[bytes, ...]:
    """One object with what each kind of answer has in it."""
    study = [{"key": "specsweep.study", "value": "night"}, {"key": "specsweep.study_id", "value": "a1b2c3d4e5f6"}]
    tags = [*study, {"key": "specsweep.trial", "value": "0"}, {"key": "specsweep.synced", "value": "0123"}]
    info = {
        "run_id": "r1", "run_uuid": "r1", "experiment_id": "1", "status": "RUNNING", "start_time": 1772402400000,
        "lifecycle_stage": "active", "artifact_uri": "mlflow-artifacts:/1/r1/artifacts", "run_name": "trial 0",
    }  # fmt: skip
    data = {"tags": tags, "params": [{"key": "threads", "value": "2"}], "metrics": [{"key": "m", "value": 1.5}]}
    run = {"info": info, "data": data}
    experiment = {"experiment_id": "1", "name": "night", "lifecycle_stage": "active", "tags": study}
    whole = {"experiment": experiment, "experiment_id": "1", "run": run, "runs": [run], "files": []}
    return json.dumps(whole).encode(), json.dumps({**whole, "runs": [], "next_page_token": "again"}).encode()


def answer_parser() -> Callable[[bytes], object]:
    """A whole sync with such a server; the tracker never raises because of MLflow."""
    gateway = Gateway("")
    gateway.behave = NONSENSE
    poll = {"poll_interval": 0.05}
    threading.Thread(target=gateway.server.serve_forever, kwargs=poll, daemon=True).start()
    study = make_study(1)

    def feed(content: bytes) -> None:
        gateway.nonsense = content
        spec = TrackingSpec(uri=gateway.url, artifact_location="", sync_s=SYNC_S)
        report = Tracker(spec, SystemClock()).sync(study)
        assert len(report.error) < 1000
        assert "\n" not in report.error
        gateway.calls.clear()

    return feed
