"""Somebody else on the GPUs is named when that is certain, and nobody is accused otherwise."""

from __future__ import annotations

from dataclasses import replace

import pytest

from launchers.gpu_sample import GpuHolder
from launchers.gpus import Gpu, GpuProcess, GpuReading
from sweeper.measuring.gpu_others import strangers, unseen_memory
from tests.gpus.samples import BUSY, sample

OURS = GpuHolder(0, 0, "GPU-0", 10, 60000, True, "python3", "pid 10: sglang")
THEIRS = GpuHolder(0, 0, "GPU-0", 77, 30000, False, "train", "pid 77: train")


def told(*holders: GpuHolder, before: GpuReading | None = None) -> tuple[str, ...]:
    """What is said of one sample."""
    return strangers([sample(BUSY, BUSY, holders=holders)], 1024, before)


def reading(*processes: GpuProcess) -> GpuReading:
    return GpuReading((Gpu(0, "H200", "GPU-0", 900, 143771),), processes)


def test_somebody_beside_the_server_is_named() -> None:
    assert told(OURS, THEIRS) == ("GPU 0: pid 77: train, 30000 MiB",)


def test_somebody_who_comes_in_the_middle_is_named_once_with_all_that_he_held() -> None:
    seen = [(OURS,), (OURS, replace(THEIRS, memory_mib=2000)), (OURS, THEIRS), (OURS,)]
    samples = [sample(BUSY, holders=holders) for holders in seen]
    assert strangers(samples, 1024) == ("GPU 0: pid 77: train, 30000 MiB",)


def test_somebody_who_comes_to_another_watched_gpu_is_named() -> None:
    elsewhere = replace(THEIRS, index=1, gpu_uuid="GPU-1")
    samples = [sample(BUSY, BUSY, holders=holders) for holders in ((OURS,), (OURS, elsewhere))]
    assert strangers(samples, 1024) == ("GPU 1: pid 77: train, 30000 MiB",)


def test_another_sweeps_server_is_somebody_else() -> None:
    assert told(OURS, replace(THEIRS, description="pid 77: sglang")) != ()


@pytest.mark.parametrize(
    "holders",
    [
        (OURS,),
        (THEIRS,),  # nobody of ours is recognised: the server may run in a container, and this be it
        (OURS, replace(THEIRS, is_ours=None)),  # not visible here: its number is of another container
        (OURS, replace(THEIRS, memory_mib=1024)),  # no more than an idle GPU may hold
        (OURS, replace(THEIRS, name="nvidia-cuda-mps-server")),
        (OURS, replace(THEIRS, name="[Not Found]", description="pid 77: /usr/bin/nvidia-cuda-mps-server -force")),
        (OURS, replace(THEIRS, index=1, gpu_uuid="GPU-1")),  # was there when the server was first seen: a worker?
        (replace(OURS, is_ours=None), THEIRS),
    ],
    ids=["ours", "alone", "invisible", "small", "mps", "mps by title", "elsewhere before", "ours unseen"],
)
def test_nobody_is_accused_in_doubt(holders: tuple[GpuHolder, ...]) -> None:
    assert told(*holders) == ()


def test_who_was_there_when_the_gpus_were_idle_must_have_grown() -> None:
    there = reading(GpuProcess("GPU-0", 77, "Xorg", 900))
    assert told(OURS, replace(THEIRS, memory_mib=1900), before=there) == ()
    assert told(OURS, replace(THEIRS, memory_mib=1925), before=there) != ()
    untold = reading(GpuProcess("GPU-0", 77, "Xorg", None))
    assert told(OURS, THEIRS, before=untold) != ()


def test_each_host_of_a_group_is_judged_by_itself() -> None:
    assert told(OURS, replace(THEIRS, node=1, gpu_uuid="GPU-9")) == ()
    both = [sample(BUSY, holders=(OURS, replace(OURS, node=1, gpu_uuid="GPU-9")))]
    both += [sample(replace(BUSY, node=1), holders=(OURS, *[replace(it, node=1) for it in (OURS, THEIRS)]))]
    assert strangers(both, 1024) == ("GPU 0 of node 1: pid 77: train, 30000 MiB",)


def test_a_crowd_is_cut_short() -> None:
    assert len(told(OURS, *[replace(THEIRS, pid=pid) for pid in range(100, 200)])) == 20


def memory(*unlisted: float, listed: int | None = 60000, holders: tuple[GpuHolder, ...] = (OURS,)) -> list[str]:
    """What is said of samples in which so much of GPU 0 is held by no listed process."""
    gpus = [
        replace(BUSY, memory_used_mib=None if listed is None else listed + mib, listed_mib=listed)
        for mib in unlisted
    ]
    return list(unseen_memory([sample(gpu, holders=holders) for gpu in gpus], 1024))


def test_memory_that_grows_with_nobody_to_hold_it_is_a_doubt() -> None:
    (line,) = memory(600, 6000, 8000)
    assert line.startswith("5.3 GiB of GPU 0 came into use that no process shown here holds")


@pytest.mark.parametrize(
    "lines",
    [
        memory(600, 600, 600),
        memory(600, 8000, 600),  # once: between the two questions the server took more itself
        memory(600, 1600, 1600),
        memory(8000, 8000, 8000),  # there from the start: a driver's share
        memory(-3000, -2500, -2500),  # memory that is shared is listed twice
        memory(600, 8000, 8000, listed=None),
        memory(600, 8000, 8000, holders=()),  # the server's own may not be listed
        memory(),
    ],
)
def test_memory_is_no_doubt_otherwise(lines: list[str]) -> None:
    assert lines == []
