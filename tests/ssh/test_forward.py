"""Ports of the host, reached through the connection: streams chunk by chunk, and never a cut that looks clean."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from launchers.errors import HostLost
from launchers.ssh import SshShell
from tests.launchers.conftest import until, unused_port
from tests.ssh.conftest import MakeShell
from tests.ssh.proxy import Proxy
from tests.ssh.sshd import Sshd

pytestmark = pytest.mark.host
Serve = Callable[[socket.socket], None]


@contextlib.contextmanager
def server(serve: Serve) -> Iterator[int]:
    """A server of the host: `serve` gets each connection in a thread of its own; its port."""
    threads: list[threading.Thread] = []
    clients: list[socket.socket] = []

    def accept() -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            clients.append(client)
            threads.append(threading.Thread(target=answer, args=(client,)))
            threads[-1].start()

    def answer(client: socket.socket) -> None:
        with client, contextlib.suppress(OSError):
            client.settimeout(30)
            serve(client)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        acceptor = threading.Thread(target=accept)
        acceptor.start()
        try:
            yield listener.getsockname()[1]
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            acceptor.join()
            for client in clients:  # a half-open connection would never end by itself
                with contextlib.suppress(OSError):
                    client.shutdown(socket.SHUT_RDWR)
            for thread in threads:
                thread.join()


def connect(address: str) -> socket.socket:
    host, port = address.split(":")
    return socket.create_connection((host, int(port)), timeout=30)


def is_reset(address: str) -> bool:
    """Whether a new connection is reset before anything comes."""
    try:
        with connect(address) as client:
            client.recv(1)
    except ConnectionResetError:
        return True
    return False


def read_all(client: socket.socket) -> bytes:
    return b"".join(iter(lambda: client.recv(65536), b""))


def echo_upper(client: socket.socket) -> None:
    while data := client.recv(65536):
        client.sendall(data.upper())


def test_both_directions_and_both_ends_are_passed_on(shell: SshShell) -> None:
    with server(echo_upper) as port, connect(shell.address(port)) as client:
        client.sendall(b"hello")
        assert client.recv(5) == b"HELLO"
        client.sendall(b" and goodbye")
        client.shutdown(socket.SHUT_WR)
        assert read_all(client) == b" AND GOODBYE"


def test_a_stream_arrives_chunk_by_chunk(shell: SshShell) -> None:
    """The server sends the next chunk only when the client has told that it got the one before."""

    def stream(client: socket.socket) -> None:
        for number in range(20):
            client.sendall(f"data: {number}\n".encode())
            if client.recv(1) != b"+":
                return

    with server(stream) as port, connect(shell.address(port)) as client:
        for number in range(20):
            assert client.recv(100) == f"data: {number}\n".encode()
            client.sendall(b"+")
        assert read_all(client) == b""


def test_much_passes_unharmed_and_slow_readers_are_waited_for(shell: SshShell) -> None:
    block = bytes(range(256)) * 400

    def flood(client: socket.socket) -> None:
        for _ in range(60):
            client.sendall(block)

    with server(flood) as port, connect(shell.address(port)) as client:
        assert shell.run("exit 3", timeout_s=20).exit_code == 3, "a full stream is in nobody's way"
        assert read_all(client) == block * 60


def test_several_ports_and_many_clients_at_once(shell: SshShell) -> None:
    def name(client: socket.socket) -> None:
        client.sendall(f"{client.getsockname()[1]} {client.recv(10).decode()}".encode())

    with server(name) as one, server(name) as two:
        clients = [(port, number, connect(shell.address(port))) for number in range(16) for port in (one, two)]
        for _, number, client in clients:
            client.sendall(str(number).encode())
        for port, number, client in clients:
            with client:
                assert read_all(client) == f"{port} {number}".encode()


def test_an_address_stays_the_same(shell: SshShell) -> None:
    assert shell.address(8000) == shell.address(8000) != shell.address(8001)


def test_a_port_that_nobody_listens_on_disconnects_at_once(shell: SshShell) -> None:
    assert is_reset(shell.address(unused_port()))


def test_only_the_loopback_of_this_machine_is_listened_on(shell: SshShell) -> None:
    assert shell.address(8000).startswith("127.0.0.1:")
    port = int(shell.address(8000).split(":")[1])
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", port), timeout=5)


def test_a_client_that_leaves_is_seen_by_the_server(shell: SshShell) -> None:
    left = threading.Event()

    def watch(client: socket.socket) -> None:
        if client.recv(10) == b"ask" and client.recv(1) == b"":
            left.set()

    with server(watch) as port:
        with connect(shell.address(port)) as client:
            client.sendall(b"ask")
        until(left.is_set, "the server sees the end")


@pytest.mark.parametrize("how", ["cut", pytest.param("freeze", marks=pytest.mark.slow)])
def test_a_broken_link_resets_what_it_carried_and_what_comes(
    make_shell: MakeShell, proxy: Proxy, how: str
) -> None:
    shell = make_shell(port=proxy.port, connect_timeout_s=1)
    with server(echo_upper) as port:
        address = shell.address(port)
        with connect(address) as client:
            client.sendall(b"a")
            assert client.recv(1) == b"A"
            proxy.cut() if how == "cut" else proxy.freeze()
            with pytest.raises(ConnectionResetError):
                client.recv(1)
        assert is_reset(address)
        proxy.heal()
        assert shell.run("exit 3", timeout_s=20).exit_code == 3
        assert shell.address(port) == address
        with connect(address) as client:
            client.sendall(b"b")
            assert client.recv(1) == b"B", "the same address leads there again"


@pytest.mark.parametrize("how", ["close", "cut"])
def test_an_end_in_the_middle_of_many_streams_disconnects_them_all(
    make_shell: MakeShell, proxy: Proxy, how: str
) -> None:
    """Also that none of the many threads ends with an exception: that would fail the test."""

    def flood(client: socket.socket) -> None:
        while True:
            client.sendall(b"x" * 1000)

    shell = make_shell(port=proxy.port)
    with server(flood) as port:
        address = shell.address(port)
        clients = [connect(address) for _ in range(16)]
        for client in clients:
            assert client.recv(1) == b"x"
        shell.close() if how == "close" else proxy.cut()
        for client in clients:
            with client, pytest.raises(ConnectionResetError):
                read_all(client)
        shell.close()
        with pytest.raises(ConnectionRefusedError):
            connect(address)


def test_an_address_needs_a_host(sshd: Sshd, make_shell: MakeShell) -> None:
    with pytest.raises(HostLost, match="refused"):
        make_shell(port=unused_port()).address(8000)
