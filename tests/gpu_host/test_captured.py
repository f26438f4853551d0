"""The stand-in is held to what a real server (0.5.15.post1) wrote and answered."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.gpu_host.host import GpuHost
from tests.gpu_host.running import running, speculative

CAPTURED = Path(__file__).parent / "captured"
KEYS: dict[str, Any] = json.loads((CAPTURED / "keys.json").read_text())
LATER = re.compile(
    r"(tilelang|flashinfer\.comm|Fail to set RLIMIT|Failed to load generation|Unexpected error during)"
)
"""Remarks of libraries that the stand-in does not have."""
EXTEND = "Capture draft extend"  # depends on the attention backend, which differs between the two


def skeleton(log: str) -> list[str]:
    """The lines of a start without what differs from run to run: times, numbers, paths, process ids."""
    lines = []
    for line in log.replace("\r", "\n").split("\n"):
        if not line.strip() or "Capturing" in line or LATER.search(line) or EXTEND in line or "CUTE_DSL" in line:
            continue
        if re.search(r"\d/\d+ \[", line) or "server_args=" in line or "GET /health" in line:
            continue
        line = re.sub(r"^\[[\d: -]+( TP\d)?\] ", "", line)
        line = re.sub(r"type=\w+|(K|V|KV) size: [\d.]+ GB(, )?|Use \w+ backend|\[[^\]]*\]", "", line)
        lines.append(re.sub(r"[\d.:]+", "#", line).rstrip())
        if "fired up" in line:
            break
    return lines


@pytest.mark.host
@pytest.mark.parametrize(
    ("captured", "flags"),
    [
        ("e3_s3k1d4", [*speculative(), "--cuda-graph-max-bs", "8", "--enable-metrics"]),
        ("e3_s3k1d4_nograph", [*speculative(), "--cuda-graph-max-bs", "8", "--disable-cuda-graph"]),
        ("baseline_default", ["--enable-metrics"]),
    ],
)
def test_a_start_writes_the_lines_of_the_real_one_in_their_order(
    host: GpuHost, captured: str, flags: list[str]
) -> None:
    with running(host, flags) as server:
        ours = skeleton(server.wait_ready())
    assert ours == skeleton((CAPTURED / f"{captured}.log").read_text())


@pytest.mark.host
@pytest.mark.parametrize("flags", [speculative(), ()])
def test_answers_have_the_keys_of_the_real_ones(host: GpuHost, flags: tuple[str, ...]) -> None:
    wanted = {name: set(keys) for name, keys in KEYS["speculative"].items()}
    for name, keys in KEYS["only_speculative"].items():
        wanted[name] -= set() if flags else set(keys)
    with running(host, [*flags, "--enable-metrics", "--decode-log-interval", "4"]) as server:
        server.wait_ready()
        answer, events = server.generate(max_new_tokens=20), server.stream()
        info = server.get("/server_info")
        assert set(info) == wanted["server_info"]
        assert set(info["internal_states"][0]) == wanted["internal_state"]
        assert set(answer) == wanted["generate"]
        assert set(answer["meta_info"]) == wanted["meta_info"]
        assert wanted["chunk_meta_info"] == set(events[1]["meta_info"])
        assert wanted["meta_info"] == set(events[-1]["meta_info"])
        assert set(server.get("/model_info")) == wanted["model_info"]
        assert set(server.get("/v1/loads")["loads"][0]) == wanted["load"]
        metrics = re.findall(r"^# TYPE (\S+)", server.ask("/metrics")[1].decode(), re.MULTILINE)
        assert set(metrics) - wanted["metrics"] <= {
            "sglang:cached_tokens_total",
            "sglang:inter_token_latency_seconds",
        }
        assert wanted["metrics"] <= set(metrics)


@pytest.mark.host
def test_decode_lines_read_like_the_real_ones(host: GpuHost) -> None:
    with running(host, [*speculative(), "--decode-log-interval", "4"]) as server:
        server.wait_ready()
        server.generate(max_new_tokens=20)
        log = server.log()
    number = r"[\d.]+"
    assert re.search(
        rf"\] Decode batch, #running-req: 1, #token: \d+, token usage: {number}, accept len: {number}, "
        rf"accept rate: {number}, cuda graph: True, gen throughput \(token/s\): {number}, #queue-req: 0\n",
        log,
    )


@pytest.mark.host
def test_the_processes_have_the_real_titles_and_hide_their_environment(host: GpuHost) -> None:
    with running(host, ["--mem-fraction-static", "0.9"], model="kimi-k2.5", tp=8) as server:
        server.wait_ready()
        for title in (*(f"sglang::scheduler_TP{rank}\0" for rank in range(8)), "sglang::detokenizer"):
            pid = server.child(title)
            assert not Path(f"/proc/{pid}/environ").read_bytes().strip(b"\0")
        assert b"sglang.launch_server" in Path(f"/proc/{server.process.pid}/cmdline").read_bytes()
        assert len(host.gpu_pids()) == 8
        assert all(used > 80_000 for used in host.gpu_used())
    assert host.gpu_used() == [4] * 8
