"""The real engine's models and launcher."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from launchers.host import HostLauncher, HostSettings
from launchers.shell import LocalShell
from launchers.smollm2 import cache_dir, packaged_model, prepare
from tests.engines.real import Real


@pytest.fixture(scope="session")
def model() -> Path:
    """The F16 target, made once for all test runs of this machine."""
    return prepare("F16", packaged_model(), cache_dir())


@pytest.fixture(scope="module")
def real(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Real]:
    """Servers on ports of their own; whatever a failing test leaves is stopped."""
    state_dir = str(tmp_path_factory.mktemp("host"))
    settings = HostSettings(name="here", state_dir=state_dir, port_low=31870, port_high=31899)
    launcher = HostLauncher(LocalShell(), settings)
    try:
        yield Real(launcher, model, packaged_model())
    finally:
        launcher.stop_leftovers(grace_s=5)
