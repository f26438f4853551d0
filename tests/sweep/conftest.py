from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sweep.runner import SweepFolder


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[SweepFolder]:
    """A folder for one sweep; a test that leaves a server alive fails."""
    made = SweepFolder(tmp_path)
    yield made
    assert made.servers() == []
