"""Every fault of the stand-in over SSH: the right class, nothing left behind, the next launch clean."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.gpu_host.host import make_host
from tests.gpu_host.site.sglang.standin.faults import NAMES
from tests.sglang.faults import FAULTS, SETTINGS, provoke
from tests.sglang.night import Night, night, sshd_path
from tests.ssh.sshd import Sshd

QUICK = ("oom_capture", "wrong_nonce", "server_killed_mid_benchmark", "orphan_memory")
"""What `make test` tries; the slow tier tries all."""


@pytest.fixture(scope="module")
def dark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Night]:
    folder = tmp_path_factory.mktemp("night")
    host = make_host(folder / "gpu-host", time_scale="0.01", wait_scale="0.01")
    with (
        Sshd(folder / "sshd", env={"PATH": sshd_path(host)}) as sshd,
        night(host, sshd, folder, *SETTINGS) as dark,
    ):
        yield dark


def test_every_fault_of_the_stand_in_has_an_expected_outcome() -> None:
    assert set(FAULTS) == NAMES


@pytest.mark.host
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in QUICK else pytest.mark.slow) for name in FAULTS]
)
def test_a_fault_is_told_for_what_it_is_and_leaves_nothing_behind(dark: Night, name: str) -> None:
    assert provoke(dark, name, FAULTS[name]).wrong == ()
