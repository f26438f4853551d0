"""Faults of small files: a damaged log, state, artifact, record of a server, or lock."""

from __future__ import annotations

import shutil

from tests.chaos.boundaries import Plan
from tests.chaos.kills import KILL
from tests.chaos.stage import Stage
from tests.chaos.sweeps import STUDY
from tests.chaos.table import fault

NOISE = bytes(range(256)) * 4000


@fault("the sweep's log is damaged", "stores", "a megabyte of raw bytes in its place", "it is gone on with")
def log_damaged(stage: Stage) -> None:
    stage.ended(stage.sweep.start("budget.trials=2"), 0)
    (stage.folder / f"{STUDY}.log").write_bytes(NOISE)


@fault(
    "the status file is damaged",
    "stores",
    "half a JSON document",
    "written anew; `specsweep status` says what it knows",
)
def status_damaged(stage: Stage) -> None:
    stage.ended(stage.sweep.start("budget.trials=2"), 0)
    (stage.folder / f"{STUDY}-status" / "local.json").write_text('{"process": {"pid": 1')
    words = [word for word in stage.sweep.common if word.startswith(("preset=", "study."))]
    status = stage.house.zygote.start(["status", *words], stage.folder)
    stage.ended(status, 0, r"chaos[^\n]*")


@fault(
    "artifacts are gone",
    "stores",
    "the folder of raw requests and logs is removed",
    "records stay; MLflow's runs stay; goes on",
)
def artifacts_gone(stage: Stage) -> None:
    stage.ended(stage.sweep.start("budget.trials=2"), 0)
    shutil.rmtree(stage.folder / "artifacts")


@fault("the record of a running server is damaged", "host",
       "kill -9 in the benchmark; then its pid file is overwritten with noise",
       "the server is found by its marker and stopped, or the sweep says that it cannot tell")  # fmt: skip
def record_damaged(stage: Stage) -> None:
    command = stage.sweep.start(plan=Plan(at="sweeper/measuring/benchmark.py:measure", hit=2, signals=(KILL,)))
    stage.ended(command, -9)
    for pid in stage.sweep.state_dir.glob("servers/*/pid"):
        pid.write_bytes(NOISE[:300])


@fault("the record of a running server is empty", "host",
       "kill -9 in the benchmark; then its pid file is truncated, as after a crash of the host's disk",
       "the server is found by its marker and stopped, or the sweep says that it cannot tell")  # fmt: skip
def record_empty(stage: Stage) -> None:
    command = stage.sweep.start(plan=Plan(at="sweeper/measuring/benchmark.py:measure", hit=2, signals=(KILL,)))
    stage.ended(command, -9)
    for pid in stage.sweep.state_dir.glob("servers/*/pid"):
        pid.write_bytes(b"")


@fault(
    "lock files hold noise",
    "host",
    "every lock file is overwritten with raw bytes",
    "a lock is the kernel's, not the file's content; goes on",
)
def lock_noise(stage: Stage) -> None:
    stage.ended(stage.sweep.start("budget.trials=2"), 0)
    for path in [*stage.sweep.state_dir.rglob("*lock*"), *stage.folder.glob("*.lock")]:
        if path.is_file():
            path.write_bytes(NOISE[:1000])
