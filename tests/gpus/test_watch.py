"""The watch looks while others measure, and whatever becomes of its looks, the measuring goes on."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest

from launchers.base import ServerHandle
from launchers.errors import HostBusy, HostLost, LauncherError, LinkLost
from launchers.gpu_sample import GpuSample
from sweeper.host_spec import HostSpec
from sweeper.measuring.gpu_watch import GpuWatch
from sweeper.records import GpuWindow
from tests.gpus.samples import BUSY, holder, reasons, sample
from tests.launchers.conftest import until

HANDLE = ServerHandle("s-1", "gpu", 10, 20, "b", 30000, "/log", "s-1")
OURS = holder(10, ours=True)
Answer = GpuSample | LauncherError | None


def host(every_s: float = 0.001) -> HostSpec:
    return HostSpec(name="gpu", state_dir="~/x", port_low=1, port_high=1, gpu_sample_s=every_s)


class Source:
    """Gives the answers, the last one again and again; `calls` counts."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.calls = 0
        self.threads: set[str] = set()

    def gpu_sample(self, handle: ServerHandle) -> GpuSample | None:
        assert handle == HANDLE
        self.threads.add(threading.current_thread().name)
        answer = self.answers[min(self.calls, len(self.answers) - 1)]
        self.calls += 1
        if isinstance(answer, LauncherError):
            raise answer
        return answer


def is_watching() -> bool:
    return "gpu: GPUs" in {thread.name for thread in threading.enumerate()}


def watched(answers: Sequence[Answer], calls: int) -> GpuWatch:
    """A watch that has looked at least so often, at an end."""
    source = Source(*answers)
    with GpuWatch(source, host(), HANDLE) as watch:
        until(lambda: source.calls >= calls, "it has looked")
    return watch


def test_what_was_seen_is_told_afterwards() -> None:
    watch = watched([sample(BUSY), sample(reasons("hw_thermal_slowdown"))], 3)
    window = watch.window()
    assert window.num_samples >= 2
    assert (window.sm_clock_mhz, window.others) == ((1980,), ())
    assert watch.metrics() == {"gpu_sm_clock_mhz": 1980, "gpu_temperature_c": 61, "gpu_power_w": 400}
    assert watch.doubts()[0].startswith("hw_thermal_slowdown: GPU 0 in ")
    assert watch.notes() == ()


def test_an_intruder_is_told() -> None:
    watch = watched([sample(BUSY, holders=[OURS]), sample(BUSY, holders=[OURS, holder(77)])], 3)
    assert watch.window().others == ("GPU 0: pid 77: x, 30000 MiB",)


def test_it_looks_from_one_thread_that_ends_with_the_window() -> None:
    source = Source(sample(BUSY))
    with GpuWatch(source, host(), HANDLE):
        until(lambda: source.calls > 2, "it has looked")
    assert source.threads == {"gpu: GPUs"}
    assert not is_watching()


def test_nothing_is_asked_when_it_is_switched_off() -> None:
    source = Source(sample(BUSY))
    with GpuWatch(source, host(0), HANDLE) as watch:
        pass
    assert (source.calls, watch.window(), watch.doubts(), watch.notes()) == (0, GpuWindow(), (), ())


def test_a_host_without_nvidia_smi_is_asked_once() -> None:
    source = Source(None)
    with GpuWatch(source, host(), HANDLE) as watch:
        until(lambda: source.calls > 0 and not is_watching(), "the thread is gone")
    assert (source.calls, watch.window(), watch.doubts(), watch.notes()) == (1, GpuWindow(), (), ())


def test_a_window_that_ends_at_once_is_empty() -> None:
    source = Source(sample(BUSY))
    with GpuWatch(source, host(60), HANDLE) as watch:
        pass
    assert (source.calls, watch.window(), watch.doubts()) == (0, GpuWindow(), ())


@pytest.mark.parametrize("error", [HostLost("gone"), LinkLost("broke"), HostBusy("taken")])
def test_a_lost_host_fails_nothing(error: LauncherError) -> None:
    watch = watched([error, sample(BUSY)], 3)
    assert watch.window().num_samples >= 1
    assert watch.doubts() == ()
    assert watch.notes() == (f"1 sample of the GPUs failed: {error}",)


def test_a_hang_for_one_sample_is_a_note() -> None:
    watch = watched([sample(BUSY), GpuSample((), problems=("nvidia-smi gave no answer",)), sample(BUSY)], 4)
    assert watch.window().num_samples >= 2
    assert watch.notes() == ("1 sample of the GPUs failed: nvidia-smi gave no answer",)


def test_gpus_that_were_never_seen_are_a_doubt() -> None:
    watch = watched([HostLost("gone")], 2)
    assert watch.window() == GpuWindow()
    assert watch.doubts() == ("what the GPUs did is not known: gone",)


def test_a_driver_that_hangs_for_good_is_not_asked_again() -> None:
    source = Source(GpuSample((), problems=("no answer",), is_stuck=True))
    with GpuWatch(source, host(), HANDLE) as watch:
        until(lambda: source.calls > 0 and not is_watching(), "the thread is gone")
    assert (source.calls, watch.doubts()) == (1, ("what the GPUs did is not known: no answer",))


def test_the_error_of_the_measuring_passes() -> None:
    with pytest.raises(RuntimeError, match="measured badly"), GpuWatch(Source(sample(BUSY)), host(), HANDLE):
        raise RuntimeError("measured badly")


class Slow:
    """Answers when it is let."""

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.go = threading.Event()

    def gpu_sample(self, handle: ServerHandle) -> GpuSample | None:
        self.asked.set()
        self.go.wait(30)
        return sample(BUSY)


def test_a_sample_that_takes_for_ever_is_not_waited_for() -> None:
    slow = Slow()
    with GpuWatch(slow, host(), HANDLE, patience_s=0.05) as watch:
        assert slow.asked.wait(30)
    late = "what the GPUs did is not known: nvidia-smi had not answered when the window ended"
    assert watch.doubts() == (late,)
    slow.go.set()
    until(lambda: not is_watching(), "the thread is gone")
    assert watch.window() == GpuWindow(), "what comes later is not of this window"


def test_a_sample_that_is_being_taken_at_the_end_counts() -> None:
    slow = Slow()
    with GpuWatch(slow, host(), HANDLE) as watch:
        assert slow.asked.wait(30)
        threading.Timer(0.05, slow.go.set).start()
    assert watch.window().num_samples == 1


def test_a_window_shorter_than_the_pace_gets_a_sample() -> None:
    source = Source(sample(BUSY))
    with GpuWatch(source, host(600), HANDLE) as watch:
        until(lambda: source.calls > 0, "it has looked long before ten minutes have passed")
    assert watch.window().num_samples == 1
