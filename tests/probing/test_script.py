"""The script that times all-reduces: with the real torch where there is one, and with a stand-in everywhere."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sweeper.probing.commands import Messages, read_times, script_argv
from tests.launchers.conftest import unused_port

pytestmark = pytest.mark.host

MESSAGES = Messages(num_ranks=2, hidden_size=64, num_layers=2, tokens=(1, 8))

TORCH = """
float16 = "float16"
def zeros(count, dtype, device):
    assert (dtype, device) == ("float16", "cpu")
    return [0] * count
"""
DISTRIBUTED = """
import os, time
def init_process_group(backend, init_method, rank, world_size, timeout):
    assert init_method.startswith("tcp://127.0.0.1:") and world_size == 2
    if os.environ.get("FAILS") == str(rank):
        raise RuntimeError(f"rank {rank} has no device")
    if os.environ.get("FAILS"):
        time.sleep(600)
def all_reduce(tensor):
    assert len(tensor) in (64, 512)
def destroy_process_group(): ...
"""


def run(env: dict[str, str], timeout_s: float = 120.0) -> subprocess.CompletedProcess[str]:
    argv = script_argv((sys.executable,), MESSAGES, unused_port(), 60.0, backend="gloo")
    whole = {**os.environ, "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1", **env}
    return subprocess.run(argv, capture_output=True, text=True, timeout=timeout_s, check=False, env=whole)


@pytest.fixture
def stand_in(tmp_path: Path) -> dict[str, str]:
    """An environment in which `torch` is a stand-in."""
    package = tmp_path / "torch"
    package.mkdir()
    (package / "__init__.py").write_text(TORCH)
    (package / "distributed.py").write_text(DISTRIBUTED)
    return {"PYTHONPATH": str(tmp_path)}


def test_one_line_comes_of_each_size(stand_in: dict[str, str]) -> None:
    done = run(stand_in)
    assert done.returncode == 0, done.stderr
    assert read_times(done.stdout, MESSAGES).keys() == {1, 8}
    assert done.stdout.count("specsweep-all-reduce") == 2, "the first rank alone speaks"


@pytest.mark.parametrize("rank", ["0", "1"])
def test_a_rank_that_fails_ends_the_others_and_says_why(stand_in: dict[str, str], rank: str) -> None:
    done = run({**stand_in, "FAILS": rank})
    assert done.returncode == 1
    assert done.stderr.rstrip().endswith(f"RuntimeError: rank {rank} has no device")


def test_without_torch_it_says_so(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise ModuleNotFoundError(\"No module named 'torch'\")\n")
    done = run({"PYTHONPATH": str(tmp_path)})
    assert done.returncode == 1
    assert done.stderr.rstrip().endswith("No module named 'torch'")


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed here")
def test_the_real_torch_times_all_reduces_of_two_processes() -> None:
    done = run({})
    assert done.returncode == 0, done.stderr
    times = read_times(done.stdout, MESSAGES)
    assert times.keys() == {1, 8}
    assert all(1 < us < 1e6 for us in times.values()), times
