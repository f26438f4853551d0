"""Real clients on this machine, against a server that is exact: what comes back, and that nothing stays behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from launchers.base import CommandResult
from launchers.errors import HostLost
from launchers.shell import LocalShell
from sweeper.engines.base import HttpRequest
from sweeper.engines.sglang.answers import parse_generate
from sweeper.errors import FailureKind, TrialError
from sweeper.measuring.host_load import PIECES_AT_ONCE, Arrivals, HostLoad, python_of, send_all_from
from sweeper.measuring.load_wire import PIECE_CHARS
from tests.host_load.conftest import generate, going, lines, load_of, python
from tests.host_load.streaming import Streaming
from tests.launchers.conftest import until, with_token

pytestmark = pytest.mark.host


def sent(load: HostLoad, *requests: HttpRequest, at_once: int = 8, timeout_s: float = 30.0) -> list[str]:
    """What became of each request, in words."""
    report = load.send_all(requests, Arrivals(at_once), timeout_s)
    return [e.error or b"|".join(line for _, line in e.response().lines).decode() for e in report.exchanges]


def test_every_stream_comes_back_as_it_was_sent(load: HostLoad, server: Streaming) -> None:
    requests = [generate(20 + number) for number in range(64)]
    report = load.send_all(requests, Arrivals(64), 30.0)
    answers = [parse_generate(exchange.response()) for exchange in report.exchanges]
    assert [answer.num_output_tokens for answer in answers] == [20 + number for number in range(64)]
    assert server.peak > 32
    for exchange in report.exchanges:
        times = [at_ms for at_ms, _ in exchange.response().lines]
        assert times == sorted(times)
        assert 0 < times[-1] <= exchange.e2e_latency_ms
        assert exchange.sent_ms + exchange.e2e_latency_ms <= report.wall_s * 1000
    assert 0 < report.cpu_s <= report.wall_s * 1.1


def test_no_more_requests_than_asked_are_under_way_at_once(load: HostLoad, server: Streaming) -> None:
    assert len(sent(load, *[generate(5)] * 20, at_once=3)) == 20
    assert server.peak <= 3


def test_requests_arrive_when_they_are_due(load: HostLoad, server: Streaming) -> None:
    offsets = (0.0, 0.05, 0.05, 0.3)
    report = load.send_all([generate(1)] * 4, Arrivals(4, offsets), 30.0)
    for offset_s, exchange in zip(offsets, report.exchanges, strict=True):
        assert exchange.sent_ms == pytest.approx(offset_s * 1000 + exchange.late_ms, abs=0.01)
        assert exchange.late_ms >= 0
    gaps = [later - earlier for earlier, later in pairwise(server.arrived_s)]
    assert gaps[2] > 0.1


def test_an_arrival_waits_for_a_place_and_is_late(load: HostLoad) -> None:
    report = load.send_all([lines("a"), lines("b")], Arrivals(1, (0.0, 0.0)), 30.0)
    first, second = report.exchanges
    assert second.sent_ms >= first.sent_ms + first.e2e_latency_ms - 0.01
    assert second.late_ms == pytest.approx(second.sent_ms, abs=0.01)


def test_bodies_of_every_framing_and_any_text_arrive_whole(load: HostLoad) -> None:
    hostile = 'data: "quoted \\" $(x) `y` ü 漢 \u2028 \x07'
    assert sent(load, lines("data: 1", hostile, ""), going("/length"), going("/close")) == [
        f"data: 1|{hostile}",
        "one|two",
        "one|two",
    ]


def test_what_fails_is_said_and_the_others_go_on(load: HostLoad) -> None:
    said = sent(load, going("/503"), going("/garbage"), going("/half"), lines("fine"))
    assert said[0] == "status 503: 'no slot\\nis free' (0 lines had arrived)"
    assert said[1].startswith("the answer is not HTTP/1.1: b'220 mail")
    assert said[2] == "the server closed the connection before the end of its answer (1 lines had arrived)"
    assert said[3] == "fine"


def test_a_server_that_dies_in_the_middle_fails_every_request(load: HostLoad) -> None:
    said = sent(load, *[going("/hang")] * 3, going("/die"), timeout_s=25.0)
    assert all("reset" in error or "closed the connection" in error for error in said)


def test_nobody_listening_is_one_clear_error(load: HostLoad, server: Streaming) -> None:
    server.stop()
    assert sent(load, lines("a"), lines("b")) == ["Connection refused (0 lines had arrived)"] * 2


def test_after_a_request_that_hangs_no_other_is_begun(load: HostLoad, server: Streaming) -> None:
    report = load.send_all([going("/hang"), *[lines("x")] * 3], Arrivals(1), 0.5)
    assert report.exchanges[0].error == "no complete answer within 0.5 s (1 lines had arrived)"
    assert [exchange.error for exchange in report.exchanges[1:]] == ["not sent"] * 3
    assert all(exchange.hung for exchange in report.exchanges)
    assert len(server.posts) == 1
    until(lambda: server.num_broken == 1, "the connection was closed")


def test_a_job_longer_than_a_command_line_waits_in_a_file(
    load: HostLoad, server: Streaming, state_dir: str
) -> None:
    noise = os.urandom(PIECES_AT_ONCE * PIECE_CHARS).hex()
    assert sent(load, HttpRequest("POST", "/lines", {"lines": ["fine"], "noise": noise})) == ["fine"]
    assert server.posts[0][1]["noise"] == noise
    assert list(Path(state_dir).rglob("load.job")) == []


def test_an_end_on_the_way_leaves_no_file(load: HostLoad, state_dir: str) -> None:
    noise = os.urandom(PIECES_AT_ONCE * PIECE_CHARS).hex()
    broken = replace(load, python=("no-such-python",))
    with pytest.raises(TrialError, match="no-such-python"):
        sent(broken, HttpRequest("POST", "/lines", {"noise": noise}))
    assert list(Path(state_dir).rglob("load.job")) == []


def test_a_host_without_python_is_told_with_its_setting(load: HostLoad) -> None:
    with pytest.raises(TrialError) as failed:
        sent(replace(load, python=("no-such-python",)), lines("a"))
    assert failed.value.kind is FailureKind.BENCHMARK_FAILED
    assert "engine.command" in str(failed.value)
    assert "no-such-python" in str(failed.value)


def test_a_command_that_drops_the_environment_is_told(load: HostLoad) -> None:
    with pytest.raises(TrialError, match="pass its environment on"):
        sent(replace(load, python=("env", "-i", sys.executable)), lines("a"))


def test_answers_that_are_too_much_end_the_load(load: HostLoad) -> None:
    with pytest.raises(TrialError, match="more than 5500000 bytes") as failed:
        sent(load, *[going("/noise")] * 8)
    assert failed.value.kind is FailureKind.BENCHMARK_FAILED


def test_chatter_of_the_host_is_no_answer(load: HostLoad, token: str) -> None:
    chatty = ("sh", "-c", 'echo hello; echo hello >&2; "$@"; echo bye', "sh", *python(token))
    assert sent(replace(load, python=chatty), lines("a")) == ["a"]


def test_a_lost_host_is_no_fault_of_the_benchmark(state_dir: str) -> None:
    class Lost(LocalShell):
        def run(self, script: str, timeout_s: float) -> CommandResult:
            raise HostLost("gone")

    load = load_of(Lost("here"), ("python3",), 1, state_dir)
    for text in ("a", os.urandom(PIECES_AT_ONCE * PIECE_CHARS).hex()):
        with pytest.raises(TrialError, match="the load on here: gone") as failed:
            sent(load, lines(text))
        assert failed.value.kind is FailureKind.HOST_LOST


def test_an_interrupted_wait_ends_the_client(load: HostLoad, server: Streaming, token: str) -> None:
    class Interrupted(BaseException):
        pass

    def interrupt(*_: object) -> None:
        raise Interrupted

    def when_it_hangs() -> None:
        until(lambda: server.num_open == 1, "the request is under way")
        os.kill(os.getpid(), signal.SIGUSR1)

    previous = signal.signal(signal.SIGUSR1, interrupt)
    thread = threading.Thread(target=when_it_hangs)
    thread.start()
    try:
        with pytest.raises(Interrupted):
            sent(load, going("/hang"), timeout_s=60.0)
    finally:
        thread.join()
        signal.signal(signal.SIGUSR1, previous)
    until(lambda: with_token(token) == [], "the client is gone")


def test_the_client_ends_when_nobody_waits_for_it_any_more(server: Streaming, token: str, state_dir: str) -> None:
    class Recording(LocalShell):
        """Keeps the script instead of running it."""

        script = ""

        def run(self, script: str, timeout_s: float) -> CommandResult:
            self.script = script
            return CommandResult(1, b"", b"")

    shell = Recording("here")
    with pytest.raises(TrialError):
        sent(load_of(shell, python(token), server.port, state_dir), going("/hang"), timeout_s=600.0)
    pipe = subprocess.PIPE
    with subprocess.Popen(["/bin/sh", "-s"], stdin=pipe, stdout=pipe, stderr=pipe) as process:
        assert process.stdin is not None
        process.stdin.write(shell.script.encode())
        process.stdin.close()
        until(lambda: server.num_open == 1, "the request is under way")
        process.kill()  # as `kill -9` of specsweep would: only its ends of the pipes are closed
    until(lambda: with_token(token) == [], "the client has ended by itself")
    until(lambda: server.num_broken == 1, "and closed its connections")


def test_a_person_is_told_what_is_being_sent(load: HostLoad) -> None:
    phases: list[str] = []
    send_all = send_all_from(load, phases.append)
    send_all([lines("a")], Arrivals(4), 10.0)
    send_all([lines("a")], Arrivals(4, (0.0,)), 10.0)
    assert phases == ["measuring: 1 requests, 4 at once", "measuring: 1 requests, 1 arrivals"]


@pytest.mark.parametrize(
    ("command", "python"),
    [
        (("/opt/venv/bin/python3.12", "-m", "sglang.launch_server"), ("/opt/venv/bin/python3.12",)),
        (("numactl", "-N", "0", "python", "-m", "x"), ("numactl", "-N", "0", "python")),
        (("/usr/bin/llama-server",), ("python3",)),
        ((), ("python3",)),
    ],
)
def test_the_server_s_own_python_runs_the_client(command: tuple[str, ...], python: tuple[str, ...]) -> None:
    assert python_of(command) == python
