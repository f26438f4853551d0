"""The bare way to one sshd: a socket of our own, a channel through a jump host, or a ProxyCommand."""

from __future__ import annotations

import contextlib
import shlex
import socket
from typing import Protocol

import paramiko

from launchers.errors import HostLost
from launchers.ssh_config import Hop


class _Stream(Protocol):
    def recv(self, size: int, /) -> bytes: ...
    def send(self, data: bytes, /) -> int: ...
    def settimeout(self, timeout: float, /) -> None: ...
    def close(self) -> object: ...


class Pulse:
    """A stream as paramiko wants its sockets; counts the bytes that arrive."""

    def __init__(self, stream: _Stream) -> None:
        self._stream = stream
        self._closed = False  # paramiko reads this name
        self.num_bytes = 0

    def recv(self, size: int) -> bytes:
        """As a socket's."""
        data = self._stream.recv(size)
        self.num_bytes += len(data)
        return data

    def send(self, data: bytes) -> int:
        """As a socket's."""
        return self._stream.send(data)

    def settimeout(self, timeout: float) -> None:
        """As a socket's."""
        self._stream.settimeout(timeout)

    def close(self) -> None:
        """Close it; any number of times."""
        if not self._closed:
            self._closed = True
            self._end()

    def _end(self) -> None:
        with contextlib.suppress(paramiko.SSHException, EOFError, OSError):  # of a jump host that is gone
            self._stream.close()


class CommandPulse(Pulse):
    """A ProxyCommand. Two things that paramiko's class does not: it notices its end, and it is waited for."""

    def __init__(self, command: paramiko.ProxyCommand) -> None:
        super().__init__(command)
        self._process = command.process

    def recv(self, size: int) -> bytes:
        """As a socket's: b"" once the command has ended."""
        return super().recv(size) if self._process.poll() is None else b""

    def _end(self) -> None:
        self._process.kill()  # it is a pipe: there is nothing that it should do first
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()


def reach(hop: Hop, before: paramiko.Transport | None, timeout_s: float) -> Pulse:
    """A bare connection to the hop's sshd, from the jump host `before` if any, for the caller to close.

    Raises HostLost.
    """
    try:
        if before is not None:
            where, origin = (hop.host, hop.port), ("127.0.0.1", 0)
            return Pulse(before.open_channel("direct-tcpip", where, origin, timeout=timeout_s))
        if hop.proxy_command:
            return CommandPulse(paramiko.ProxyCommand(shlex.join(["/bin/sh", "-c", f"exec {hop.proxy_command}"])))
        return Pulse(_connect(hop.host, hop.port, timeout_s))
    except socket.gaierror as error:
        raise HostLost(
            f"{hop}: the name {hop.host!r} is not known ({error.strerror}): is it spelt right?",
        ) from error
    except ConnectionRefusedError as error:
        raise HostLost(f"{hop}: the connection was refused: does sshd run there, and on that port?") from error
    except TimeoutError as error:
        raise HostLost(f"{hop}: no answer within {timeout_s:g} s: is it up, is a firewall between?") from error
    except paramiko.ChannelException as error:
        raise HostLost(f"{hop}: the jump host does not connect to it ({error.text or error})") from error
    except (paramiko.SSHException, EOFError, OSError) as error:
        raise HostLost(f"{hop}: it cannot be reached: {error or type(error).__name__}") from error


def _connect(host: str, port: int, timeout_s: float) -> socket.socket:
    """A socket on which the kernel, too, notices a dead link: after 14 s (measured on a half-open one)."""
    connection = socket.create_connection((host, port), timeout_s)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (
        (socket.TCP_KEEPIDLE, 5),
        (socket.TCP_KEEPINTVL, 3),
        (socket.TCP_KEEPCNT, 3),
        (socket.TCP_USER_TIMEOUT, 12_000),
        (socket.TCP_NODELAY, 1),
    ):
        connection.setsockopt(socket.IPPROTO_TCP, option, value)
    return connection
