"""The stand-in's nvidia-smi speaks of clocks, heat and power as real drivers do."""

from __future__ import annotations

import subprocess

import pytest

from tests.gpu_host.host import GpuHost

pytestmark = pytest.mark.host


def ask(host: GpuHost, fields: str, layout: str = "csv", code: int = 0) -> list[str]:
    done = subprocess.run(
        [str(host.nvidia_smi), f"--query-gpu={fields}", f"--format={layout}"],
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert done.returncode == code
    return done.stdout.splitlines()


def test_units_stand_behind_the_figures(host: GpuHost) -> None:
    fields = "clocks.sm,temperature.gpu,power.draw,power.limit,utilization.gpu,clocks_throttle_reasons.active"
    title, first, *_ = ask(host, fields)
    assert title.endswith("power.limit [W], utilization.gpu [%], clocks_event_reasons.active"), (
        "renamed in silence"
    )
    assert first == "180 MHz, 31, 14.50 W, 600.00 W, 0 %, 0x0000000000000001"
    assert ask(host, fields, "csv,noheader,nounits")[1] == "180, 32, 15.50, 600.00, 0, 0x0000000000000001"


def test_an_old_driver_refuses_the_new_name(host: GpuHost) -> None:
    host.set_driver("470")
    assert ask(host, "index,clocks_event_reasons.active", code=2) == [
        'Field "clocks_event_reasons.active" is not a valid field to query.',
        "",
    ]
    assert ask(host, "clocks_throttle_reasons.active", "csv,noheader")[0] == "0x0000000000000001"


@pytest.mark.parametrize(
    ("driver", "row"),
    [("gb10", "[N/A], [N/A], 0 %"), ("mig-container", "[Insufficient Permissions], 600.00 W, [N/A]")],
)
def test_what_is_not_told_has_no_unit(host: GpuHost, driver: str, row: str) -> None:
    host.set_driver(driver)
    assert ask(host, "memory.used,power.limit,utilization.gpu", "csv,noheader")[0] == row


def test_planted_values_are_shown(host: GpuHost) -> None:
    host.set_sensors(1, clocks__sm="900")
    host.set_sensors(1, temperature__gpu="93")
    assert ask(host, "clocks.sm,temperature.gpu", "csv,noheader")[:2] == ["180 MHz, 31", "900 MHz, 93"]


def test_there_is_no_other_driver(host: GpuHost) -> None:
    with pytest.raises(ValueError, match="no driver is called '999'"):
        host.set_driver("999")
