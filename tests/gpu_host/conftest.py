"""A stand-in host for each test: fast starts, short waits, no noise."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.gpu_host.host import GpuHost, make_host


@pytest.fixture
def host(tmp_path: Path) -> GpuHost:
    return make_host(tmp_path / "a host", time_scale="0.1", wait_scale="0.04", jitter="0", max_s="90")
