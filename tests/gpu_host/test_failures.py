"""Every fault does what its name says, and leaves nothing that it should not."""

from __future__ import annotations

import http.client
import os
import signal
from pathlib import Path

import pytest

from tests.gpu_host.host import GpuHost
from tests.gpu_host.running import PATIENCE_S, is_open, running, speculative, until, wait_gone

pytestmark = [pytest.mark.host, pytest.mark.slow]
KILLED = -signal.SIGKILL
STARTS = {
    "oom_load": (KILLED, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.50 GiB"),
    "oom_capture": (KILLED, "Capture cuda graph failed: CUDA out of memory."),
    "weights_too_big": (KILLED, "Loaded weights leave no GPU memory for the KV cache under"),
    "bad_memfrac": (KILLED, "Not enough memory. Please try to increase --mem-fraction-static. Current value:"),
    "crash_load": (1, "Rank 0 scheduler died during initialization (exit code: -11)"),
    "crash_load:oom_killer": (1, "Rank 0 scheduler died during initialization (exit code: -9)"),
    "crash_capture": (KILLED, "RuntimeError: Unknown function cutlass___call___flashinfer"),
    "nccl_error": (KILLED, "torch.distributed.DistBackendError: NCCL error in"),
    "unbalanced_memory": (KILLED, "The memory capacity is unbalanced. Some GPUs may be occupied"),
    "unknown_flag": (2, "unrecognized arguments: --speculative-eagle-topk 1"),
    "port_stolen": (1, "[Errno 98] error while attempting to bind on address"),
}
HANGS = {
    "hang_init_nccl": "Init torch distributed begin.",
    "hang_load": "50% Completed | 32/64",
    "hang_capture": "Capture target prefill CUDA graph begin.",
    "hang_warmup": "Uvicorn running on http://",
}


def faulty(name: str) -> dict[str, str]:
    return {"STANDIN_FAULT": name}


@pytest.mark.parametrize("name", STARTS)
def test_a_start_fails_with_the_real_words_and_exit_code(host: GpuHost, name: str) -> None:
    code, words = STARTS[name]
    with running(host, speculative(), env=faulty(name)) as server:
        assert server.exit_code() == code
        wait_gone(server)
        log = server.log()
    assert words in log
    assert ("Received sigquit from a child process" in log) == (code == KILLED)
    assert host.gpu_used() == [4] * 8


@pytest.mark.parametrize("name", HANGS)
def test_a_start_hangs_in_its_phase(host: GpuHost, name: str) -> None:
    with running(host, speculative(), env=faulty(name)) as server:
        log = server.wait_for(HANGS[name])
        assert "ready to roll" not in log
        assert server.process.poll() is None
        assert is_open(server.port) == (name == "hang_warmup")
    assert host.gpu_used() == [4] * 8


def test_slow_weights_show_progress_and_arrive(host: GpuHost) -> None:
    with running(host, env=faulty("slow_weights:0.8")) as server:
        log = server.wait_ready()
    assert float(log.split("Load weight end. elapsed=")[1].split()[0]) >= 0.8


@pytest.mark.parametrize("name", ["crash_mid_benchmark", "illegal_memory_access"])
def test_a_crash_in_mid_request_cuts_the_stream_and_ends_the_server(host: GpuHost, name: str) -> None:
    with running(host, speculative(), env=faulty(name)) as server:
        server.wait_ready()
        server.generate()
        with pytest.raises((http.client.HTTPException, OSError)):
            server.stream(max_new_tokens=40)
        assert server.exit_code() == KILLED
        log = server.log()
    assert "CUDA error: " in log.split("Scheduler hit an exception")[1]
    assert "SIGQUIT received." in log


def test_a_watchdog_ends_a_hang(host: GpuHost) -> None:
    with running(host, ["--watchdog-timeout", "5"], env=faulty("watchdog:1")) as server:
        server.wait_ready()
        with pytest.raises((http.client.HTTPException, OSError)):
            server.generate(max_new_tokens=40)
        assert server.exit_code() == KILLED
        assert "Scheduler watchdog timeout (self.watchdog_timeout=5.0, self.soft=False)" in server.log()


def test_a_killed_server_is_gone_in_mid_request(host: GpuHost) -> None:
    with running(host, env=faulty("server_killed_mid_benchmark:1")) as server:
        server.wait_ready()
        with pytest.raises((http.client.HTTPException, OSError)):
            server.generate(max_new_tokens=40)
        assert server.exit_code() == KILLED
        wait_gone(server)


def test_without_its_detokenizer_a_server_stays_up_and_answers_nobody(host: GpuHost) -> None:
    with running(host, env=faulty("detokenizer_killed:1") | {"STANDIN_WAIT_SCALE": "0.2"}) as server:
        server.wait_ready()
        with pytest.raises(TimeoutError):
            server.ask("/generate", {"text": "x", "sampling_params": {"max_new_tokens": 30}}, timeout_s=1)
        server.wait_for("Waiting 60.0 seconds for CUDA coredumps before exiting.")
        assert server.process.poll() is None
        assert is_open(server.port)
        assert host.gpu_used()[0] > 1000


def test_a_stopped_scheduler_fails_health_and_hangs_server_info(host: GpuHost) -> None:
    with running(host, env=faulty("scheduler_stopped:1")) as server:
        server.wait_ready()
        with pytest.raises(TimeoutError):
            server.ask("/generate", {"text": "x", "sampling_params": {"max_new_tokens": 30}}, timeout_s=1)
        assert server.ask("/health")[0] == 503
        assert server.ask("/model_info")[0] == 200
        with pytest.raises(TimeoutError):
            server.ask("/server_info", timeout_s=0.3)


def test_a_silent_hang_is_healthy_and_gives_no_tokens(host: GpuHost) -> None:
    with running(host, env=faulty("silent_hang_after_n:1")) as server:
        server.wait_ready()
        server.generate(max_new_tokens=4)
        with pytest.raises(TimeoutError):
            server.ask("/generate", {"text": "x", "sampling_params": {"max_new_tokens": 4}}, timeout_s=0.5)
        assert server.ask("/health")[0] == 200


@pytest.mark.parametrize("how", ["", ":setsid"])
def test_an_orphan_keeps_memory_after_the_server(host: GpuHost, how: str) -> None:
    with running(host, ["--mem-fraction-static", "0.3"], env=faulty(f"orphan_memory{how}")) as server:
        server.wait_ready()
        server.process.kill()
        server.process.wait(PATIENCE_S)
        (orphan,) = host.orphans()
        assert Path(f"/proc/{orphan}/environ").read_bytes() == b""
        assert (os.getsid(orphan) == server.process.pid) == (how == "")
        until(lambda: host.gpu_pids() == {orphan})
        assert host.gpu_used()[0] > 30_000
    assert host.gpu_used() == [4] * 8


def test_an_orphan_keeps_the_port_after_the_server(host: GpuHost) -> None:
    with running(host, env=faulty("orphan_port")) as server:
        server.wait_ready()
        server.process.kill()
        server.process.wait(PATIENCE_S)
        assert len(host.orphans()) == 1
        assert is_open(server.port)
    assert not is_open(server.port)


def test_a_stranger_answers_on_a_stolen_port(host: GpuHost) -> None:
    with running(host, env=faulty("port_stolen")) as server:
        assert server.exit_code() == 1
        assert server.ask("/health")[0] == 200
        assert server.get("/model_info")["model_path"] == "/models/somebody-elses"


def test_memory_can_stay_with_no_process_to_blame(host: GpuHost) -> None:
    with running(host, env=faulty("gpu_memory_stuck:0.5")) as server:
        server.wait_ready()
        server.process.kill()
        wait_gone(server)
        assert host.gpu_used()[0] > 30_000
        assert host.gpu_pids() == set()
        until(lambda: host.gpu_used() == [4] * 8)


def test_a_full_disk_ends_the_log_and_not_the_server(host: GpuHost) -> None:
    with running(host, env=faulty("disk_full_log")) as server:
        until(lambda: is_open(server.port) and server.ask("/health")[0] == 200)
        assert "Load weight end" in server.log()
        assert "max_total_num_tokens" not in server.log()


def test_sigterm_can_be_ignored(host: GpuHost) -> None:
    with running(host, env=faulty("ignore_sigterm")) as server:
        server.wait_ready()
        server.process.terminate()
        assert server.generate(max_new_tokens=4)["meta_info"]["completion_tokens"] == 4
