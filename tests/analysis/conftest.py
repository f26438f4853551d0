"""A study to fill, new for each test."""

from __future__ import annotations

from pathlib import Path

import pytest

from sweeper.storing.storage import StudyStore
from tests.analysis.builders import in_memory


@pytest.fixture
def store(tmp_path: Path) -> StudyStore:
    return in_memory(tmp_path)
