"""What samples add up to, and when they are a reason for doubt."""

from __future__ import annotations

from dataclasses import replace

import pytest

from launchers.gpu_sample import GpuSample, GpuState
from sweeper.measuring.gpu_window import clock_doubts, clock_notes, gpu_metrics, gpu_window
from sweeper.records import GpuWindow
from tests.gpus.samples import BUSY, IDLE, UNTOLD, clock, reasons, sample


def doubts(*samples: GpuSample) -> list[str]:
    return list(clock_doubts(samples))


def test_no_samples_give_nothing() -> None:
    assert gpu_window(()) == GpuWindow()
    assert (gpu_metrics(()), doubts(), list(clock_notes(()))) == ({}, [], [])


def test_means_and_extremes_are_taken_per_gpu() -> None:
    hot = replace(clock(1700), temperature_c=71, power_w=600)
    window = gpu_window([sample(BUSY, BUSY), sample(BUSY, hot)])
    assert window == GpuWindow(
        num_samples=2,
        gpus=(0, 1),
        sm_clock_mhz=(1980, 1840),
        lowest_sm_clock_mhz=(1980, 1700),
        temperature_c=(61, 66),
        highest_temperature_c=(61, 71),
        power_w=(400, 500),
    )
    assert gpu_metrics([sample(BUSY, BUSY), sample(BUSY, hot)]) == {
        "gpu_sm_clock_mhz": 1910,
        "gpu_temperature_c": 71,
        "gpu_power_w": 900,
    }


def test_the_clock_of_a_pause_is_not_that_of_the_work() -> None:
    assert gpu_window([sample(BUSY), sample(IDLE)]).lowest_sm_clock_mhz == (1980,)
    assert gpu_window([sample(IDLE)]).sm_clock_mhz == (345,)


def test_a_gpu_that_the_server_does_not_use_does_not_count_for_the_mean_clock() -> None:
    assert gpu_metrics([sample(BUSY, IDLE)])["gpu_sm_clock_mhz"] == 1980


def test_what_one_gpu_does_not_tell_is_left_out() -> None:
    window = gpu_window([sample(BUSY, replace(BUSY, power_w=None))])
    assert (window.power_w, window.sm_clock_mhz) == ((), (1980, 1980))
    assert gpu_metrics([sample(UNTOLD)]) == {}
    assert gpu_window([sample(UNTOLD)]) == GpuWindow(num_samples=1, gpus=(0,))


def test_a_figure_that_was_missing_once_is_still_averaged() -> None:
    assert gpu_window([sample(BUSY), sample(replace(BUSY, power_w=None))]).power_w == (400,)


def test_the_gpus_of_a_group_stand_host_by_host() -> None:
    two = GpuSample((replace(BUSY, node=1), BUSY, replace(BUSY, node=1, index=1)))
    assert gpu_window([two]).gpus == (0, 0, 1)


def test_shares_are_of_the_samples_that_tell() -> None:
    seen = [sample(reasons("hw_thermal_slowdown"), BUSY), sample(BUSY, BUSY), sample(UNTOLD, UNTOLD)]
    assert gpu_window(seen).throttled == {"hw_thermal_slowdown": 0.5}


def test_an_idle_gpu_is_not_slowed_down() -> None:
    assert gpu_window([sample(replace(IDLE, reasons=("gpu_idle", "hw_slowdown")), BUSY)]).throttled == {}


def test_a_power_cap_stands_among_the_reasons() -> None:
    assert gpu_window([sample(reasons("sw_power_cap")), sample(BUSY)]).throttled == {"sw_power_cap": 0.5}


@pytest.mark.parametrize("word", ["hw_thermal_slowdown", "hw_power_brake_slowdown", "sw_thermal_slowdown"])
def test_a_slowdown_is_a_doubt_with_its_reason_and_gpu(word: str) -> None:
    slow = sample(BUSY, reasons("sw_power_cap", word))
    assert doubts(slow, *[sample(BUSY, BUSY)] * 3) == [f"{word}: GPU 1 in 25% of 4 samples"]


def test_a_slowdown_without_a_cause_counts_when_it_comes_twice() -> None:
    slow = sample(reasons("hw_slowdown"))
    assert doubts(slow, sample(BUSY)) == []
    assert doubts(slow, slow) == ["hw_slowdown: GPU 0 in 100% of 2 samples"]


def test_a_slowdown_with_a_cause_is_told_once() -> None:
    both = sample(reasons("hw_slowdown", "hw_thermal_slowdown"))
    assert doubts(both, both) == ["hw_thermal_slowdown: GPU 0 in 100% of 2 samples"]


@pytest.mark.parametrize(
    "gpu",
    [
        BUSY,
        IDLE,
        UNTOLD,
        reasons("sw_power_cap"),
        reasons("applications_clocks_setting"),
        reasons("sync_boost", "display_clock_setting"),
        reasons("board_limit"),
        reasons("0x800"),
        replace(IDLE, reasons=("gpu_idle", "hw_slowdown")),
        replace(reasons("sw_thermal_slowdown"), utilization_pct=0),
    ],
)
def test_what_is_normal_is_no_doubt(gpu: GpuState) -> None:
    assert doubts(*[sample(gpu, BUSY)] * 20) == []


def test_a_rare_slowdown_is_no_doubt() -> None:
    assert doubts(sample(reasons("sw_thermal_slowdown")), *[sample(BUSY)] * 11) == []


def test_a_gpu_far_behind_the_others_is_a_doubt() -> None:
    seen = [sample(BUSY, BUSY, clock(1200), BUSY)] * 3
    assert doubts(*seen) == ["GPU 2 ran at 61% of its highest clock, the others at 100%"]
    assert doubts(*seen[:2]) == [], "too few to tell"


@pytest.mark.parametrize(
    "other",
    [
        clock(1800),  # chips differ by so much at their power limit
        IDLE,  # not used by the server
        replace(clock(900), utilization_pct=20),  # little to do
        replace(clock(900), utilization_pct=None),  # a MIG slice does not tell
        replace(clock(1410), max_sm_clock_mhz=1410),  # another model
        replace(clock(900), max_sm_clock_mhz=None),
    ],
)
def test_other_clocks_may_be_lower_for_good_reasons(other: GpuState) -> None:
    assert doubts(*[sample(BUSY, BUSY, other)] * 10) == []


def test_a_power_cap_all_the_time_is_a_note() -> None:
    capped = [sample(reasons("sw_power_cap"))] * 10
    assert list(clock_notes(capped)) == ["the GPUs ran at their power limit (sw_power_cap in 100% of 10 samples)"]
    assert list(clock_notes([*capped, *[sample(BUSY)] * 5])) == []


def test_not_seen_is_not_called_not_slowed() -> None:
    assert list(clock_notes([sample(UNTOLD)])) == [
        "the driver does not tell what sets the clocks: whether the GPUs were slowed down is not known"
    ]


def test_a_gpu_of_a_group_is_named_with_its_host() -> None:
    slow = GpuSample((BUSY, replace(reasons("sw_thermal_slowdown"), node=1, index=3)))
    assert doubts(slow) == ["sw_thermal_slowdown: GPU 3 of node 1 in 100% of 1 samples"]
