"""Servers that span several hosts: the nodes wait for each other, and all but the first only pretend to serve."""

from __future__ import annotations

import contextlib
import socket
import time
from http.server import ThreadingHTTPServer
from typing import NoReturn

from .launch import Launch
from .squatter import Healthy

_held: list[socket.socket] = []
"""Connections between nodes; they stay open as long as this process."""


def meet(launch: Launch) -> None:
    """Return when all nodes have come; the first one listens at --dist-init-addr."""
    args = launch.args
    if args["nnodes"] < 2:
        return
    host, _, port = args["dist_init_addr"].rpartition(":")
    if args["node_rank"] == 0:
        listener = socket.create_server((host, int(port)))
        _held.append(listener)
        _held.extend(listener.accept()[0] for _ in range(args["nnodes"] - 1))
        return
    while True:  # the alarm ends a wait for a node that never comes
        with contextlib.suppress(OSError):
            _held.append(socket.create_connection((host, int(port)), timeout=5))
            return
        time.sleep(0.1)


def pretend(launch: Launch) -> NoReturn:
    """What a node other than the first serves: an endpoint that says it is well."""
    ThreadingHTTPServer((launch.args["host"], launch.args["port"]), Healthy).serve_forever()
    raise SystemExit(0)
