"""What the configuration tests share: a folder of the user's own, and the mistakes that loading it shows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from sweeper.config import load
from sweeper.errors import ConfigError

WriteFiles = Callable[[dict[str, str]], Path]


@pytest.fixture
def write_files(tmp_path: Path) -> WriteFiles:
    def write(files: dict[str, str]) -> Path:
        folder = tmp_path / "my own confs"
        for name, text in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
        return folder

    return write


def mistakes(*overrides: str, config_dir: Path | None = None) -> tuple[str, ...]:
    """What is wrong with these overrides."""
    with pytest.raises(ConfigError) as caught:
        load(overrides, config_dir)
    return caught.value.mistakes
