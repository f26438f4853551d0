"""Commands that only look load little: nothing that only a launch needs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from sweeper.storing.storage import StudyStore

SCRIPT = """
import sys
from sweeper.__main__ import main
words = [f"study.dir={sys.argv[1]}", "study.name=night"]
assert main(["status", *words]) == main(["studies", *words]) == 0
heavy = ("sweeper.engines.registry.", "sweeper.samplers.", "mlflow.", "pandas.", "alembic.")
print(*(name for name in sys.modules if f"{name}.".startswith(heavy)), file=sys.stderr)
"""


@pytest.mark.host
def test_commands_that_only_look_load_no_engine_no_alembic_and_no_mlflow(tmp_path: Path) -> None:
    StudyStore.open(f"sqlite:///{tmp_path}/optuna.db", "night", str(tmp_path), create=True)
    argv = [sys.executable, "-c", SCRIPT, str(tmp_path)]
    found = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=120)
    assert found.stderr.strip() == ""
