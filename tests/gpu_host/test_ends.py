"""How servers end: signals, exit codes, and that nothing is left."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.gpu_host.host import GpuHost, make_host
from tests.gpu_host.running import free_port, running, speculative, wait_gone

pytestmark = pytest.mark.host


def fast_host(folder: Path, version: str) -> GpuHost:
    return make_host(folder, version, time_scale="0.1", wait_scale="0.04", jitter="0", max_s="90")


@pytest.mark.parametrize(
    ("version", "code"),
    [
        pytest.param("0.5.8", -9, marks=pytest.mark.slow),
        pytest.param("0.5.10.post1", -9, marks=pytest.mark.slow),
        ("0.5.15.post1", -9),
        ("0.5.20", 0),
        pytest.param("0.5.23", 0, marks=pytest.mark.slow),
    ],
)
def test_sigterm_ends_every_version_in_its_own_way(tmp_path: Path, version: str, code: int) -> None:
    host = fast_host(tmp_path, version)
    with running(host, [*speculative(), "--enable-metrics"]) as server:
        server.wait_ready()
        meta = server.generate()["meta_info"]
        old = version in ("0.5.8", "0.5.10.post1")
        correct = meta["spec_accept_token_num" if old else "spec_num_correct_drafts"]
        assert 1 + correct + meta["spec_verify_ct"] >= meta["completion_tokens"] == 24
        assert histogram(meta) == [] if version == "0.5.8" else correct == weighed(histogram(meta))
        assert b"sglang:spec_accept_length" in server.ask("/metrics")[1]
        assert server.get("/server_info")["version"] == version
        server.process.terminate()
        assert server.exit_code() == code
        wait_gone(server)
    assert host.gpu_used() == [4] * 8


def histogram(meta: dict[str, Any]) -> list[int]:
    found: list[int] = meta.get("spec_correct_drafts_histogram") or meta.get("spec_accept_histogram") or []
    return found


def weighed(counts: list[int]) -> int:
    return sum(accepted * steps for accepted, steps in enumerate(counts))


def test_sigterm_waits_for_the_request_that_runs(host: GpuHost) -> None:
    with running(host) as server:
        server.wait_ready()
        answers: list[Any] = []
        client = threading.Thread(target=lambda: answers.append(server.generate(max_new_tokens=60)))
        client.start()
        server.wait_for("#new-token: 4")
        server.process.terminate()
        log = server.wait_for("Gracefully exiting... Remaining number of requests 1.")
        client.join()
        assert server.exit_code() == -signal.SIGKILL
    assert answers[0]["meta_info"]["completion_tokens"] == 60
    assert "SIGTERM received" in log


def test_sigint_ends_with_0(host: GpuHost) -> None:
    with running(host) as server:
        server.wait_ready()
        server.process.send_signal(signal.SIGINT)
        assert server.exit_code() == 0
        wait_gone(server)


def test_the_death_of_the_parent_takes_all_children_along(host: GpuHost) -> None:
    with running(host) as server:
        server.wait_ready()
        for title in ("sglang::scheduler", "sglang::detokenizer"):
            os.kill(server.child(title), signal.SIGSTOP)  # only SIGKILL of the kernel reaches it now
        server.process.kill()
        wait_gone(server)
    assert host.gpu_used() == [4] * 8


def test_the_death_of_a_scheduler_brings_the_parent_down_after_its_diagnostics(host: GpuHost) -> None:
    with running(host) as server:
        server.wait_ready()
        os.kill(server.child("sglang::scheduler"), signal.SIGKILL)
        assert server.exit_code() == -signal.SIGKILL
        log = server.log()
    assert "Subprocess scheduler_0" in log
    assert log.index("crashed with exit code -9") < log.index("SIGQUIT received") < log.index("Sleeping 5 seconds")
    assert "No live scheduler processes found" in log


def test_before_the_first_request_sigterm_just_kills(host: GpuHost) -> None:
    with running(host, env={"STANDIN_FAULT": "hang_load"}) as server:
        server.wait_for("32/64")
        server.process.terminate()
        assert server.exit_code() == -signal.SIGTERM
        wait_gone(server)


def test_a_taken_port_is_noticed_only_after_the_whole_load(host: GpuHost) -> None:
    with running(host, ["--mem-fraction-static", "0.3"]) as first:
        first.wait_ready()
        with running(host, ["--mem-fraction-static", "0.3"], port=first.port) as second:
            assert second.exit_code() == 1
            log = second.log()
        assert first.ask("/health")[0] == 200
    assert log.index("Load weight end.") < log.index("[Errno 98] error while attempting to bind on address")


def test_health_says_503_until_the_warm_up_is_over(host: GpuHost) -> None:
    with running(host, env={"STANDIN_FAULT": "hang_warmup"}) as server:
        server.wait_for("Uvicorn running on")
        assert server.ask("/health")[0] == 503
        assert server.get("/model_info")["architectures"] == ["LlamaForCausalLM"]


def test_two_nodes_make_one_server(host: GpuHost) -> None:
    meet = ["--nnodes", "2", "--dist-init-addr", f"127.0.0.1:{free_port()}", "--mem-fraction-static", "0.4"]
    with (
        running(host, [*meet, "--node-rank", "0"], tp=2) as first,
        running(host, [*meet, "--node-rank", "1", "--base-gpu-id", "4"], tp=2) as second,
    ):
        first.wait_ready()
        second.wait_for("TP1] Tree cache initialized")
        assert first.child("sglang::scheduler_TP0\0")
        assert second.child("sglang::scheduler_TP1\0")
        assert first.generate()["meta_info"]["completion_tokens"] == 24


def test_every_process_ends_by_itself_in_the_end(tmp_path: Path) -> None:
    host = make_host(tmp_path, time_scale="0.1", max_s="1")
    with running(host, env={"STANDIN_FAULT": "hang_capture"}) as server:
        assert server.exit_code() == -signal.SIGALRM
        wait_gone(server)
