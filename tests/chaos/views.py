"""Faults of MLflow: down, slow, answering 500 or nonsense, its disk full, its file damaged."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

from tests.chaos.stage import Stage
from tests.chaos.table import Play, fault
from tests.chaos.targets import mlflow_server
from tests.tracking.conftest import free_port
from tests.tracking.gateway import FAIL, HANG, LOSE, NONSENSE, PASS, gateway_to


def _misbehaving(behave: str, *, from_trial: int) -> Play:
    """An MLflow server behind a gateway that misbehaves from some trial on, and is well for the next start."""

    def play(stage: Stage) -> None:
        gateway = stage.stack.enter_context(gateway_to(stage.house.mlflow()))
        stage.local("tracking.sync_s=2", tracking=gateway.url)
        if from_trial:
            stage.ended(stage.sweep.start(f"budget.trials={from_trial}"), 0)
        gateway.behave = behave
        stage.ended(stage.sweep.start(), 0, r"MLflow: [^\n]*")
        gateway.behave = PASS
        gateway.released.set()

    return play


LATER = "the sweep goes on and says so; the next start catches up, without duplicates"
for _name, _behave, _how, _trial in (
    ("MLflow answers 500", FAIL, "a gateway before a real server", 0),
    ("MLflow answers 500 from the second trial on", FAIL, "a gateway before a real server", 1),
    ("MLflow hangs", HANG, "a gateway that takes requests and never answers", 1),
    ("MLflow's answers are lost", LOSE, "a gateway that lets every request be done and loses each answer", 1),
    ("another program answers in MLflow's place", NONSENSE, "a gateway that answers {}", 0),
):
    fault(_name, "stores", _how, LATER)(_misbehaving(_behave, from_trial=_trial))


@fault("MLflow is down", "stores", "nobody listens on its port", LATER, quick=True)
def down(stage: Stage) -> None:
    stage.ended(stage.sweep.start(f"tracking.uri=http://127.0.0.1:{free_port()}"), 0, r"MLflow: [^\n]*")


@fault("MLflow's server may not write", "stores", "a real server under RLIMIT_FSIZE, as on a full disk", LATER)
def server_full(stage: Stage) -> None:
    prefix = (
        "/bin/sh",
        "-c",
        'ulimit -f 1024; exec "$@"',
        "sh",
    )  # blocks of 512 bytes; its new database is larger
    folder = stage.folder / "full"
    folder.mkdir()
    (folder / "mlflow.db").write_bytes(stage.house.zygote.new_mlflow().read_bytes())
    uri = stage.stack.enter_context(mlflow_server(folder, prefix))
    stage.ended(stage.sweep.start(f"tracking.uri={uri}", "tracking.sync_s=5"), 0, r"MLflow: [^\n]*")


@fault(
    "MLflow's file is damaged",
    "stores",
    "mlflow.db is overwritten with nonsense",
    "the sweep goes on and says so; deleted, it is made anew",
)
def damaged(stage: Stage) -> None:
    file = stage.folder / "mlflow.db"
    stage.ended(stage.sweep.start("budget.trials=2"), 0)
    file.write_bytes(b"this is no database" * 1000)
    stage.ended(stage.sweep.start("budget.trials=3"), 0, r"MLflow: [^\n]*")
    file.unlink()


@fault("MLflow's file is deleted", "stores", "mlflow.db and its files are removed", "made anew, every run")
def deleted(stage: Stage) -> None:
    stage.ended(stage.sweep.start("budget.trials=2"), 0)
    (stage.folder / "mlflow.db").unlink()


@fault(
    "MLflow's file is of another version", "stores", "its schema's version is set to one that nobody knows", LATER
)
def of_another_version(stage: Stage) -> None:
    stage.ended(stage.sweep.start("budget.trials=1"), 0)
    file = stage.folder / "mlflow.db"
    known = _set_version(file, "deadbeef0000")
    stage.ended(stage.sweep.start("budget.trials=2"), 0, r"MLflow: [^\n]*")
    _set_version(file, known)


def _set_version(file: Path, version: str) -> str:
    """Which it was before."""
    with contextlib.closing(sqlite3.connect(file)) as database, database:
        (before,) = database.execute("SELECT version_num FROM alembic_version").fetchone()
        database.execute("UPDATE alembic_version SET version_num = ?", (version,))
    return str(before)
