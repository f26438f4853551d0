"""The exported script at work: it starts the embedded engine's real server, which answers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any
from urllib.error import URLError

import pytest

from launchers.smollm2 import cache_dir, packaged_model, prepare
from sweeper.exporting.script import scripts
from tests.exporting.made import flags, handover
from tests.tracking.conftest import free_port, wait_until

pytestmark = pytest.mark.engine


@pytest.mark.timeout(120)
def test_the_script_starts_the_server_that_was_measured(tmp_path: Path) -> None:
    config = flags(ctx_size=512, threads=1, spec_type="ngram-simple", spec_ngram_simple_size_m=4)
    made = handover(
        config,
        engine="llamacpp",
        command=(sys.executable, "-m", "launchers.llamacpp_server"),
        model=str(prepare("F16", packaged_model(), cache_dir())),
    )
    path = tmp_path / "run.sh"
    path.write_text(scripts(made)["run.sh"], encoding="utf-8")
    port = free_port()
    env = {**os.environ, "SERVER_PORT": str(port), "LLAMA_ARG_CTX_SIZE": "64"}
    with (tmp_path / "log").open("wb") as log:
        server = subprocess.Popen(["sh", str(path)], env=env, stdout=log, stderr=log)
    try:
        wait_until(lambda: answer(server, port) is not None, 60)
        props = answer(server, port) or {}
        assert props["default_generation_settings"]["n_ctx"] == 512
        assert props["model_path"] == made.serving.model[1]
    finally:
        server.send_signal(signal.SIGTERM)
        assert server.wait(20) == 0


def answer(server: subprocess.Popen[bytes], port: int) -> dict[str, Any] | None:
    """What the server says of itself; None while it does not answer yet."""
    assert server.poll() is None, "the server ended"
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/props", timeout=5) as response:
            found: dict[str, Any] = json.load(response)
            return found
    except (URLError, OSError):
        return None
