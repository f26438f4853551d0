"""The reference pages are what the code says now; what they list by hand is really there."""

from __future__ import annotations

import re

import pytest

from sweeper.errors import ExitCode, FailureKind
from sweeper.metrics import METRICS
from sweeper.schemas.keys import keys
from sweeper.usage.table import EXIT_CODES
from tests.docs.pages import ROOT
from tests.docs.written import ENVIRONMENT, FILES, FOLDER, PAGES

OF_LIBRARIES = ("PG", "MLFLOW_")
"""What libpq and MLflow read themselves."""

SOURCES = "\n".join(
    file.read_text(encoding="utf-8")
    for folder in ("sweeper", "launchers", "analysis", "conf", "docs")
    for file in sorted((ROOT / folder).rglob("*"))
    if file.suffix in (".py", ".yaml", ".sh", ".md") and FOLDER not in file.parents
)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_as_it_would_be_written_now(page: str) -> None:
    kept = (FOLDER / page).read_text(encoding="utf-8")
    assert kept == PAGES[page](), "write it anew: python -m tests.docs.written"


def test_everything_is_in_the_reference() -> None:
    assert [name for name in METRICS if f"| `{name}` |" not in PAGES["metrics.md"]()] == []
    assert [kind for kind in FailureKind if f"### {kind.value}\n" not in PAGES["failures.md"]()] == []
    configuration = PAGES["configuration.md"]()
    assert [path for path in keys() if f"| `{path}` |" not in configuration and path != "host.ssh"] == [
        "more_workloads"
    ]


def test_the_exit_codes_are_those_of_the_program() -> None:
    told = [
        int(code)
        for code in re.findall(r"^ +(\d+)  \w|     (\d+)  ended", EXIT_CODES, re.M)
        for code in code
        if code
    ]
    assert sorted(told) == sorted(code.value for code in ExitCode)


@pytest.mark.parametrize("name", [name for name in ENVIRONMENT if not name.startswith(OF_LIBRARIES)])
def test_a_variable_of_the_list_is_read_somewhere(name: str) -> None:
    assert re.search(rf"\b{name}\b", SOURCES)


def test_a_variable_of_ours_is_in_the_list() -> None:
    ours = set(re.findall(r"\b(SPECSWEEP_SSH_[A-Z]+)\b", SOURCES))
    assert ours <= set(ENVIRONMENT)


def test_files_of_the_list_are_written_somewhere() -> None:
    for name in (
        "optuna.db",
        "mlflow.db",
        "mlflow-artifacts",
        "-status",
        ".lock",
        "-report",
        "-comparison",
        "-export",
    ):
        assert name in SOURCES
    assert len(FILES) > 12


def test_the_map_of_the_code_names_every_package() -> None:
    drawn = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("## Layout")[2].partition("\n## ")[0]
    packages = [
        file.parent.name for room in ("sweeper", "analysis") for file in (ROOT / room).glob("*/__init__.py")
    ]
    assert [name for name in packages if not re.search(rf"\b{name}/", drawn)] == []
