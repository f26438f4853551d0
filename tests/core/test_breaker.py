"""What ends a sweep before it burns a night, or a host."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeper.errors import SweepAborted
from sweeper.nights.breaker import Breaker
from sweeper.nights.health import FATAL_XIDS, Health, new_gpu_errors, parse_health
from sweeper.records import GpuWindow
from sweeper.spec import LimitsSpec
from tests.fakes import launch

LIMITS = LimitsSpec(start_s=10, stop_grace_s=1, identical_failures=3, gpu_temperature_c=85, free_gib=2)
OFF_THE_BUS = (
    "[ 812.1] NVRM: Xid (PCI:0000:41:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
)
BAD_KERNEL = "[ 811.1] NVRM: Xid (PCI:0000:41:00): 31, pid=4242, name=python3, Ch 00000008, MMU Fault"


def test_what_the_host_prints_is_read_and_the_rest_is_left_out() -> None:
    gpus = "ecc 0, 0\necc 1, [N/A]\necc 2, 3\n"
    text = f"banner\ndisk 10485760\n{gpus}xid {BAD_KERNEL}\x1b[31m\nxid nonsense\ndisk x\n"
    assert parse_health(text) == Health(ecc={0: 0, 2: 3}, xids=(BAD_KERNEL,), host_free_gib=10.0)


@given(st.text(max_size=300))
def test_nothing_that_a_host_prints_is_an_error(text: str) -> None:
    for start in ("", "disk ", "ecc ", "xid NVRM: Xid (x): 79 "):
        parse_health(start + text)


def test_old_errors_are_not_held_against_the_host() -> None:
    seen = Health(ecc={0: 3}, xids=(OFF_THE_BUS,))
    assert new_gpu_errors(seen, seen) == []
    assert new_gpu_errors(Health(), Health(ecc={0: 3})) == [], "a count that was not told before"
    assert new_gpu_errors(Health(xids=(OFF_THE_BUS,)), Health(xids=(OFF_THE_BUS,) * 2)) == [OFF_THE_BUS]


def test_new_hardware_errors_stop_the_sweep_and_a_bad_kernel_does_not() -> None:
    breaker = Breaker(LIMITS, Health(ecc={0: 3}))
    breaker.check_host(Health(ecc={0: 3}, xids=(BAD_KERNEL,)), "gpu1")
    with pytest.raises(SweepAborted, match=r"a GPU of host gpu1 has failed[\s\S]*GPU 0: 2 new uncorrected ECC"):
        breaker.check_host(Health(ecc={0: 5}), "gpu1")
    with pytest.raises(SweepAborted, match=r"\| .*fallen off the bus[\s\S]*run the same command again"):
        breaker.check_host(Health(xids=(OFF_THE_BUS,)), "gpu1")
    assert {13, 31, 43, 45}.isdisjoint(FATAL_XIDS)


def test_gpu_errors_can_be_left_to_somebody_else() -> None:
    limits = LIMITS.model_copy(update={"gpu_errors": False})
    Breaker(limits, Health()).check_host(Health(xids=(OFF_THE_BUS,)), "gpu1")


@pytest.mark.parametrize(
    ("health", "where"),
    [(Health(host_free_gib=1.9), "1.9 GiB free on host gpu1"), (Health(own_free_gib=0.0), "0.0 GiB free here")],
)
def test_a_disk_that_is_nearly_full_stops_the_sweep(health: Health, where: str) -> None:
    with pytest.raises(SweepAborted, match=rf"limits.free_gib=2\)[\s\S]*{where}"):
        Breaker(LIMITS, Health()).check_host(health, "gpu1")
    Breaker(LIMITS, Health()).check_host(Health(host_free_gib=2.0, own_free_gib=2.0), "gpu1")


def test_a_gpu_that_was_too_hot_stops_the_sweep() -> None:
    hot = launch(60.0, trial=4).model_copy(
        update={"gpu": GpuWindow(gpus=(0, 1), highest_temperature_c=(85, 85.6))}
    )
    with pytest.raises(SweepAborted, match=r"too hot on host here in trial 4[\s\S]*GPU 1: up to 86 °C"):
        Breaker(LIMITS, Health()).check(hot)
    Breaker(LIMITS.model_copy(update={"gpu_temperature_c": None}), Health()).check(hot)
