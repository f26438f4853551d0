"""How the figures of nvidia-smi are read: every driver's way of saying nothing is nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from launchers.errors import HostLost
from launchers.gpu_sample import QUERIES, REASONS, THROTTLING, GpuSample, GpuSampler, read_sample, words_of

DATA = Path(__file__).parents[1] / "data" / "nvidia_smi"
CAPTURES = sorted(path.stem for path in DATA.glob("*.csv"))
BUSY = "30000, 97, 1980, 1980, 3201, 61, 412.33, 700.00, 0x0000000000000000"
REFUSAL = 'code gpu 2\ngpu Field "clocks_event_reasons.active" is not a valid field to query.\ncode app 0'


def answer(*rows: str, app: str = "", code: str = "0", app_code: str = "0") -> str:
    """The host's answer about GPUs 0, 1, ... with these figures; then about processes."""
    lines = "".join(f"\ngpu {index}, GPU-{index}, {row}" for index, row in enumerate(rows))
    return f"code gpu {code}{lines}\ncode app {app_code}{app}"


def read(text: str, watched: tuple[int, ...] = ()) -> GpuSample:
    return read_sample(text, QUERIES[0], "s-1", watched, 1024)


def captured(name: str, *, units: bool) -> str:
    """The rows of a real driver, as the host's answer."""
    _, *rows = (DATA / f"{name}.csv").read_text().splitlines()
    if not units:
        rows = [row.replace(" MiB", "").replace(" MHz", "").replace(" %", "").replace(" W", "") for row in rows]
    return "code gpu 0\n" + "\n".join(f"gpu {row}" for row in rows) + "\ncode app 0"


@pytest.mark.parametrize("units", [True, False])
@pytest.mark.parametrize(
    ("name", "memory", "utilization", "clock", "temperature", "power", "limit", "reasons"),
    [
        ("h200_580.173.02", 0, 0, 345, 37, 85.12, 700, ("gpu_idle",)),
        ("h200_mig_610.43.02", 44, None, 1980, 40, 130.44, 700, ()),
        ("rtx2080_super_465.27", 344, 0, 300, 32, 30.37, 250, ("gpu_idle",)),
        ("a100_mig_container_535.161.08", None, None, None, 47, None, None, None),
        ("gb10_580.126.09", None, 0, None, 36, 3, None, None),
    ],
)
def test_every_driver_is_understood(
    name: str,
    units: bool,
    memory: float | None,
    utilization: float | None,
    clock: float | None,
    temperature: float,
    power: float | None,
    limit: float | None,
    reasons: tuple[str, ...] | None,
) -> None:
    sample = read(captured(name, units=units))
    (gpu,) = sample.gpus
    assert sample.problems == ()
    assert (gpu.memory_used_mib, gpu.utilization_pct, gpu.sm_clock_mhz) == (memory, utilization, clock)
    assert (gpu.temperature_c, gpu.power_w, gpu.power_limit_w) == (temperature, power, limit)
    assert gpu.reasons == reasons


def test_no_capture_is_forgotten() -> None:
    assert len(CAPTURES) == 5


@pytest.mark.parametrize(
    ("mask", "words"),
    [
        (0x0, ()),
        (0x1, ("gpu_idle",)),
        (0x4, ("sw_power_cap",)),
        (0x8 | 0x40, ("hw_slowdown", "hw_thermal_slowdown")),
        (0x20, ("sw_thermal_slowdown",)),
        (0x8 | 0x80, ("hw_slowdown", "hw_power_brake_slowdown")),
        (0x12, ("applications_clocks_setting", "sync_boost")),
        (0x100, ("display_clock_setting",)),
        (0x600, ("board_limit", "reliability")),
        (0x8000_0004, ("sw_power_cap", "0x80000000")),
    ],
)
def test_the_bits_have_names(mask: int, words: tuple[str, ...]) -> None:
    assert words_of(mask) == words
    (gpu,) = read(answer(BUSY.replace("0x0000000000000000", f"0x{mask:016X}"))).gpus
    assert gpu.reasons == words


def test_every_slowdown_has_a_bit() -> None:
    assert set(REASONS.values()) >= THROTTLING


NOTHING = "[N/A]|N/A|[Not Supported]|[Unknown Error]|ERR!|[Insufficient Permissions]||-1|1e3|0x|Active|nan"
NOTHING += "|[Requested functionality has been deprecated]|0x11111111111111111"


@pytest.mark.parametrize("word", NOTHING.split("|"))
def test_what_is_no_figure_is_nothing(word: str) -> None:
    row = ", ".join([word] * 9)
    (gpu,) = read(answer(row)).gpus
    assert (gpu.memory_used_mib, gpu.sm_clock_mhz, gpu.power_w, gpu.temperature_c) == (None, None, None, None)
    assert gpu.reasons is None


def test_a_decimal_comma_is_no_figure() -> None:
    assert read(answer(BUSY.replace("412.33", "412,33"), BUSY)).gpus[0].index == 1


def test_only_watched_gpus_are_told() -> None:
    assert [gpu.index for gpu in read(answer(BUSY, BUSY, BUSY), (0, 2)).gpus] == [0, 2]


def test_figures_count_however_nvidia_smi_ended() -> None:
    sample = read(answer(BUSY, code="15"))
    assert (len(sample.gpus), sample.problems) == (1, ())


@pytest.mark.parametrize(
    ("text", "words", "stuck"),
    [
        ("code gpu hung", "no answer about GPUs", False),
        ("code gpu stuck", "no answer about GPUs", True),
        ("code gpu 9\ngpu NVIDIA-SMI has failed\ncode app 9", "exit code 9: NVIDIA-SMI has failed", False),
        ("code gpu 0\ngpu No devices were found\ncode app 0", "No devices were found", False),
        (answer(BUSY, app_code="hung"), "no answer about processes", False),
        (answer(BUSY, app="\napp oops", app_code="3"), "processes: exit code 3: oops", False),
    ],
)
def test_a_failure_is_told_and_never_raised(text: str, words: str, stuck: bool) -> None:
    sample = read(text)
    assert words in sample.problems[0]
    assert sample.is_stuck is stuck


def test_processes_of_the_server_and_others_are_told_apart() -> None:
    app = "\napp GPU-0, 7, python3, 20000\napp GPU-0, 8, train, a, 30000\napp GPU-1, 9, python3, 40000"
    app += "\napp GPU-0, 10, mine, 5000\napp GPU-0, 11, small, 900\napp GPU-0, 12, untold, [N/A]"
    app += "\npid 7 s-1 pid 7: sglang\npid 8 - pid 8: train\npid 9 ? pid 9: ?\npid 10 s-2 pid 10: mine"
    sample = read(answer(BUSY, BUSY, app=app))
    told = [(it.index, it.pid, it.memory_mib, it.is_ours, it.description) for it in sample.holders]
    assert told == [
        (0, 7, 20000, True, "pid 7: sglang"),
        (0, 8, 30000, False, "pid 8: train"),
        (0, 10, 5000, False, "pid 10: mine"),
        (1, 9, 40000, None, "pid 9: python3"),
    ]


def test_memory_is_summed_only_when_all_of_it_is_told() -> None:
    app = "\napp GPU-0, 7, a, 20000\napp GPU-0, 8, b, 900\napp GPU-1, 9, c, [N/A]"
    sample = read(answer(BUSY, BUSY, BUSY, app=app))
    assert [gpu.listed_mib for gpu in sample.gpus] == [20900, None, 0]
    assert [gpu.listed_mib for gpu in read(answer(BUSY, app_code="1")).gpus] == [None]


def test_a_driver_that_does_not_know_a_field_is_asked_once() -> None:
    asked = []

    def ask(fields: str) -> str:
        asked.append(fields.rpartition(",")[2])
        return REFUSAL if "event" in fields else answer(BUSY)

    sampler = GpuSampler((), 1024)
    for _ in range(2):
        sample = sampler.take(ask, "s-1")
        assert sample is not None
        assert sample.gpus[0].reasons == ()
    assert asked == ["clocks_event_reasons.active", *["clocks_throttle_reasons.active"] * 2]


def test_a_driver_that_knows_no_reasons_still_tells_the_rest() -> None:
    def ask(fields: str) -> str:
        return REFUSAL if "reasons" in fields else answer(BUSY.rpartition(",")[0])

    sample = GpuSampler((), 1024).take(ask, "s-1")
    assert sample is not None
    assert (sample.gpus[0].sm_clock_mhz, sample.gpus[0].reasons) == (1980, None)


def test_a_driver_that_refuses_everything_is_told() -> None:
    sample = GpuSampler((), 1024).take(lambda _: REFUSAL, "s-1")
    assert sample is not None
    assert "is not a valid field" in sample.problems[0]


def test_a_host_without_nvidia_smi_gives_no_sample() -> None:
    assert GpuSampler((), 1024).take(lambda _: None, "s-1") is None


@given(st.text(alphabet=st.characters(exclude_characters="\n"), max_size=60))
def test_no_row_breaks_the_reading(row: str) -> None:
    sample = read(f"code gpu 0\ngpu {row}\ncode app 0\napp {row}")
    assert all(gpu.index >= 0 for gpu in sample.gpus)


@pytest.mark.parametrize("text", ["", "what?", answer(BUSY) + "\npid x"])
def test_an_answer_that_is_not_the_supervisors_is_a_lost_host(text: str) -> None:
    with pytest.raises(HostLost, match="makes no sense"):
        read(text)
