"""A bounded program on a host: it ends or is ended, and is gone in any case."""

from __future__ import annotations

import dataclasses
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from launchers.base import LaunchSpec
from launchers.clock import SystemClock
from launchers.errors import HostLost, StartFailed, StopFailed
from launchers.host import HostLauncher
from launchers.replies import MARKER
from sweeper.engines.registry import engine_for
from sweeper.errors import ExitCode, SweepInterrupted
from sweeper.interrupts import Interrupts
from sweeper.probing.timing import run_bounded
from sweeper.serving.launch_trace import ServerRig
from sweeper.spec import LimitsSpec
from tests.launchers.conftest import Bench, is_running, stranger, until
from tests.launchers.shells import kinds, quick_in

pytestmark = pytest.mark.host

RUN = """
import sys
from launchers.base import LaunchSpec
from launchers.clock import SystemClock
from launchers.host import HostLauncher, HostSettings
from launchers.shell import LocalShell
from sweeper.engines.registry import engine_for
from sweeper.serving.launch_trace import ServerRig
from sweeper.probing.timing import run_bounded
from sweeper.spec import LimitsSpec
state_dir, port, nonce, *argv = sys.argv[1:]
launcher = HostLauncher(LocalShell("here"), HostSettings("here", state_dir, int(port), int(port)))
limits = LimitsSpec(start_s=10, stop_grace_s=0.2, identical_failures=3)
rig = ServerRig(engine_for("sglang"), launcher, SystemClock(), limits, "/m")
run_bounded(LaunchSpec(tuple(argv), int(port), nonce), rig, 600)
"""


def rig_of(launcher: HostLauncher, interrupts: Interrupts | None = None) -> ServerRig:
    limits = LimitsSpec(start_s=10, stop_grace_s=0.2, identical_failures=3)
    rig = ServerRig(engine_for("sglang"), launcher, SystemClock(), limits, "/m")
    return rig if interrupts is None else dataclasses.replace(rig, shielded=interrupts.shielded)


def test_a_program_that_ends_tells_what_it_printed(bench: Bench) -> None:
    ending = run_bounded(bench.spec("/bin/sh", "-c", "echo 12 us"), rig_of(bench.launcher), 60.0)
    assert (ending.output, ending.exit_code, ending.failure) == ("12 us\n", 0, "")


def test_a_program_that_dies_tells_its_last_words(bench: Bench) -> None:
    ending = run_bounded(
        bench.spec("/bin/sh", "-c", "echo start; echo no such device >&2; exit 3"), rig_of(bench.launcher), 60.0
    )
    assert ending.failure == "died: no such device (exit code 3)"


@pytest.mark.parametrize("kind", kinds("dash", "ssh", "busybox"), indirect=True)
def test_a_program_that_hangs_is_ended_with_all_its_processes(bench: Bench) -> None:
    ending = run_bounded(bench.stubborn("family"), rig_of(bench.launcher), 1.0)
    assert ending.hung
    assert ending.failure.startswith("hung: it had not ended after ")
    assert len(bench.pids()) == 5
    assert not any(is_running(pid) for _, pid in bench.pids())


@pytest.mark.slow
def test_what_a_program_leaves_behind_when_it_ends_is_ended_too(bench: Bench) -> None:
    ending = run_bounded(bench.spec("/bin/sh", "-c", "sleep 600 & echo $!"), rig_of(bench.launcher), 60.0)
    assert ending.exit_code == 0
    assert not is_running(int(ending.output))


@contextmanager
def signalled_once(bench: Bench, number: int) -> Iterator[None]:
    """This process gets a signal as soon as the program runs."""

    def send() -> None:
        until(lambda: len(bench.pids()) == 5, "the family is there")
        os.kill(os.getpid(), number)

    thread = threading.Thread(target=send)
    thread.start()
    yield
    thread.join()


def test_an_interrupted_probe_leaves_nothing(bench: Bench) -> None:
    interrupts = Interrupts(lambda _: None)
    with interrupts.installed(), signalled_once(bench, signal.SIGTERM), pytest.raises(SweepInterrupted) as caught:
        run_bounded(bench.stubborn("family"), rig_of(bench.launcher, interrupts), 60.0)
    assert caught.value.exit_code is ExitCode.TERMINATED
    assert bench.remains() == []


def test_an_interruption_just_before_the_stop_does_not_prevent_it(bench: Bench) -> None:
    shields: list[int] = []

    @contextmanager
    def shielded() -> Iterator[None]:
        shields.append(1)
        if len(shields) == 2:  # the first one is the start's
            raise SweepInterrupted(ExitCode.TERMINATED)
        yield

    rig = dataclasses.replace(rig_of(bench.launcher), shielded=shielded)
    with pytest.raises(SweepInterrupted):
        run_bounded(bench.stubborn("family"), rig, 1.0)
    assert bench.remains() == []


def test_the_probe_of_a_killed_sweep_is_ended_by_the_next_one(bench: Bench) -> None:
    spec = bench.stubborn("family")
    words = [str(bench.state_dir), str(bench.port), spec.nonce, *spec.argv]
    with stranger((sys.executable, "-c", RUN, *words)) as sweep:
        until(lambda: len(bench.pids()) == 5, "the probe is under way")
        os.kill(sweep.pid, signal.SIGKILL)
        sweep.wait()
    assert all(is_running(pid) for _, pid in bench.pids())
    assert bench.launcher.stop_leftovers(1.0) == (spec.nonce,)
    assert not any(is_running(pid) for _, pid in bench.pids())


def test_a_program_that_is_not_there_is_told(bench: Bench) -> None:
    with pytest.raises(StartFailed):
        run_bounded(bench.spec("/no/such/program"), rig_of(bench.launcher), 60.0)


class Mute(HostLauncher):
    """A host that is lost once something has been started on it, and is never heard of again."""

    def stop(self, handle: object, grace_s: float) -> object:  # type: ignore[override]
        raise HostLost("no answer")


@pytest.mark.slow
def test_a_stop_that_cannot_be_proved_ends_the_sweep(bench: Bench) -> None:
    mute = Mute(bench.launcher.shell, bench.launcher.settings)
    with pytest.raises(StopFailed, match=r"whether .* is gone cannot be told"):
        run_bounded(bench.spec("/bin/sh", "-c", "true"), rig_of(mute), 60.0)


@quick_in("ssh")
def test_its_environment_is_a_servers(bench: Bench) -> None:
    spec = LaunchSpec(
        ("/bin/sh", "-c", f'echo "$NCCL_PROTO ${MARKER}"'), bench.port, bench.token, env={"NCCL_PROTO": "LL"}
    )
    assert run_bounded(spec, rig_of(bench.launcher), 60.0).output == f"LL {bench.token}\n"
