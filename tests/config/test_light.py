"""Where a study is can be told without what only a launch needs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import sys
from sweeper import config
place = config.load_place([f"study.dir={sys.argv[1]}", "study.name=night"])
heavy = ("sweeper.engines.", "sweeper.samplers.")
print(place.study.name, *(name for name in sys.modules if name.startswith(heavy)))
import sweeper.commands.status, sweeper.commands.studies
print(*(name for name in sys.modules if name.split(".")[0] in ("mlflow", "pandas", "matplotlib", "torch")))
"""


@pytest.mark.host
def test_commands_that_only_look_load_no_engine_and_no_large_library(tmp_path: Path) -> None:
    found = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path)], capture_output=True, text=True, check=True, timeout=120
    )
    assert found.stdout.splitlines() == ["night", ""]
