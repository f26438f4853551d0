"""Fixtures of the tracker's tests: places to sync to, and what can be seen there afterwards."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.error import URLError

import pytest

from sweeper.spec import TrackingSpec
from sweeper.tracking import SyncReport, Tracker
from sweeper.tracking.place import ui_argv, ui_env
from tests.tracking.clocks import ManualClock
from tests.tracking.gateway import Gateway, gateway_to
from tests.tracking.studies import FakeStudy


@pytest.fixture(scope="session")
def new_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database as MLflow makes it, which takes seconds: made once, for tests about something else."""
    folder = tmp_path_factory.mktemp("new")
    report = Tracker(spec_for(f"sqlite:///{folder}/mlflow.db", folder), ManualClock()).sync(
        FakeStudy(name="other")
    )
    assert report == SyncReport()
    return folder / "mlflow.db"


@pytest.fixture
def sqlite_spec(tmp_path: Path, new_database: Path) -> TrackingSpec:
    """A database without this study, in a folder of its own."""
    (tmp_path / "db").mkdir()
    shutil.copy(new_database, tmp_path / "db" / "mlflow.db")
    return spec_for(f"sqlite:///{tmp_path}/db/mlflow.db", tmp_path)


def spec_for(uri: str, folder: Path, sync_s: float = 300.0) -> TrackingSpec:
    return TrackingSpec(uri=uri, artifact_location=str(folder / "files"), sync_s=sync_s)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a real MLflow server, started as the command line starts it."""
    folder = tmp_path_factory.mktemp("mlflow")
    spec = spec_for(f"sqlite:///{folder}/mlflow.db", folder)
    port = free_port()
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            ui_argv(spec, "127.0.0.1", port),
            env={**os.environ, **ui_env(spec)},
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        wait_until(lambda: answers(f"http://127.0.0.1:{port}/health", process, folder / "log"), 120)
        yield f"http://127.0.0.1:{port}"
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        wait_until(lambda: not group_exists(process.pid), 20)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def answers(url: str, process: subprocess.Popen[bytes], log: Path) -> bool:
    assert process.poll() is None, f"the MLflow server ended: {log.read_text()[-2000:]}"
    try:
        with urllib.request.urlopen(url, timeout=5) as response:
            return bool(response.status == 200)
    except (URLError, OSError):
        return False


def group_exists(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def wait_until(condition: Callable[[], bool], deadline_s: float) -> None:
    """Poll until `condition` holds; fails the test after `deadline_s` seconds."""
    end = time.monotonic() + deadline_s
    while not condition():
        assert time.monotonic() < end, f"not within {deadline_s} s"
        time.sleep(0.1)


@pytest.fixture
def gateway(server: str) -> Iterator[Gateway]:
    with gateway_to(server) as gateway:
        yield gateway
