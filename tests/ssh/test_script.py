"""What a script answers in the very moment in which it ends is not lost."""

from __future__ import annotations

import os
import threading
from typing import cast

import paramiko
import pytest

from launchers.clock import SystemClock
from launchers.ssh_script import exchange

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
