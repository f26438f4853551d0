"""How a launch comes to its fault."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.gpu_host.host import make_host
from tests.gpu_host.site.sglang.standin import faults

STEPS = ["--model-path", "m", "--speculative-num-steps", "5", "--disable-cuda-graph"]


@pytest.mark.parametrize(
    ("when", "fits"),
    [
        ({}, True),
        ({"--speculative-num-steps": "5"}, True),
        ({"--speculative-num-steps": "3"}, False),
        ({"--disable-cuda-graph": "true"}, True),
        ({"--enable-metrics": "true"}, False),
        ({"--speculative-num-steps": "5", "--speculative-eagle-topk": "1"}, False),
    ],
)
def test_a_fault_may_wait_for_arguments(when: dict[str, str], fits: bool) -> None:
    assert faults.fits(when, STEPS) is fits
    assert faults.fits({"--a": "1"}, ["--a=1"])


def test_a_fault_is_used_up_after_its_launches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host = make_host(tmp_path)
    monkeypatch.setenv("STANDIN_STATE", str(host.state))
    host.set_fault("oom_load", launches=2, when={"--speculative-num-steps": "5"})
    host.set_fault("slow_http", "3")
    assert [faults.choose(STEPS).name for _ in range(3)] == ["oom_load", "oom_load", "slow_http"]
    assert faults.choose([]).number(1) == 3
    host.clear_faults()
    assert faults.choose(STEPS) == faults.Fault()


def test_the_environment_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host = make_host(tmp_path)
    host.set_fault("oom_load")
    monkeypatch.setenv("STANDIN_STATE", str(host.state))
    monkeypatch.setenv("STANDIN_FAULT", "watchdog:2")
    assert faults.choose(STEPS) == faults.Fault("watchdog", "2")


def test_a_fault_that_does_not_exist_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no fault is called 'oom'"):
        make_host(tmp_path).set_fault("oom")
