"""What goes wrong, or not, by the configuration and the host alone."""

from __future__ import annotations

import os
import signal
import threading
from typing import Any

import pytest

from tests.gpu_host.host import GpuHost
from tests.gpu_host.running import running, speculative

pytestmark = pytest.mark.host
KILLED = -signal.SIGKILL


def test_a_drafter_of_another_width_fails_at_the_warm_up(host: GpuHost) -> None:
    flags = [*speculative(drafter="wrong-hidden"), "--mem-fraction-static", "0.9"]
    with running(host, flags, model="kimi-k2.5", tp=8) as server:
        assert server.exit_code() == KILLED
        assert "mat1 and mat2 shapes cannot be multiplied (12x21504 and 6144x2048)" in server.log()


def test_the_wrong_flag_is_silent_and_never_accepts(host: GpuHost) -> None:
    with running(host, speculative(algorithm="EAGLE")) as server:
        log = server.wait_ready()
        meta = server.generate(max_new_tokens=30)["meta_info"]
    assert meta["spec_num_correct_drafts"] == 0
    assert meta["spec_correct_drafts_histogram"] == [29, 0, 0, 0]
    assert "error" not in log.lower().replace("error_", "")


def test_memory_of_somebody_else_is_out_of_memory_and_says_whose(host: GpuHost) -> None:
    host.occupy(0, 96_000, os.getpid())
    with running(host) as server:
        assert server.exit_code() == KILLED
        assert "CUDA out of memory. Tried to allocate 3.00 GiB. GPU 0 has a total" in server.log()
        assert f"Process {os.getpid()} has 93.75 GiB memory in use." in server.log()


def test_one_occupied_gpu_of_several_is_unbalanced(host: GpuHost) -> None:
    host.occupy(1, 40_000, os.getpid())
    with running(host, tp=2) as server:
        assert server.exit_code() == KILLED
        assert "The memory capacity is unbalanced." in server.log()


def test_a_batch_beyond_the_captured_ones_runs_without_graphs(host: GpuHost) -> None:
    with running(host, ["--cuda-graph-max-bs", "1", "--decode-log-interval", "4"]) as server:
        server.wait_ready()
        texts: list[Any] = []
        clients = [threading.Thread(target=lambda n=n: texts.append(server.generate(f"{n}"))) for n in range(3)]
        for client in clients:
            client.start()
        for client in clients:
            client.join()
        assert len(texts) == 3
        assert "cuda graph: False" in server.log()


def test_a_request_can_be_aborted(host: GpuHost) -> None:
    with running(host) as server:
        server.wait_ready()
        answers: list[Any] = []
        client = threading.Thread(target=lambda: answers.append(server.generate(max_new_tokens=600)))
        client.start()
        server.wait_for("#new-token: 4")
        assert server.ask("/flush_cache", {})[0] == 400
        assert server.ask("/abort_request", {"abort_all": True})[0] == 200
        client.join()
        assert server.ask("/flush_cache", {})[0] == 200
    assert answers[0]["meta_info"]["finish_reason"]["type"] == "abort"


def test_one_stopped_rank_holds_up_all(host: GpuHost) -> None:
    with running(host, tp=2) as server:
        server.wait_ready()
        other = server.child("sglang::scheduler_TP1")
        os.kill(other, signal.SIGSTOP)
        with pytest.raises(TimeoutError):
            server.ask("/generate", {"text": "x", "sampling_params": {"max_new_tokens": 4}}, timeout_s=0.5)
        os.kill(other, signal.SIGCONT)
        assert server.generate(max_new_tokens=4)["meta_info"]["completion_tokens"] == 4
