"""A reader's folder: their own configuration as the pages show it, and the studies that the pages speak of."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.docs.pages import blocks
from tests.docs.studies import make


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Gives a folder that holds a study of this name, made when it is first asked for."""
    folders: dict[str, Path] = {}

    def folder_of(name: str) -> Path:
        if name not in folders:
            folders[name] = tmp_path_factory.mktemp("study")
            make(folders[name], name)
        return folders[name]

    return folder_of


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The reader's folder, and the current one: `my/` holds every file that a page shows, with two more hosts."""
    monkeypatch.chdir(tmp_path)
    for block in blocks("yaml"):
        if block.title:
            file = tmp_path / block.title
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(block.text, encoding="utf-8")
    host = (tmp_path / "my/host/gpu1.yaml").read_text(encoding="utf-8")
    for name in ("gpu2", "gpu3"):
        (tmp_path / f"my/host/{name}.yaml").write_text(host.replace("gpu1", name), encoding="utf-8")
    prompts = [{"prompt": f"Summarise this paragraph about ships in {n} words."} for n in (10, 20, 30)]
    (tmp_path / "my.jsonl").write_text("\n".join(map(json.dumps, prompts)), encoding="utf-8")
    return tmp_path


def place_study(folder: Path, made: Path, into: str = "sweeps") -> None:
    """Copy a study to where a command looks for it."""
    shutil.copytree(made, folder / into, dirs_exist_ok=True)
