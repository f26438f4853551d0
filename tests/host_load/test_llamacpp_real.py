"""Two requests at once on a real llama.cpp: the client on the host, real streams, real counters."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from launchers.clock import SystemClock
from launchers.host import HostLauncher, HostSettings
from launchers.shell import LocalShell
from launchers.smollm2 import cache_dir, packaged_model, prepare
from sweeper.measuring.client import Bench
from sweeper.measuring.concurrent import measure_concurrent
from sweeper.measuring.host_load import HostLoad
from sweeper.spec import ServerConfig
from sweeper.workload_spec import Prompt, WorkloadSpec
from tests.engines.real import COPY, ENGINE, Real
from tests.fakes import load_of

pytestmark = pytest.mark.engine

TEXTS = (COPY, "List three colours.", "Count from one to ten.", "Name a large animal and a small one.")


@pytest.fixture
def real(tmp_path: Path) -> Iterator[Real]:
    launcher = HostLauncher(LocalShell(), HostSettings("here", str(tmp_path), port_low=31900, port_high=31929))
    try:
        yield Real(launcher, prepare("F16", packaged_model(), cache_dir()), packaged_model())
    finally:
        launcher.stop_leftovers(grace_s=5)


def test_two_streams_of_a_real_server_are_measured_from_its_host(real: Real, tmp_path: Path) -> None:
    workload = WorkloadSpec(
        name="two at once",
        prompts=tuple(Prompt(id=f"p{i}", text=text) for i, text in enumerate(TEXTS)),
        max_tokens=16,
        temperature=0,
        seed=1,
        concurrency=2,
        repeats=1,
        warmup_max_requests=1,
        request_timeout_s=90,
    )
    with real.server(parallel=2, ctx_size=2048, spec_type="ngram-simple") as target:
        port = urlsplit(target.url).port or 0
        host = HostLoad(real.launcher, (sys.executable,), "127.0.0.1", port, str(tmp_path))
        bench = Bench(ENGINE, SystemClock(), lambda *_: None, ServerConfig(), send_all=host.send_all)
        found = measure_concurrent(target, load_of(workload), bench)
    assert [request.num_output_tokens for request in found.requests][1:] == [16] * 3
    assert len(found.warmups) == 2
    overlapping = sorted((r.started_ms, r.started_ms + r.e2e_latency_ms) for r in found.requests)
    assert overlapping[1][0] < overlapping[0][1]
    assert found.metrics["output_throughput"] > found.metrics["mean_prompt_throughput"]
    assert found.metrics["accept_length"] >= 1
    assert found.metrics["num_verify_steps"] > 0
    assert found.metrics["client_cpu_pct"] < 50
