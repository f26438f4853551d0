"""A server that dies and a link that breaks in the middle of a trial: nothing is lost, and nothing runs twice."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sweeper.errors import FailureKind
from tests.gpu_host.host import make_host
from tests.sglang.breaks import break_link, kill_server
from tests.sglang.faults import MEASURED, class_of
from tests.sglang.night import Night, night, sshd_path
from tests.ssh.proxy import Proxy
from tests.ssh.sshd import Sshd

pytestmark = [pytest.mark.host, pytest.mark.slow]


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Night, Proxy]]:
    folder = tmp_path_factory.mktemp("night")
    host = make_host(folder / "gpu-host", time_scale="0.01", wait_scale="0.01")
    with (
        Sshd(folder / "sshd", env={"PATH": sshd_path(host)}) as sshd,
        Proxy(sshd.port) as proxy,
        night(host, sshd, folder, f"host.ssh.port={proxy.port}", "workload.max_tokens=160") as dark,
    ):
        yield dark, proxy


def test_a_killed_server_is_a_crash_and_nothing_is_left(broken: tuple[Night, Proxy]) -> None:
    dark, _ = broken
    assert class_of(kill_server(dark).record) == FailureKind.SERVER_CRASH
    assert dark.left_behind() == []


@pytest.mark.parametrize("silently", [False, True])
def test_a_link_that_is_gone_for_a_while_costs_no_launch(broken: tuple[Night, Proxy], silently: bool) -> None:
    dark, proxy = broken
    before = dark.host.num_launches()
    record = break_link(dark, proxy, 20, silently=silently).record
    assert class_of(record) == MEASURED
    assert record.proof.complete
    assert dark.host.num_launches() == before + 1, "the same server went on"
    assert dark.left_behind() == []
