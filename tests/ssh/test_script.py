"""What a script answers in the very moment in which it ends is not lost."""

from __future__ import annotations

import os
import threading
from typing import cast

import paramiko
import pytest

from launchers.clock import SystemClock
from launchers.ssh_link import open_link
from launchers.ssh_script import LOST, exchange, start_shell
from tests.launchers.conftest import until
from tests.ssh.proxy import Proxy
from tests.ssh.sshd import Sshd

pytestmark = pytest.mark.host


class Sudden:
    """A channel whose whole answer and end arrive while its outputs are being looked at for the second time."""

    closed = False

    def __init__(self) -> None:
        self.read_end, self.write_end = os.pipe()
        self.eof_received = False
        self.unread = b""
        self.num_looks = 0
        self.status_event = threading.Event()

    def fileno(self) -> int:
        return self.read_end

    def send_ready(self) -> bool:
        return True

    def send(self, data: bytes) -> int:
        return len(data)

    def shutdown_write(self) -> None:
        os.write(self.write_end, b"x")

    def recv_ready(self) -> bool:
        return bool(self.unread)

    def recv(self, count: int) -> bytes:
        found, self.unread = self.unread, b""
        return found

    def recv_stderr_ready(self) -> bool:
        self.num_looks += 1
        if self.num_looks == 2:
            self.unread, self.eof_received = b"the whole answer", True
            self.status_event.set()
        return False

    def exit_status_ready(self) -> bool:
        return self.eof_received

    def recv_exit_status(self) -> int:
        return 0


def test_an_answer_that_arrives_between_a_look_and_the_question_whether_it_ended_is_read() -> None:
    channel = Sudden()
    result = exchange(cast(paramiko.Channel, channel), b"script", 5.0, SystemClock())
    os.close(channel.read_end)
    os.close(channel.write_end)
    assert result is not None
    assert (result.exit_code, result.stdout) == (0, b"the whole answer")


def test_a_connection_that_breaks_in_the_moment_before_a_request_is_not_waited_for(
    sshd: Sshd, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = open_link(sshd.target(port=proxy.port), "gpu")
    channel = link.transport.open_session(timeout=20)
    prepare = channel._event_pending  # type: ignore[attr-defined]

    def break_first() -> None:
        proxy.cut()
        until(lambda: channel.closed and not link.is_alive(), "paramiko has noticed")
        prepare()

    monkeypatch.setattr(channel, "_event_pending", break_first)
    with pytest.raises(LOST):
        start_shell(channel, "specsweep-test", timeout_s=1.0)
    link.close()
