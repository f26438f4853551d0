"""A stretch of network between a client and a port of this machine, that can fail in every way.

    with Proxy(sshd.port) as proxy:
        shell = SshShell(sshd.target(port=proxy.port))
        proxy.freeze()  # half-open: both ends go on talking, nothing arrives, nobody is told
        proxy.cut()     # every connection is reset, new ones too
        proxy.heal()    # new connections work again; the frozen ones stay frozen

`proxy.delay_s` holds back everything that long, in both directions; `proxy.num_connections` counts.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from typing import Self

from launchers.clock import SystemClock


class Proxy:
    """See the module."""

    def __init__(self, target_port: int) -> None:
        self.delay_s = 0.0
        self.num_connections = 0
        self._target_port = target_port
        self._state = "open"
        self._num_cuts = 0
        self._pairs: list[_Pair] = []
        self._guard = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._acceptor = threading.Thread(target=self._accept, daemon=True)

    def __enter__(self) -> Self:
        self._acceptor.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._acceptor.join()
        self._reset_all()

    def freeze(self) -> None:
        """From now on nothing arrives any more, in either direction, of old and of new connections."""
        with self._guard:
            self._state = "frozen"
            for pair in self._pairs:
                pair.is_frozen = True

    def cut(self) -> None:
        """Reset every connection, and every new one."""
        with self._guard:
            self._state = "cut"
            self._num_cuts += 1
        self._reset_all()

    def heal(self) -> None:
        """Let new connections through."""
        with self._guard:
            self._state = "open"

    def _reset_all(self) -> None:
        with self._guard:
            pairs, self._pairs = self._pairs, []
        for pair in pairs:
            pair.reset()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            with self._guard:
                state, num_cuts = self._state, self._num_cuts
                self.num_connections += 1
            try:
                server = socket.create_connection(("127.0.0.1", self._target_port)) if state != "cut" else client
            except OSError:
                server = client
            if server is client:
                _reset(client)
                continue
            pair = _Pair(self, client, server)
            with self._guard:  # a cut ends every connection that was counted before it, also when it has healed
                is_cut = num_cuts != self._num_cuts
                if not is_cut:
                    pair.is_frozen = self._state == "frozen"
                    self._pairs.append(pair)
                    pair.start()
            if is_cut:
                pair.reset()


class _Pair:
    def __init__(self, proxy: Proxy, client: socket.socket, server: socket.socket) -> None:
        self.is_frozen = False
        self._proxy = proxy
        self._sockets = (client, server)

    def start(self) -> None:
        client, server = self._sockets
        for source, sink in ((client, server), (server, client)):
            with contextlib.suppress(OSError):  # the other end may be gone already
                source.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self._pump, args=(source, sink), daemon=True).start()

    def reset(self) -> None:
        for each in self._sockets:
            _reset(each)

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                SystemClock().sleep(self._proxy.delay_s)
                if not self.is_frozen:
                    sink.sendall(data)
            if not self.is_frozen:
                sink.shutdown(socket.SHUT_WR)


def _reset(side: socket.socket) -> None:
    with contextlib.suppress(OSError):
        side.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        side.shutdown(socket.SHUT_RD)
    side.close()
