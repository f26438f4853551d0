"""What the launcher makes of a host's answers, sane or not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from launchers.base import Launcher, LaunchSpec, ServerHandle, StopReport
from launchers.errors import HostDirty, HostLost, LauncherError, LinkLost, StartFailed, StopFailed
from launchers.host import HostLauncher, HostSettings
from tests.launchers.conftest import Bench
from tests.launchers.scripted import Scripted
from tests.launchers.shells import AlteredShell, toothless

SPEC = LaunchSpec(("serve",), 30000, "n0")
HANDLE = ServerHandle("n0", "gpu", 10, 20, "b", 30000, "/log", "n0")
STOPPED = ("stopped", "143 2 150 yes TERM KILL")


def launcher(*answers: tuple[str, str] | LauncherError) -> tuple[Launcher, Scripted]:
    shell = Scripted(*answers)
    return HostLauncher(shell, HostSettings("gpu", "/state")), shell


def test_a_stop_report_is_read_from_the_answer() -> None:
    gpu, _ = launcher(STOPPED)
    assert gpu.stop(HANDLE, 1) == StopReport(143, ("TERM", "KILL"), 2, 1.5, True)


def test_survivors_are_named() -> None:
    gpu, _ = launcher(("survivors", "pid 7: serve\npid 8: \x1b[31m\n"))
    with pytest.raises(StopFailed, match=r"server n0 on gpu survived SIGKILL: pid 7: serve") as failed:
        gpu.stop(HANDLE, 1)
    assert failed.value.survivors[0] == "pid 7: serve"


def test_every_leftover_is_tried_before_survivors_end_the_sweep() -> None:
    rows = "a 10 20 b 30000\nc 11 21 b 30001\n"
    gpu, shell = launcher(("list", rows), ("survivors", "pid 10: x\n"), STOPPED)
    with pytest.raises(StopFailed, match="leftovers on gpu survived"):
        gpu.stop_leftovers(1)
    assert shell.verbs == ["list", "stop", "stop"], "and nothing is deleted"


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (("refused", "serve: no such program"), StartFailed),
        (("unwritable", "state cannot be written: No space left on device"), HostDirty),
        (("started", "nonsense"), HostLost),
        (("status", "running - 0"), HostLost),
        (HostLost("the connection dropped"), HostLost),
    ],
)
def test_a_failed_start_is_followed_by_a_stop(
    answer: tuple[str, str] | LauncherError, error: type[LauncherError]
) -> None:
    gpu, shell = launcher(answer, STOPPED)
    with pytest.raises(error):
        gpu.start(SPEC)
    assert shell.verbs == ["start", "stop"]


@pytest.mark.parametrize(("answer", "error"), [(("dirty", "pid 7: x"), HostDirty), (("used", ""), StartFailed)])
def test_a_start_that_touched_nothing_stops_nothing(answer: tuple[str, str], error: type[LauncherError]) -> None:
    gpu, shell = launcher(answer)
    with pytest.raises(error):
        gpu.start(SPEC)
    assert shell.verbs == ["start"]


def test_a_failed_start_that_cannot_be_ended_ends_the_sweep() -> None:
    gpu, _ = launcher(("refused", "too slow"), ("survivors", "pid 7: serve\n"))
    with pytest.raises(StopFailed):
        gpu.start(SPEC)


def test_a_failed_start_says_when_its_end_is_unknown() -> None:
    gpu, _ = launcher(("refused", "too slow"), HostLost("gone"))
    with pytest.raises(StartFailed, match="too slow") as failed:
        gpu.start(SPEC)
    assert failed.value.__notes__ == ["whether a process of n0 still runs is unknown: gone"]


@pytest.mark.parametrize(
    "answer",
    [("status", "maybe - 0"), ("status", "exited x 0"), ("status", ""), ("owns", "yes"), ("unknown", "why")],
)
def test_an_answer_that_is_not_yes_or_no_is_a_lost_host(answer: tuple[str, str]) -> None:
    gpu, _ = launcher(answer)
    with pytest.raises(HostLost):
        gpu.is_alive(HANDLE)


@pytest.mark.parametrize("rows", ["a 10 20 b", "a 10 20 b 30000 more", "what?"])
def test_a_list_that_makes_no_sense_stops_nothing(rows: str) -> None:
    gpu, shell = launcher(("list", rows))
    with pytest.raises(HostLost, match="makes no sense"):
        gpu.stop_leftovers(1)
    assert shell.verbs == ["list"]


@pytest.mark.parametrize("server_id", ["", "..", "../../etc", "a b", "-rf"])
def test_a_handle_that_names_no_server_is_refused(server_id: str) -> None:
    gpu, shell = launcher()
    handle = ServerHandle(server_id, "gpu", 10, 20, "b", 30000, "/log", "n0")
    for call in (gpu.is_alive, gpu.logs, gpu.owns_port, lambda this: gpu.stop(this, 1)):
        with pytest.raises(ValueError, match="no server id"):
            call(handle)
    assert shell.verbs == []


@pytest.mark.parametrize(
    ("ask", "answer"),
    [
        (lambda gpu: gpu.is_alive(HANDLE), ("status", "running - 0")),
        (lambda gpu: gpu.free_port(), ("port", "30000")),
        (lambda gpu: gpu.logs(HANDLE), ("logs", "")),
        (lambda gpu: gpu.stop(HANDLE, 1), STOPPED),
        (lambda gpu: gpu.settle(), ("nosmi", "")),
    ],
)
def test_a_question_is_asked_again_once_after_the_link_broke(
    ask: Callable[[Launcher], object], answer: tuple[str, str]
) -> None:
    gpu, shell = launcher(LinkLost("cut"), answer)
    ask(gpu)
    assert len(shell.verbs) == 2
    gpu, shell = launcher(LinkLost("cut"), LinkLost("cut again"))
    with pytest.raises(LinkLost, match="cut again"):
        ask(gpu)
    assert len(shell.verbs) == 2


def test_a_start_is_never_repeated_but_ended_after_the_link_broke() -> None:
    gpu, shell = launcher(LinkLost("cut"), LinkLost("cut again"), STOPPED)
    with pytest.raises(LinkLost, match=r"^cut$"):
        gpu.start(SPEC)
    assert shell.verbs == ["start", "stop", "stop"]


@pytest.mark.host
def test_what_survives_sigkill_is_reported_by_name(bench: Bench) -> None:
    handle = bench.start_stubborn("plain")
    powerless = HostLauncher(AlteredShell(bench.launcher.shell, toothless), bench.launcher.settings)
    with pytest.raises(StopFailed, match="survived SIGKILL") as failed:
        powerless.stop(handle, grace_s=0.1)
    assert any(f"pid {bench.pid('plain')}: " in name and "stubborn.py" in name for name in failed.value.survivors)
    bench.launcher.stop(handle, grace_s=5)
