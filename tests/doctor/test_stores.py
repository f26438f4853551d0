"""Folders, databases and MLflow: looked at, never made."""

from __future__ import annotations

import sqlite3
import threading
from base64 import b64encode
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import version
from pathlib import Path

import optuna
import pytest

from sweeper.config import load
from sweeper.doctor.context import Context
from sweeper.doctor.finding import Level
from sweeper.engines.base import HostFacts
from sweeper.fingerprint import fingerprint
from sweeper.storing.storage import StudyStore
from sweeper.storing.study_facts import require_same_settings
from tests.doctor.asking import LLAMACPP, context, text, worst
from tests.fleet.conftest import database, postgres
from tests.fleet.postgres import Cluster
from tests.launchers.conftest import unused_port

pytestmark = [pytest.mark.compose, pytest.mark.study]
__all__ = ["database", "postgres"]
FACTS = HostFacts(engine_version="1", model_path="/m.gguf", model_fingerprint="abc")


def place(folder: Path, *overrides: str) -> Context:
    return context(f"study.dir={folder}", *overrides, base=LLAMACPP, facts=FACTS)


def stored(ctx: Context, facts: HostFacts = FACTS) -> None:
    """The study as a run has left it."""
    store = StudyStore.of(ctx.spec.study, create=True)
    require_same_settings(store, fingerprint(ctx.spec, facts))


def test_nothing_is_made_where_nothing_is(tmp_path: Path) -> None:
    ctx = place(tmp_path / "a" / "b")
    for name in ("folder", "storage", "study", "warm_start", "mlflow"):
        assert worst(name, ctx) is Level.OK, text(name, ctx)
    assert list(tmp_path.iterdir()) == []


def test_a_study_of_these_settings_goes_on_and_another_is_told(tmp_path: Path) -> None:
    ctx = place(tmp_path)
    stored(ctx)
    assert "has 0 trials; the run goes on with it" in text("study", ctx)
    other = text("study", place(tmp_path, "engine.flags.threads=2"))
    assert "engine.flags.threads: 1 then, 2 now" in other
    assert "study.name=" in other
    assert worst("study", place(tmp_path, "engine.flags.threads=2")) is Level.ERROR
    assert "1 then, 2 now" in text("study", place(tmp_path, "engine.flags.threads=2"))  # nothing was kept


def test_of_a_model_that_is_prepared_the_content_is_not_compared(tmp_path: Path) -> None:
    prepared = "model.prepare=[make,it]"
    stored(place(tmp_path, prepared))
    ctx = place(tmp_path, prepared)
    ctx.__dict__["facts"] = HostFacts(engine_version="1")
    assert worst("study", ctx) is Level.OK, text("study", ctx)


def test_a_study_to_learn_from_must_exist(tmp_path: Path) -> None:
    StudyStore.open(f"sqlite:///{tmp_path}/optuna.db", "old", str(tmp_path), create=True)
    here = (f"study.dir={tmp_path}", "study.sampler=physics")
    assert worst("warm_start", context(*here, "study.warm_start=[old]")) is Level.OK
    assert "there is no study 'gone'" in text("warm_start", context(*here, "study.warm_start=[gone]"))


def test_a_study_of_which_something_cannot_be_read_is_an_error_and_to_learn_from_a_warning(tmp_path: Path) -> None:
    for name in ("old", "new"):
        store = StudyStore.open(f"sqlite:///{tmp_path}/optuna.db", name, str(tmp_path), create=True)
        store.optuna.set_user_attr("launch:1:1", {})
    here = (f"study.dir={tmp_path}", "study.sampler=physics", "study.name=new", "study.warm_start=[old]")
    for check, level in (("study", Level.ERROR), ("warm_start", Level.WARNING)):
        assert worst(check, context(*here)) is level
        assert "trial 1, launch 1: the study has no such trial" in text(check, context(*here))


@pytest.mark.parametrize("content", [b"no database at all, but text" * 40, b""])
def test_a_file_that_is_no_database_is_told(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "optuna.db").write_bytes(content)
    ctx = place(tmp_path)
    assert worst("storage", ctx) is (Level.ERROR if content else Level.OK)
    assert (tmp_path / "optuna.db").read_bytes() == content


def test_mlflows_database_is_no_place_for_a_study_and_the_other_way_round(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "optuna.db") as connection:
        connection.execute("CREATE TABLE experiments (id INTEGER)")
    assert "is MLflow's" in text("storage", place(tmp_path))
    optuna.create_study(storage=f"sqlite:///{tmp_path}/mlflow.db", study_name="x")
    assert "holds an Optuna study" in text("mlflow", place(tmp_path))


def test_a_folder_that_is_a_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    ctx = place(tmp_path / "file" / "sweeps")
    assert "is no folder" in text("folder", ctx)
    assert worst("storage", ctx) is Level.ERROR


def test_too_little_disk_here_is_an_error(tmp_path: Path) -> None:
    assert worst("folder", place(tmp_path, "limits.free_gib=1000000")) is Level.ERROR


@pytest.mark.service
def test_an_mlflow_server_that_is_down_is_a_warning_without_its_password(tmp_path: Path) -> None:
    ctx = place(tmp_path, f"tracking.uri=http://me:hunter2@127.0.0.1:{unused_port()}")
    assert worst("mlflow", ctx) is Level.WARNING
    assert "hunter2" not in text("mlflow", ctx)


class Answers(BaseHTTPRequestHandler):
    """An MLflow server of one version, which lets `me` in with the right password."""

    version, status = "3.17.2", 200

    def log_message(self, *_: object) -> None: ...

    def do_GET(self) -> None:
        self._answer(200, self.version.encode())

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        login = self.headers.get("Authorization") == "Basic " + b64encode(b"me:hunter2").decode()
        self._answer(200 if login else self.status, b"{}")

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.mark.service
@pytest.mark.parametrize(
    ("there", "status", "login", "level", "words"),
    [
        (version("mlflow"), 200, "", Level.OK, "version 3."),
        ("2.9.1", 200, "", Level.WARNING, "version 2.9.1, here 3."),
        (version("mlflow"), 401, "", Level.WARNING, "refused with status 401"),
        (version("mlflow"), 401, "me:hunter2@", Level.OK, "version 3."),
        (version("mlflow"), 403, "", Level.WARNING, "--allowed-hosts"),
        (version("mlflow"), 500, "", Level.WARNING, "status 500"),
    ],
)
def test_an_mlflow_server_is_asked_for_its_version_and_whether_we_may_read(
    tmp_path: Path, there: str, status: int, login: str, level: Level, words: str
) -> None:
    handler = type("Server", (Answers,), {"version": there, "status": status})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        ctx = place(tmp_path, f"tracking.uri=http://{login}127.0.0.1:{server.server_port}")
        found = text("mlflow", ctx)
        assert worst("mlflow", ctx) is level, found
        server.shutdown()
    assert words in found
    assert "hunter2" not in found


def test_tracking_may_be_off(tmp_path: Path) -> None:
    assert text("mlflow", place(tmp_path, "tracking=none")) == "ok: off | "


def shared(folder: Path, url: str) -> Context:
    """Composed anew each time: the address is another one in each test."""
    spec = load([*LLAMACPP, f"study.dir={folder}", f"study.storage={url}"]).spec
    made = context(base=LLAMACPP, facts=FACTS)
    return Context(spec, made.engine, made.launcher)


@pytest.mark.host
def test_a_real_postgresql_is_looked_at_and_left_empty(tmp_path: Path, postgres: Cluster, database: str) -> None:
    ctx = shared(tmp_path, database)
    ctx.__dict__["facts"] = FACTS
    assert worst("storage", ctx) is Level.OK, text("storage", ctx)
    assert "PostgreSQL 1" in text("storage", ctx)
    assert "will be made" in text("study", ctx)
    assert (
        postgres.sql("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'", database.rsplit("/")[-1]) == "0"
    )
    stored(ctx)
    assert "has 0 trials" in text("study", ctx)


@pytest.mark.host
@pytest.mark.parametrize(
    ("wrong", "words"),
    [("only%20for%20tests", "password authentication failed"), ("/sweeps", "does not exist"), (":", "refused")],
)
def test_what_postgresql_refuses_is_told_without_the_password(
    tmp_path: Path, database: str, wrong: str, words: str
) -> None:
    url = database.replace("only%20for%20tests", "hunter2") if words.startswith("password") else database
    if wrong == "/sweeps":
        url = database.rsplit("/", 1)[0] + "/nowhere"
    if wrong == ":":
        url = f"postgresql://sweeps:hunter2@127.0.0.1:{unused_port()}/x"
    found = text("storage", shared(tmp_path, url))
    assert found.startswith("error: ")
    assert words in found
    assert "hunter2" not in found
    assert "only" not in found.partition("|")[0]


@pytest.mark.host
def test_mlflows_own_database_is_refused(tmp_path: Path, postgres: Cluster, database: str) -> None:
    postgres.sql("CREATE TABLE registered_models (name text)", database.rsplit("/")[-1])
    assert "MLflow keeps its tables there" in text("storage", shared(tmp_path, database))
