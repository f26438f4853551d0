"""What is installed is listed by hand: a package that is forgotten there is missing only where nobody develops."""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_every_package_is_installed() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    listed = settings["tool"]["setuptools"]["packages"]
    tops = {name.partition(".")[0] for name in listed}
    folders = {path.parent for top in tops for path in (ROOT / top).rglob("*.py")}
    assert sorted(listed) == sorted(".".join(folder.relative_to(ROOT).parts) for folder in folders)


def test_every_dependency_has_a_lower_and_an_upper_bound() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    unbounded = [each for each in project["dependencies"] if ">=" not in each or "<" not in each]
    assert unbounded == []
    assert project["scripts"] == {"specsweep": "sweeper.__main__:main"}
