"""What a host's GPUs are found to be, from what nvidia-smi printed."""

from __future__ import annotations

import pytest

from launchers.gpus import GpuLook, Tenant
from launchers.looking import Told
from sweeper.doctor.cards import QUESTIONS, cuda_version, policies
from sweeper.doctor.finding import Level, Place
from sweeper.doctor.table import CHECKS
from sweeper.nights.health import Health
from tests.doctor.asking import context, gpu_context, look, said, text, told, worst

pytestmark = pytest.mark.compose


def policy(*rows: str) -> Told:
    """`index, driver, persistence, power, clocks (2), ECC, MIG, compute mode` of each GPU."""
    return told(policy=rows, code="policy 0")


USUAL = "580.95.05, Enabled, 700.00 W, 1980 MHz, 3201 MHz, Enabled, Disabled, Default"


def test_free_gpus_of_one_kind_are_well() -> None:
    ctx = gpu_context(gpus=look(4, 4), gpu_names=("NVIDIA H200",) * 2, cards=policy(f"0, {USUAL}", f"1, {USUAL}"))
    for name in ("gpus", "gpu_count", "gpu_kinds", "gpu_memory", "persistence", "gpu_policy", "mig"):
        assert worst(name, ctx) is Level.OK, text(name, ctx)
    assert "power limit 700.00 W" in text("gpu_policy", ctx)


def test_memory_that_somebody_holds_is_told_with_whose_it_is() -> None:
    assert worst("gpu_memory", gpu_context(gpus=look(70_004, 4))) is Level.ERROR
    assert "pid 4711: python train.py, 70000 MiB" in text("gpu_memory", gpu_context(gpus=look(70_004, 4)))


@pytest.mark.parametrize(
    ("gpus", "level"),
    [
        (None, Level.WARNING),
        (look(4, problems=("exit code 9: no devices",)), Level.ERROR),
        (look(), Level.WARNING),
    ],
)
def test_without_an_answer_of_nvidia_smi_nothing_is_taken_for_well(gpus: GpuLook | None, level: Level) -> None:
    assert worst("gpus", gpu_context(gpus=gpus)) is level


def test_fewer_gpus_than_the_groups_need_are_a_setting_to_change() -> None:
    ctx = gpu_context("engine.flags.tp_size=4", gpu_names=("H200",) * 2)
    assert [(each.level, each.is_setting) for each in said("gpu_count", ctx)] == [(Level.ERROR, True)]
    assert "the server needs 4 GPUs on each host, host gpu1 has 2" in text("gpu_count", ctx)
    ctx = gpu_context("engine.flags.tp_size=2", "host.gpus=[0,5]", gpu_names=("H200",) * 2)
    assert "host.gpus: 5: host gpu1 has the GPUs 0 to 1" in text("gpu_count", ctx)


def test_gpus_that_differ_are_told() -> None:
    ctx = gpu_context(gpus=look(4, 4, names=("NVIDIA H200", "NVIDIA H100")))
    assert worst("gpu_kinds", ctx) is Level.WARNING


@pytest.mark.parametrize(
    ("name", "before", "after", "level"),
    [
        ("persistence", "Enabled, 700", "Disabled, 700", Level.WARNING),
        ("gpu_policy", "700.00 W", "450.00 W", Level.WARNING),
        ("gpu_policy", "Default", "Prohibited", Level.ERROR),
        ("mig", "Disabled, Default", "Enabled, Default", Level.WARNING),
    ],
)
def test_each_policy_is_looked_at(name: str, before: str, after: str, level: Level) -> None:
    ctx = gpu_context(cards=policy(f"0, {USUAL}", f"1, {USUAL.replace(before, after)}"))
    assert worst(name, ctx) is level, text(name, ctx)


def test_several_slices_cannot_make_one_server() -> None:
    cut = USUAL.replace("Disabled, Default", "Enabled, Default")
    assert (
        worst("mig", gpu_context("engine.flags.tp_size=2", cards=policy(f"0, {cut}", f"1, {cut}"))) is Level.ERROR
    )


def test_what_a_driver_does_not_tell_is_no_finding() -> None:
    ctx = gpu_context(
        cards=told(policy='Field "mig.mode.current" is not a valid field to query.', code="policy 2")
    )
    assert [text(name, ctx) for name in ("persistence", "gpu_policy")] == ["", ""]
    assert policies(told(policy=["x, y", "0, " + "[N/A], " * 7 + "[N/A]"], code="policy 0"), ())[0]["compute_mode"]


def test_errors_of_the_hardware_are_told() -> None:
    cards = told(remapped=["GPU-1, Yes, No", "GPU-2, No, Yes"], code="remapped 0")
    xids = ("[1.0] NVRM: Xid (PCI:0000:41:00): 79, GPU has fallen off the bus.", "NVRM: Xid (PCI:0:1): 31, fault")
    found = text("gpu_errors", gpu_context(cards=cards, health=Health(ecc={0: 0, 3: 2}, xids=xids)))
    assert "warning: GPU 3: 2 uncorrected ECC errors" in found
    assert "error: gpu-2: rows of its memory cannot be remapped" in found
    assert "warning: gpu-1" in found
    assert "1 fatal Xids" in found
    assert worst("gpu_errors", gpu_context(cards=told(), health=Health())) is Level.OK


@pytest.mark.parametrize(
    ("temperature", "mask", "words"),
    [
        ("37", "0x0000000000000001", "ok: 37 to 37"),
        ("91", "0x0", "warning: GPU 0 has 91 °C"),
        ("40", "0x40", "hw_thermal_slowdown"),
    ],
)
def test_heat_and_what_slows_a_gpu_down_are_told(temperature: str, mask: str, words: str) -> None:
    row = f"0, GPU-0, 4, 0, 345, 1980, 3201, {temperature}, 85.12, 700.00, {mask}"
    assert words in text("gpu_heat", gpu_context(cards=told(sample=row, code="sample 0"), health=Health()))
    older = told(sample="Field is not a valid field", older=row, code=["sample 2", "older 0"])
    assert words in text("gpu_heat", gpu_context(cards=older, health=Health()))


def test_a_driver_that_is_too_old_for_the_servers_cuda_is_an_error() -> None:
    version = "CUDA Version        : 12.4"
    assert cuda_version(told(version=["NVIDIA-SMI version  : 550.1", version])) == "12.4"
    old = gpu_context(cards=told(version=version), build={"cuda": "13.0", "nccl": "2.28"})
    new = gpu_context(cards=told(version=version), build={"cuda": "12.9", "nccl": "2.28"})
    assert (worst("gpu_software", old), worst("gpu_software", new)) == (Level.ERROR, Level.OK)


def test_an_engine_without_gpus_has_one_line_about_them() -> None:
    ctx = gpu_context("host.watch_gpus=false")
    assert [text(name, ctx)[:3] for name in ("gpus", "gpu_count", "mig", "gpu_errors", "gpu_heat")] == [
        "ok:",
        *[""] * 4,
    ]


def test_every_question_is_one_that_only_asks() -> None:
    assert all(words.startswith(("--query-", "topo -", "--version")) for words in QUESTIONS.values())


@pytest.mark.parametrize(
    ("owner", "overrides", "level", "fix"),
    [
        ("", (), Level.ERROR, "end these processes"),
        ("s-1", (), Level.WARNING, "the next run stops it"),
        ("", ("host.replace_server=30000",), Level.WARNING, "the server on port 30000"),
    ],
)
def test_memory_of_what_a_run_stops_by_itself_is_no_obstacle(
    owner: str, overrides: tuple[str, ...], level: Level, fix: str
) -> None:
    held = look(70_004, 4)
    held = GpuLook(held.reading, {4711: Tenant(owner, "pid 4711: python")})
    assert [(each.level, fix in each.fix) for each in said("gpu_memory", context(*overrides, gpus=held))] == [
        (level, True)
    ]


def test_without_nvidia_smi_only_that_is_said() -> None:
    names = [check.name for check in CHECKS if check.place is Place.GPUS and check.name != "gpu_software"]
    ctx = context("engine.flags.tp_size=8", gpus=None)
    assert [name for name in names if text(name, ctx)] == ["gpus"]
