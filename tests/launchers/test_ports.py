"""Whose port it is: looked up in /proc, whatever the address a socket listens at."""

from __future__ import annotations

import os
import socket

import pytest

from launchers.errors import HostDirty
from launchers.host import HostLauncher, HostSettings
from tests.launchers.conftest import Bench
from tests.launchers.shells import quick_in

pytestmark = pytest.mark.host


@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0", "::1", "::"])
def test_a_taken_port_is_refused_and_its_holder_named(bench: Bench, address: str) -> None:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family) as stranger:
        try:
            stranger.bind((address, bench.port))
        except OSError as error:
            pytest.skip(f"no {address} here: {error}")
        stranger.listen()
        with pytest.raises(HostDirty, match=f"pid {os.getpid()}: .*pytest"):
            bench.launcher.start(bench.spec("true"))
        with pytest.raises(HostDirty, match=f"port {bench.port} on here is taken"):
            bench.launcher.free_port()
    assert not (bench.state_dir / "servers").exists()
    assert bench.launcher.free_port() == bench.port


@quick_in("busybox")
def test_the_lowest_port_that_is_free_is_offered(bench: Bench) -> None:
    settings = HostSettings("here", str(bench.state_dir), 1024, 1030)
    launcher = HostLauncher(bench.launcher.shell, settings)
    lowest = launcher.free_port()
    with socket.socket() as other:
        other.bind(("127.0.0.1", lowest))
        assert launcher.free_port() == lowest  # bound, but nobody listens
        other.listen()
        assert launcher.free_port() > lowest


@quick_in("busybox")
def test_a_server_owns_its_port_and_no_other(bench: Bench) -> None:
    with bench.running("serving") as handle:
        assert bench.launcher.owns_port(handle)
        with socket.socket(socket.AF_INET6) as stranger:
            stranger.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            stranger.bind(("::1", bench.port))
            stranger.listen()
            assert not bench.launcher.owns_port(handle), "a stranger listens beside it"
    assert not bench.launcher.owns_port(handle)
