"""How the real command leaves the host: the best is served, or somebody else's server is back."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sweeper.interrupts import NIGHT_OVER
from sweeper.records import TrialState
from tests.launchers.conftest import is_running, stranger, unused_port, with_token
from tests.sweep.runner import SweepFolder, finish, wait_until

pytestmark = [pytest.mark.engine]

SHORT = ("budget.trials=1", "tracking=none", "limits.free_gib=0")


def answer(port: int, path: str) -> bytes:
    """What a server on this machine says; empty when nobody listens."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as response:
            return bytes(response.read())
    except OSError:
        return b""


@contextmanager
def production(folder: Path, port: int) -> Iterator[subprocess.Popen[bytes]]:
    """Somebody's server, which serves the word `ours` and carries a token."""
    place = folder / "production"
    place.mkdir()
    (place / "who").write_text("theirs")
    argv = (sys.executable, "-m", "http.server", str(port), "--bind", "127.0.0.1")
    env = {**os.environ, "TOKEN_OF_THEIRS": str(place)}
    with stranger(argv, cwd=place, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        while answer(port, "/who") != b"theirs":
            assert process.poll() is None
            time.sleep(0.05)
        yield process


def end(token: str) -> None:
    """Kill what was started again."""
    for pid in with_token(token):
        os.kill(pid, signal.SIGKILL)


def test_the_best_is_left_serving_until_it_is_stopped(folder: SweepFolder) -> None:
    port = unused_port()
    words = (*SHORT, "on_finish=serve_best", f"on_finish_port={port}")
    first = folder.run(*words, "notify.command=[tee,-a,told]")
    assert first.code == 0, first.output
    assert f"is served at 127.0.0.1:{port}" in (folder.directory / "told").read_text()
    assert f"Trial 0, the baseline, is served at 127.0.0.1:{port} of local" in first.output
    alias = json.loads(answer(port, "/props"))["model_alias"]
    assert alias.startswith("llamacpp_smoke-")
    assert f"as the model {alias}" in first.output
    assert str(port) in str(folder.store().fact("left_on:local"))

    again = folder.run(*words)
    assert again.code == 0, again.output
    assert "is still served" in again.output
    assert json.loads(answer(port, "/props"))["model_alias"] == alias, "a complete sweep stops nothing"

    more = folder.run(*SHORT, "budget.trials=2")
    assert more.code == 0, more.output
    assert "stopping trial 0 of study llamacpp_smoke, the baseline" in more.output
    assert answer(port, "/props") == b"", "the next sweep needed the host, and said so"


@pytest.mark.slow
def test_stop_ends_what_was_left_serving(folder: SweepFolder) -> None:
    port = unused_port()
    assert folder.run(*SHORT, "on_finish=serve_best", f"on_finish_port={port}").code == 0
    assert answer(port, "/props") != b""
    stopped = finish(folder.start("stop", "preset=llamacpp_smoke"))
    assert stopped.code == 0
    assert stopped.output == f"stopped trial 0 of study llamacpp_smoke, the baseline, on port {port}\n"
    assert answer(port, "/props") == b""
    assert finish(folder.start("stop", "preset=llamacpp_smoke")).output == "nothing of a sweep runs on local\n"


def test_a_server_that_may_be_replaced_is_back_in_the_end(folder: SweepFolder) -> None:
    port = unused_port()
    with production(folder.directory, port) as theirs:
        process = folder.sweep(*SHORT, "on_finish=restore", f"host.replace_server={port}")
        wait_until(lambda: bool(folder.servers()), process, "a server of ours")
        assert not is_running(theirs.pid)
        assert answer(port, "/who") == b""
        ended = finish(process)
        assert ended.code == 0, ended.output
        try:
            assert answer(port, "/who") == b"theirs"
            assert f"The server on port {port} of local runs again" in ended.output
        finally:
            end(f"TOKEN_OF_THEIRS={folder.directory / 'production'}")


@pytest.mark.slow
def test_after_kill_9_the_next_start_brings_it_back(folder: SweepFolder) -> None:
    port = unused_port()
    words = (*SHORT, "on_finish=restore", f"host.replace_server={port}")
    with production(folder.directory, port):
        process = folder.sweep(*words)
        wait_until(lambda: bool(folder.servers()), process, "a server of ours")
        os.kill(process.pid, signal.SIGKILL)
        finish(process)
        assert answer(port, "/who") == b""
        ended = folder.run(*words)
        assert ended.code == 0, ended.output
        try:
            assert answer(port, "/who") == b"theirs"
        finally:
            end(f"TOKEN_OF_THEIRS={folder.directory / 'production'}")


@pytest.mark.slow
def test_a_sweep_that_must_stop_puts_back_what_was_there(folder: SweepFolder) -> None:
    port = unused_port()
    words = (*SHORT, "on_finish=restore", f"host.replace_server={port}", "notify.command=[tee,-a,told]")
    with production(folder.directory, port):
        ended = folder.run(*words, "limits.start_s=0.2", "limits.identical_failures=2")
        try:
            assert ended.code == 5, ended.output
            assert "the baseline cannot be measured" in (folder.directory / "told").read_text()
            assert f"The server on port {port} of local" in ended.output
            for _ in range(200):
                if answer(port, "/who") == b"theirs":
                    break
                time.sleep(0.05)
            assert answer(port, "/who") == b"theirs"
        finally:
            end(f"TOKEN_OF_THEIRS={folder.directory / 'production'}")


@pytest.mark.slow
def test_a_launch_that_would_outlive_the_night_is_abandoned_and_its_server_stopped(folder: SweepFolder) -> None:
    long = (
        "workload.max_tokens=4000",
        "workload.ignore_eos=true",
        "workload.repeats=50",
        "workload.max_repeats=50",
    )
    limits = (
        "limits.start_s=60",
        "workload.warmup_max_s=5",
        "workload.request_timeout_s=3600",
        "budget.hours=0.022",
    )
    ended = folder.run(*SHORT, *long, *limits, "engine.flags.ctx_size=8192")
    assert ended.code == 0, ended.output
    assert NIGHT_OVER in " ".join(ended.output.split())
    assert "No verdict: the baseline has not been measured. Cut short" in ended.output
    assert folder.servers() == []
    (baseline,) = folder.trials()
    assert baseline.state is TrialState.RUNNING, "the next night measures it"


@pytest.mark.slow
def test_a_night_that_is_over_leaves_in_time_and_goes_on(folder: SweepFolder) -> None:
    folder.run(*SHORT)
    began = time.monotonic()
    ended = folder.run("budget.trials=200", "tracking=none", "budget.hours=0.01", "budget.confirm_launches=0")
    assert ended.code == 0, ended.output
    assert time.monotonic() - began < 120
    assert "Cut short by budget.hours=0.01" in " ".join(ended.output.split())
    assert "The night is over. The same command goes on" in ended.output
    assert len(folder.finished()) >= 1


@pytest.mark.slow
def test_somebody_elses_server_is_never_touched_unasked(folder: SweepFolder) -> None:
    port = unused_port()
    with production(folder.directory, port) as theirs:
        ended = folder.run(
            *SHORT, f"host.port_low={port}", f"host.port_high={port}", "limits.identical_failures=2"
        )
        assert ended.code == 5, ended.output
        assert is_running(theirs.pid)
        assert answer(port, "/who") == b"theirs"
