"""The stand-ins of one launch."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sweeper.serving.launch_trace import LaunchTrace
from tests.server.fake_launcher import FakeLauncher
from tests.server.fake_llama import FakeLlama, fake_llama


@pytest.fixture
def llama() -> Iterator[FakeLlama]:
    with fake_llama() as running:
        yield running


@pytest.fixture
def launcher(llama: FakeLlama) -> FakeLauncher:
    return FakeLauncher(llama.url, llama.port)


@pytest.fixture
def trace() -> LaunchTrace:
    return LaunchTrace()
