"""When a host's GPUs count as idle, and what is said of one that does not."""

from __future__ import annotations

import pytest

from launchers.errors import HostDirty, HostLost
from launchers.gpus import Gpu, GpuProcess, GpuReading, IdleRule, holders, read_gpus, wait_until_idle
from tests.fakes import FakeClock

OK = "code gpu 0\n"
NO_APPS = "\ncode app 0"


def rows(*used: str, app: str = "") -> str:
    """The host's answer about GPUs 0, 1, ... with these memory figures."""
    lines = "\n".join(f"gpu {index}, H200, GPU-{index}, {mib}, 143771" for index, mib in enumerate(used))
    return f"{OK}{lines}{NO_APPS}{app}"


def settled(*answers: str | None, gpus: tuple[int, ...] = (), wait_s: float = 60.0) -> GpuReading | None:
    """What comes of a wait during which the host gives these answers; the last one again and again."""
    left = list(answers)
    return wait_until_idle(
        lambda: left.pop(0) if len(left) > 1 else left[0], IdleRule(gpus, 1024, wait_s), "h", FakeClock()
    )


def test_idle_gpus_are_told_with_their_memory() -> None:
    assert settled(rows("4", "1024")) == GpuReading(
        (Gpu(0, "H200", "GPU-0", 4, 143771), Gpu(1, "H200", "GPU-1", 1024, 143771))
    )


def test_a_host_without_nvidia_smi_has_nothing_to_wait_for() -> None:
    assert settled(None) is None


def test_memory_that_is_freed_late_is_waited_for() -> None:
    reading = settled(rows("70000", "4"), rows("9000", "4"), rows("5", "4"))
    assert reading is not None
    assert [gpu.memory_used_mib for gpu in reading.gpus] == [5, 4]


def test_a_first_reading_of_a_foreign_job_is_no_idle_level() -> None:
    busy = rows("70000", app="\napp GPU-0, 4242, python3, 69000\npid 4242 - pid 4242: python3 train.py")
    for _ in range(2):
        with pytest.raises(HostDirty) as dirty:
            settled(busy)
        assert dirty.value.holders == ("GPU 0 (H200), 70000 of 143771 MiB: pid 4242: python3 train.py, 69000 MiB",)
    assert "on h is still held after 60 s (idle is at most gpu_idle_mib = 1024 MiB)" in str(dirty.value)


def test_the_wait_has_an_end() -> None:
    clock = FakeClock()
    with pytest.raises(HostDirty):
        wait_until_idle(lambda: rows("2000"), IdleRule((), 1024, 60.0), "h", clock)
    assert clock.elapsed_s == 60.0


def test_without_a_wait_there_is_one_look() -> None:
    with pytest.raises(HostDirty):
        settled(rows("2000"), rows("4"), wait_s=0)


@pytest.mark.parametrize(
    ("tenant", "words"),
    [
        (
            "pid 7 s-1 pid 7: sglang::scheduler_TP0",
            "pid 7: sglang::scheduler_TP0, 900 MiB, of specsweep's server s-1",
        ),
        (
            "pid 7 ? pid 7: ?",
            "pid 7: python3, a comma, 900 MiB (not visible here: in another container, or just ended)",
        ),
        ("pid 7 - pid 7: train", "pid 7: train, 900 MiB"),
    ],
)
def test_a_holder_is_told_as_far_as_it_is_visible(tenant: str, words: str) -> None:
    look = read_gpus(rows("2000", app=f"\napp GPU-0, 7, python3, a comma, 900\n{tenant}"))
    assert holders(look, 1024) == (f"GPU 0 (H200), 2000 of 143771 MiB: {words}",)


def test_memory_that_nobody_visible_holds_is_said_to_be_just_that() -> None:
    assert "shows no process of it here" in holders(read_gpus(rows("2000")), 1024)[0]


def test_a_process_below_the_allowance_is_let_be_unless_it_is_ours() -> None:
    small = rows("600", app="\napp GPU-0, 7, nvidia-cuda-mps-server, [N/A]\npid 7 {} pid 7: mps")
    assert holders(read_gpus(small.format("-")), 1024) == ()
    assert holders(read_gpus(small.format("s-1")), 1024) != ()


@pytest.mark.parametrize("figure", ["[N/A]", "[Not Supported]", "N/A"])
def test_a_gpu_without_a_memory_figure_is_skipped(figure: str) -> None:
    look = read_gpus(rows(figure, "4", app="\napp GPU-0, 7, python3, 100\npid 7 - pid 7: x"))
    assert (look.problems, [gpu.index for gpu in look.reading.gpus], look.reading.processes) == ((), [1], ())
    assert read_gpus(rows(figure)).problems == ()
    assert read_gpus(rows(figure, "4"), watched=(0,)).problems == ()


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("code gpu 6\ngpu No devices were found", "exit code 6: No devices were found"),
        (
            "code gpu 255\ngpu Failed to initialize NVML: Driver/library version mismatch",
            "Failed to initialize NVML",
        ),
        ("code gpu 0\ngpu Failed to initialize NVML" + NO_APPS, "Failed to initialize NVML"),
        ("code gpu hung", "it gave no answer and was killed"),
        ("code gpu stuck", "does not even end on SIGKILL"),
        (rows("ERR!", "4"), r"GPU 0: memory 'ERR!' of '143771'"),
        (rows("[GPU is lost]"), "GPU is lost"),
        (OK + NO_APPS.strip(), "it lists no GPU"),
        (rows("4") + "\napp garbage", "garbage"),
        (rows("4").replace("code app 0", "code app hung"), "it gave no answer"),
        (rows("4").replace("code app 0", "code app 9"), "exit code 9"),
        ("gpu 0, H200, GPU-0, 4, 143771", "exit code unknown"),
    ],
)
def test_an_nvidia_smi_that_fails_is_told_at_once_in_its_words(answer: str, words: str) -> None:
    with pytest.raises(HostDirty) as dirty:
        settled(answer, rows("4"))
    assert words in str(dirty.value)
    assert str(dirty.value).startswith("nvidia-smi on h: ")


@pytest.mark.parametrize("text", ["", "what?", rows("4") + "\npid x - y", rows("4") + "\npid 7"])
def test_an_answer_that_is_not_the_supervisors_is_a_lost_host(text: str) -> None:
    with pytest.raises(HostLost, match="makes no sense"):
        settled(text)


def test_only_watched_gpus_count() -> None:
    broken = (
        rows("70000", "4", "ERR!").replace("code gpu 0", "code gpu 15").replace("\ncode", "\ngpu 3 is lost\ncode")
    )
    assert settled(broken, gpus=(1,)) == GpuReading((Gpu(1, "H200", "GPU-1", 4, 143771),))
    for watched, words in (((0,), "70000 of"), ((2,), "exit code 15"), ((1, 7), "exit code 15")):
        with pytest.raises(HostDirty, match=words):
            settled(broken, gpus=watched)
    with pytest.raises(HostDirty, match="GPU 7 is not listed"):
        settled(rows("4"), gpus=(0, 7))


def test_a_warning_beside_the_rows_is_no_failure() -> None:
    warned = rows("4").replace("code gpu 0", "code gpu 14") + "\napp No running processes found"
    warned = warned.replace("\ncode app", "\ngpu WARNING: infoROM is corrupted at gpu 0000:3B:00.0\ncode app")
    assert settled(warned) is not None


def test_processes_are_read_by_meaning() -> None:
    app = "\napp GPU-0, 7, [Not Found], [Insufficient Permissions]\napp GPU-0,8,a,b,5 MiB\napp MIG-1, 9, x, 3"
    look = read_gpus(rows("4", app=app))
    assert look.reading.processes == (
        GpuProcess("GPU-0", 7, "[Not Found]", None),
        GpuProcess("GPU-0", 8, "a, b", 5),
    )
