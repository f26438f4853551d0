"""The client behind a real sshd: sent there, its answer brought back, and its end when the link breaks."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from launchers.ssh import SshShell
from sweeper.engines.sglang.answers import parse_generate
from sweeper.errors import FailureKind, TrialError
from sweeper.measuring.host_load import Arrivals
from tests.host_load.conftest import generate, going, load_of, python
from tests.host_load.streaming import Streaming
from tests.launchers.conftest import until, with_token
from tests.ssh.conftest import FAST
from tests.ssh.proxy import Proxy
from tests.ssh.sshd import Sshd

pytestmark = pytest.mark.host


@pytest.fixture(scope="module")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    with Sshd(tmp_path_factory.mktemp("sshd")) as sshd:
        yield sshd


@pytest.fixture
def proxy(sshd: Sshd) -> Iterator[Proxy]:
    with Proxy(sshd.port) as proxy:
        yield proxy


@pytest.fixture
def shell(sshd: Sshd, proxy: Proxy) -> Iterator[SshShell]:
    shell = SshShell(sshd.target(port=proxy.port, connect_timeout_s=1), "here", FAST)
    yield shell
    shell.close()


def test_64_streams_come_back_over_ssh(shell: SshShell, server: Streaming, token: str, state_dir: str) -> None:
    load = load_of(shell, python(token), server.port, state_dir)
    report = load.send_all([generate(100)] * 64, Arrivals(64), 60.0)
    answers = [parse_generate(exchange.response()) for exchange in report.exchanges]
    assert [answer.num_output_tokens for answer in answers] == [100] * 64
    assert len({answer.text for answer in answers}) == 1


def test_a_link_that_breaks_ends_the_client_on_the_host(
    shell: SshShell, proxy: Proxy, server: Streaming, token: str, state_dir: str
) -> None:
    load = load_of(shell, python(token), server.port, state_dir)

    def break_under_it() -> None:
        until(lambda: server.num_open == 1, "the request is under way")
        proxy.cut()

    thread = threading.Thread(target=break_under_it)
    thread.start()
    with pytest.raises(TrialError) as failed:
        load.send_all([going("/hang")], Arrivals(1), 600.0)
    thread.join()
    assert failed.value.kind is FailureKind.HOST_LOST
    until(lambda: with_token(token) == [], "the client has ended by itself")
    until(lambda: server.num_broken == 1, "and closed its connections")
    proxy.heal()
    assert load.send_all([generate(3)], Arrivals(1), 30.0).exchanges[0].error == ""
