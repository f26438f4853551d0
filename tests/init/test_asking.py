"""The questions on a real terminal."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.host


def talk(folder: Path, typed: bytes) -> tuple[int, str]:
    """Start `specsweep init` on a terminal of its own, type, and read all that it says."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "sweeper", "init"]
    places = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TERM": "dumb"}
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, cwd=folder, env=places) as process:
        os.close(theirs)
        os.write(ours, typed)
        said = b""
        try:
            while chunk := os.read(ours, 4096):
                said += chunk
        except OSError:  # the other end is closed
            pass
        os.close(ours)
        return process.wait(), said.decode()


def test_a_wrong_answer_is_asked_again_and_enter_takes_the_default(tmp_path: Path) -> None:
    code, said = talk(tmp_path, b"gpu 1\ngpu1\n\n/models/m\n\n\n")
    assert code == 0
    assert "should be local, or where ssh goes" in said
    assert "[sglang]" in said
    assert "destination: gpu1" in (tmp_path / "host" / "gpu1.yaml").read_text()
    assert "/models/m" in (tmp_path / "model" / "m.yaml").read_text()


def test_the_end_of_the_input_leaves_nothing_behind(tmp_path: Path) -> None:
    code, said = talk(tmp_path, b"local\n\x04")
    assert code == 2
    assert "nothing was written" in said
    assert list(tmp_path.iterdir()) == []
