"""Servers that live and answer, wrongly."""

from __future__ import annotations

import contextlib
import http.client
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.gpu_host.host import GpuHost
from tests.gpu_host.running import Server, running, speculative, until
from tests.gpu_host.site.sglang.standin import faults

pytestmark = [pytest.mark.host, pytest.mark.slow]
STREAM = {"text": "Tell me", "stream": True, "sampling_params": {"max_new_tokens": 40}}
ANSWERS: dict[str, Callable[[Server], object]] = {
    "wrong_model": lambda server: server.get("/server_info")["model_path"] == "/models/another",
    "wrong_nonce": lambda server: server.get("/server_info")["served_model_name"] == "an-earlier-launch",
    "accept_one": lambda server: server.generate()["meta_info"]["spec_num_correct_drafts"] == 0,
    "garbage_http": lambda server: b"\xff<html>" in server.ask("/server_info")[1],
    "garbage_stream": lambda server: b"half a json" in server.ask("/generate", STREAM)[1],
    "truncated_stream": lambda server: is_cut(server),
    "http_500": lambda server: server.ask("/generate", STREAM) == (500, b"Internal Server Error"),
    "slow_http:0.3": lambda server: server.generate(max_new_tokens=1),
    "no_final_meta": lambda server: "spec_verify_ct" not in server.generate()["meta_info"],
    "graph_false": lambda server: (server.generate(), "cuda graph: False" in server.log())[1],
    "log_flood:2": lambda server: until(lambda: server.log_path.stat().st_size > 1_500_000),
    "non_utf8_log": lambda server: b"\xff\xfe\x00" in server.log_path.read_bytes(),
}


def is_cut(server: Server) -> bool:
    with contextlib.suppress(http.client.IncompleteRead):
        server.ask("/generate", STREAM)
        return False
    return True


@pytest.mark.parametrize("name", ANSWERS)
def test_a_server_that_lives_is_wrong_in_the_way_asked_for(host: GpuHost, name: str) -> None:
    with running(host, [*speculative(), "--decode-log-interval", "4"], env={"STANDIN_FAULT": name}) as server:
        server.wait_ready()
        assert ANSWERS[name](server)


def test_every_fault_is_tested() -> None:
    tests = ("test_wrong_answers.py", "test_failures.py", "test_tools.py")
    source = "".join(Path(__file__).with_name(name).read_text() for name in tests)
    assert [name for name in sorted(faults.NAMES) if name not in source] == []
