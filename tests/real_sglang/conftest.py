"""The installed SGLang, and what it says now of a configuration: one start per case, however many tests ask."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.real_sglang.capture import capture
from tests.real_sglang.cases import SERVING, Case
from tests.real_sglang.environment import NO_TINY, RealSglang, real_sglang
from tests.real_sglang.install import InstallFailed

SAVED = Path(__file__).parents[1] / "data" / "sglang" / "0.5.23-cpu"


@pytest.fixture(scope="session")
def real() -> RealSglang:
    """Installed on the first call ever, which takes minutes. CI may not go without."""
    try:
        return real_sglang()
    except InstallFailed as failure:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(failure))


@pytest.fixture(scope="session")
def now(real: RealSglang, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """`now(case)`: the folder of what the server said just now, like the saved one."""
    folders: dict[str, Path] = {}

    def captured(name: str) -> Path:
        case = case_named(name)
        if case.tiny and real.tiny_target is None:
            pytest.skip(NO_TINY)
        if name not in folders:
            folder = tmp_path_factory.mktemp("now") / name
            capture(real, case, folder)
            folders[name] = folder
        return folders[name]

    return captured


@pytest.fixture
def saved() -> Callable[[str], Path]:
    """`saved(case)`: the folder of what the server said when it was captured."""
    return lambda name: SAVED / name


def case_named(name: str) -> Case:
    return next(case for case in SERVING if case.name == name)
