"""An installed specsweep, far from any checkout: its files, its command, a folder of one's own, a launch."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("analysis", "conf", "launchers", "sweeper")
MOST_BYTES = 5_000_000


def called(command: list[str], folder: Path) -> str:
    """What a command prints; without what this test's own Python was told."""
    places = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(command, cwd=folder, env=places, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy: a build leaves folders behind."""
    folder = tmp_path_factory.mktemp("built")
    for name in PACKAGES:
        shutil.copytree(ROOT / name, folder / "src" / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder / "src" / name)
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    called([*build, "--wheel-dir", str(folder), str(folder / "src")], folder)
    (found,) = folder.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command in an environment of its own; the libraries are those of this test."""
    venv = tmp_path_factory.mktemp("venv")
    called([sys.executable, "-m", "venv", "--without-pip", str(venv)], venv)
    python = str(venv / "bin" / "python")
    install = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--no-index"]
    called([*install, str(wheel)], venv)
    libraries = sysconfig.get_path("purelib", vars={"base": str(venv)})
    (Path(libraries) / "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return venv / "bin" / "specsweep"


def test_every_package_is_in_it_with_its_files_and_no_test(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    wanted = {
        str(path.relative_to(ROOT))
        for name in PACKAGES
        for path in (ROOT / name).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert wanted <= names, sorted(wanted - names)
    assert not [name for name in names if name.startswith("tests/")]
    assert wheel.stat().st_size < MOST_BYTES


def test_it_works_in_an_empty_folder(installed: Path, tmp_path: Path) -> None:
    python = str(installed.parent / "python")
    place = called([python, "-c", "import sweeper, conf; print(sweeper.__file__, conf.__file__)"], tmp_path)
    assert str(ROOT) not in place
    assert "specsweep COMMAND --help" in called([str(installed), "--help"], tmp_path)
    called([str(installed), "init", "mine", "--yes"], tmp_path)
    assert "study night on here" in " ".join(called([str(installed), "plan"], tmp_path / "mine").split())
    asked = ["preset=llamacpp_smoke", "budget.trials=1", "tracking=none"]
    assert "tok/s" in called([str(installed), "run", *asked], tmp_path / "mine")
    assert "1 of 1 trials done" in called([str(installed), "status", *asked], tmp_path / "mine")
