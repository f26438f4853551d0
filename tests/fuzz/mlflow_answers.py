"""An MLflow server whose every answer is the fuzzer's, under MLflow's own client, which makes runs of it.

The client's session is real down to the adapter that would open a connection; in `over_http` that is real, too.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from requests import PreparedRequest, Response
from requests.adapters import HTTPAdapter

from launchers.clock import Clock, SystemClock
from sweeper.spec import TrackingSpec
from sweeper.tracking import Tracker
from sweeper.tracking.client import load_mlflow
from tests.fakes import FakeClock
from tests.tracking.gateway import NONSENSE, Gateway
from tests.tracking.studies import FakeStudy, make_study

SYNC_S = 2.0
ANSWER_S = 0.1
"""So long each answer takes by the tracker's clock: pages that name a next one again and again come to an end."""

URL = "http://mlflow.invalid"
ODD_VALUES: tuple[object, ...] = (
    None, True, -1, 0, 2**31, 2**63, 10**30, 10**400, 1e308, float("inf"), float("nan"), "", "x", "r1", "RUNNING",
    "9" * 5000, "-1", "1e5", "\x00", "\x1b[31m", "\ud800", "../../x", "file:///etc", "http://[", [], [[]], {},
    {"key": "k"}, [None], [{}], ["x"], [[[[[]]]]], "lost", "specsweep.trial",
)  # fmt: skip
"""What may stand where something else belongs."""


def answer_seeds() -> tuple[bytes, ...]:
    """Objects with what each kind of answer has in it; then the same with something odd in each place."""
    study = [{"key": "specsweep.study", "value": "night"}, {"key": "specsweep.study_id", "value": "a1b2c3d4e5f6"}]
    tags = [*study, {"key": "specsweep.trial", "value": "0"}, {"key": "specsweep.synced", "value": "0123"}]
    info = {
        "run_id": "r1", "run_uuid": "r1", "experiment_id": "1", "status": "RUNNING", "start_time": 1772402400000,
        "lifecycle_stage": "active", "artifact_uri": "mlflow-artifacts:/1/r1/artifacts", "run_name": "trial 0",
    }  # fmt: skip
    data = {"tags": tags, "params": [{"key": "threads", "value": "2"}], "metrics": [{"key": "m", "value": 1.5}]}
    run = {"info": info, "data": data}
    gone = {"info": {**info, "run_id": "r2"}, "data": {**data, "tags": [*study, {**tags[2], "value": "7"}]}}
    experiment = {"experiment_id": "1", "name": "night", "lifecycle_stage": "active", "tags": study}
    whole = {"experiment": experiment, "experiment_id": "1", "run": run, "runs": [run, gone], "files": []}
    again = {**whole, "runs": [], "next_page_token": "again"}
    odd = [with_odd(whole, place, value) for place in places(whole) for value in ODD_VALUES]
    return tuple(json.dumps(each).encode() for each in (whole, again, *odd))


Place = tuple[str | int, ...]


def places(value: object, at: Place = ()) -> Iterator[Place]:
    """Every place in a JSON value, the outermost first."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inside:
        yield (*at, key)
        yield from places(each, (*at, key))


def with_odd(whole: object, place: Place, odd: object) -> object:
    """The same with another value in one place."""
    if not place:
        return odd
    first, *rest = place
    if isinstance(whole, dict):
        return {**whole, first: with_odd(whole[first], tuple(rest), odd)}
    assert isinstance(whole, list)
    return [with_odd(each, tuple(rest), odd) if n == first else each for n, each in enumerate(whole)]


@dataclass
class Answers(HTTPAdapter):
    """Answers every request of the session that it is mounted on with `content`, as fast as that can be told."""

    content: bytes = b"{}"
    clock: FakeClock = field(default_factory=FakeClock)
    num_calls: int = 0

    def __post_init__(self) -> None:
        super().__init__()

    def send(self, request: PreparedRequest, *_: object, **__: object) -> Response:
        """As HTTPAdapter's."""
        self.num_calls += 1
        self.clock.sleep(ANSWER_S)
        answer = Response()
        answer.status_code, answer.request, answer.url = 200, request, request.url or ""
        answer.headers["Content-Type"], answer.encoding = "application/json", "utf-8"
        answer._content = self.content
        return answer


def answer_parser() -> Callable[[bytes], object]:
    """Two whole syncs with such a server; the tracker never raises because of MLflow."""
    load_mlflow()
    from mlflow.utils import request_utils  # the session that MLflow's client keeps for these settings

    retries = request_utils._TRANSIENT_FAILURE_RESPONSE_CODES
    session = request_utils._get_request_session(0, 2, 1.0, retries, True, True)  # type: ignore[no-untyped-call]
    answers, study = Answers(), make_study(1)
    session.mount(f"{URL}/", answers)

    def feed(content: bytes) -> None:
        answers.content, answers.clock, before = content, FakeClock(), answers.num_calls
        sync_twice(URL, study, answers.clock)
        assert answers.num_calls > before

    return feed


def over_http() -> Callable[[bytes], object]:
    """The same over a real connection."""
    gateway = Gateway("")
    gateway.behave = NONSENSE
    poll = {"poll_interval": 0.05}
    threading.Thread(target=gateway.server.serve_forever, kwargs=poll, daemon=True).start()
    study = make_study(1)

    def feed(content: bytes) -> None:
        gateway.nonsense = content
        sync_twice(gateway.url, study, SystemClock())
        gateway.calls.clear()

    return feed


def sync_twice(url: str, study: FakeStudy, clock: Clock) -> None:
    """The second one knows what the first has seen there."""
    tracker = Tracker(TrackingSpec(uri=url, artifact_location="", sync_s=SYNC_S), clock)
    for deadline_s in (None, SYNC_S):
        report = tracker.sync(study, deadline_s)
        assert len(report.error) < 1000
        assert "\n" not in report.error
