"""Memory that ran out: whose it was, and which way to turn the knob."""

from __future__ import annotations

import pytest

from sweeper.engines.sglang.memory import foreign_gib
from tests.engines.test_sglang_diagnosis import DIRTY, LOADING, OOM, SERVING, START, diagnose, died

CAPTURING = f"{LOADING}[2026-11-29 18:26:56] Capture cuda graph begin. This can take up to several minutes.\n"

TORCH_OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.11 "
    "GiB of which 1.20 GiB is free. {processes}Of the allocated memory {own} GiB is allocated by PyTorch, and "
    "0.30 GiB is reserved by PyTorch but unallocated."
)
HERE = "Including non-PyTorch memory, this process has {} GiB memory in use. "


@pytest.mark.parametrize(
    ("before", "said"),
    [
        (LOADING, "while loading weights: use more GPUs"),
        (CAPTURING, "while capturing CUDA graphs: lower mem_fraction_static"),
        (CAPTURING + SERVING, "while serving: lower mem_fraction_static"),
    ],
)
def test_memory_that_ran_out_is_told_with_its_phase(before: str, said: str) -> None:
    own = TORCH_OOM.format(processes=HERE.format(77.0), own=75.0)
    found = diagnose(died(own, before=START + before))
    assert found.kind is OOM
    assert said in found.message


@pytest.mark.parametrize(
    ("processes", "own", "foreign"),
    [
        (HERE.format(77.0), 75.0, 0),
        ("Process 4711 has 60.00 GiB memory in use. " + HERE.format(17.0), 15.0, 60),
        ("Process 4711 has 512.00 MiB memory in use. " + HERE.format(77.0), 75.0, 0.5),
        ("Process 4711 has 77.00 GiB memory in use. ", 75.0, 0),  # ours, as a container sees it
        ("Process 4711 has 77.00 GiB memory in use. ", 1.0, 67.7),  # not ours: we hold 1.3 GiB
        ("Process 4711 has 17.00 GiB memory in use. Process 4712 has 60.00 GiB memory in use. ", 15.0, 53.7),
    ],
)
def test_memory_of_other_processes_is_told_from_our_own(processes: str, own: float, foreign: float) -> None:
    assert foreign_gib(TORCH_OOM.format(processes=processes, own=own)) == pytest.approx(foreign)


def test_a_gpu_that_others_filled_is_not_the_configurations_fault() -> None:
    others = TORCH_OOM.format(processes="Process 4711 has 60.00 GiB memory in use. " + HERE.format(17.0), own=15.0)
    found = diagnose(died(others))
    assert found.kind is DIRTY
    assert "other processes held 60.0 GiB" in found.message


def test_memory_of_a_process_that_may_be_its_own_is_not_taken_for_somebody_elses() -> None:
    assert foreign_gib("CUDA out of memory. Process 1234 has 93.0 GiB memory in use.") == 0.0


def test_a_server_that_had_nothing_yet_owns_nothing_of_what_others_held() -> None:
    nothing = "Of the allocated memory 0 bytes is allocated by PyTorch, and 0 bytes is reserved by PyTorch"
    assert foreign_gib(f"CUDA out of memory. Process 1234 has 90.00 GiB memory in use. {nothing}") > 80.0


def test_a_gpu_that_was_full_before_the_first_weights_is_not_the_configurations_fault() -> None:
    log = START + LOADING.replace("78.00", "20.00")
    found = diagnose(died(TORCH_OOM.format(processes="", own=18.0), before=log))
    assert (found.kind, "only 20.0 GiB of 79.1 GiB" in found.message) == (DIRTY, True)


def test_memory_that_the_target_took_is_not_taken_for_somebody_elses() -> None:
    # The beginning is missing, so that the draft's line looks like the first.
    log = LOADING.replace("78.00", "20.00")
    assert diagnose(died(TORCH_OOM.format(processes="", own=18.0), before=log)).kind is OOM
