"""The README is true: its longest commands are run here, all of them are composed in tests/docs."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import requests

from sweeper.storing.storage import StudyStore

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = [
    line for block in re.findall(r"```console\n(.*?)```", README, re.DOTALL) for line in block.splitlines()
]
EXPORT = "export --format script --output -"
RUNS = [line for line in COMMANDS if line.startswith(".venv/bin/specsweep run")]


def test_the_readme_has_the_commands_that_this_file_runs() -> None:
    others = [line for line in COMMANDS if line not in RUNS]
    looks = [f".venv/bin/specsweep {command}" for command in ("status", "report", "ui", EXPORT)]
    assert others == ["make sweep", "make test", *looks, "make rehearse"]  # the last: tests/sglang/test_night.py
    assert len(RUNS) >= 4


@pytest.mark.slow
@pytest.mark.engine
@pytest.mark.timeout(1500)
def test_make_sweep_report_and_ui_do_what_the_readme_says(tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True)
    for name in filter(None, tracked.stdout.split("\0")):
        target = checkout / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, target)
    # The environment is the one that runs this test: installing it once more would prove nothing new.
    (checkout / ".venv").symlink_to(Path(sys.prefix))
    (Path(sys.prefix) / ".ready").touch()
    # A make that runs these tests must not pass its own arguments on.
    environment = {
        name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKEOVERRIDES", "ARGS")
    }
    environment["XDG_STATE_HOME"] = str(tmp_path / "state")

    swept = subprocess.run(["make", "sweep"], cwd=checkout, env=environment, capture_output=True, text=True)
    assert swept.returncode == 0, swept.stdout + swept.stderr
    assert re.search(r"^(Winner|Tie|No gain over the baseline)", swept.stdout, re.MULTILINE)
    sweeps = checkout / "sweeps"
    store = StudyStore.open(f"sqlite:///{sweeps}/optuna.db", "llamacpp_ngram", str(sweeps), create=False)
    assert len(store.trials()) == 12
    assert len({trial.key for trial in store.trials()}) == 12

    stands = [".venv/bin/specsweep", "status"]
    told = subprocess.run(stands, cwd=checkout, env=environment, capture_output=True, text=True, check=True)
    assert "llamacpp_ngram" in told.stdout
    reported = subprocess.run([".venv/bin/specsweep", "report"], cwd=checkout, env=environment, check=False)
    assert reported.returncode == 0
    assert "## Verdict" in (sweeps / "llamacpp_ngram-report.md").read_text(encoding="utf-8")
    assert "<svg" in (sweeps / "llamacpp_ngram-report.html").read_text(encoding="utf-8")
    exported = [".venv/bin/specsweep", *shlex.split(EXPORT)]
    script = subprocess.run(exported, cwd=checkout, env=environment, capture_output=True, text=True, check=True)
    assert script.stdout.startswith("#!/bin/sh\n")
    _ui_answers(checkout, environment)


def _ui_answers(checkout: Path, environment: dict[str, str]) -> None:
    """Start the page, ask it for the study's runs, end it with Ctrl-C."""
    process = subprocess.Popen(
        [".venv/bin/specsweep", "ui", "--port", "18399"], cwd=checkout, env=environment, start_new_session=True
    )
    try:
        deadline = time.monotonic() + 180
        while True:
            try:
                page = requests.get("http://127.0.0.1:18399/", timeout=5)
                break
            except requests.ConnectionError:
                assert process.poll() is None, "the page ended by itself"
                assert time.monotonic() < deadline, "the page never came"
                time.sleep(0.5)
        assert "MLflow" in page.text
        found = requests.get(
            "http://127.0.0.1:18399/api/2.0/mlflow/experiments/get-by-name",
            params={"experiment_name": "llamacpp_ngram"},
            timeout=20,
        )
        assert found.json()["experiment"]["name"] == "llamacpp_ngram"
    finally:
        os.killpg(process.pid, signal.SIGINT)
        process.wait(30)
