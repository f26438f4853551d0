"""A port of this machine that leads, through the SSH connection of the moment, to a port of the host."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable

import paramiko

from launchers.ssh_script import LOST, shut

_CHUNK_BYTES = 65536


class Forward:
    """Listens on 127.0.0.1 until `close`, whatever happens to the connection meanwhile.

    `open_channel` gives a channel to `port` on the host's loopback address, or None when that cannot be had now:
    the client is then disconnected with a reset at once, as it is when the connection breaks. Only a clean end of
    the one side is a clean end (a half-close) to the other: an answer cut short never looks complete.
    """

    def __init__(self, port: int, open_channel: Callable[[int], paramiko.Channel | None]) -> None:
        self._port = port
        self._open_channel = open_channel
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._clients: set[socket.socket] = set()
        self._guard = threading.Lock()
        self._is_closed = False
        threading.Thread(target=self._accept, name=f"forward to {port}", daemon=True).start()

    def close(self) -> None:
        """Stop listening and disconnect every client."""
        with self._guard:
            self._is_closed = True
            clients = tuple(self._clients)
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes `accept`, which a mere close does not
        self._listener.close()
        for client in clients:
            _wake(client)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:  # closed
                return
            threading.Thread(
                target=self._serve, args=(client,), name=f"forward to {self._port}", daemon=True
            ).start()

    def _serve(self, client: socket.socket) -> None:
        with self._guard:
            self._clients.add(client)
        channel = None
        try:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            channel = None if self._is_closed else self._open_channel(self._port)
            if channel is None or not _carry(client, channel):
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # close: a reset
        except OSError:  # the client is gone already
            pass
        finally:
            with self._guard:
                self._clients.discard(client)
            client.close()
            if channel is not None:
                shut(channel)


def _carry(client: socket.socket, channel: paramiko.Channel) -> bool:
    """Copy both ways until both sides have ended; whether they did so cleanly."""
    up = threading.Thread(target=_send_up, args=(client, channel), name="forward: up", daemon=True)
    up.start()
    try:
        while data := channel.recv(_CHUNK_BYTES):
            client.sendall(data)
        is_clean = bool(channel.eof_received)  # a connection that broke ends the stream as well, but without this
        if is_clean:
            client.shutdown(socket.SHUT_WR)
    except LOST:
        is_clean = False
    if not is_clean:
        _wake(client)
        shut(channel)
    up.join()
    return is_clean


def _send_up(client: socket.socket, channel: paramiko.Channel) -> None:
    try:
        while data := client.recv(_CHUNK_BYTES):
            channel.sendall(data)
        channel.shutdown_write()
    except LOST:
        shut(channel)


def _wake(client: socket.socket) -> None:
    """End the wait of whoever reads from the client, without a clean end that the client could see."""
    with contextlib.suppress(OSError):
        client.shutdown(socket.SHUT_RD)
