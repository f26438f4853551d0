"""What the samples of a launch's GPUs add up to: the figures of the record, and reasons to doubt them. Pure.

A GPU counts as working unless a sample shows that it does nothing: its clocks are those of an idle GPU then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import fmean, median

from launchers.gpu_sample import HW_CAUSES, HW_SLOWDOWN, POWER_CAP, REASONS, THROTTLING, GpuSample, GpuState
from sweeper.records import GpuWindow

Key = tuple[int, int]
"""A GPU: the rank of its host, and its index there."""

_ORDINARY = frozenset(REASONS.values()) - THROTTLING - {POWER_CAP, "board_limit", "reliability"}
_SHARE = 0.1  # of a GPU's samples that must show a slowdown before it is a doubt
_ALWAYS = 0.9
_LAGGING = 0.85  # of the others' clock
_MIN_SAMPLES = 3  # before clocks of GPUs are compared
_BUSY_PCT = 50.0  # a GPU with less to do may well run slower


def gpu_window(samples: Sequence[GpuSample], others: tuple[str, ...] = ()) -> GpuWindow:
    """The figures. What one of the GPUs does not tell is left out for all of them.

    The SM clock is that of the samples in which the GPU works. `throttled` holds sw_power_cap too, which is how a
    GPU under load sets its clocks; all its other names mean that something slowed a working GPU down.
    """
    series = by_gpu(samples)
    clocks = [_known(_working(states), lambda state: state.sm_clock_mhz) for states in series.values()]
    temperatures = [_known(states, lambda state: state.temperature_c) for states in series.values()]
    power = [_known(states, lambda state: state.power_w) for states in series.values()]
    return GpuWindow(
        num_samples=len(samples),
        gpus=tuple(index for _, index in series),
        sm_clock_mhz=_each(fmean, clocks),
        lowest_sm_clock_mhz=_each(min, clocks),
        temperature_c=_each(fmean, temperatures),
        highest_temperature_c=_each(max, temperatures),
        power_w=_each(fmean, power),
        throttled=_shares(samples),
        others=others,
    )


def gpu_metrics(samples: Sequence[GpuSample]) -> dict[str, float]:
    """The same as one number each; the clock is the mean over the GPUs that work at all."""
    window = gpu_window(samples)
    worked = [any(state.works for state in states) for states in by_gpu(samples).values()]
    clocks = [clock for clock, works in zip(window.sm_clock_mhz, worked, strict=False) if works or not any(worked)]
    metrics = {}
    if clocks:
        metrics["gpu_sm_clock_mhz"] = fmean(clocks)
    if window.highest_temperature_c:
        metrics["gpu_temperature_c"] = max(window.highest_temperature_c)
    if window.power_w:
        metrics["gpu_power_w"] = sum(window.power_w)
    return metrics


def clock_doubts(samples: Sequence[GpuSample]) -> Iterator[str]:
    """One line for each reason that slowed GPUs down, and for each GPU that is far slower than the others."""
    series = by_gpu(samples)
    for reason in sorted(THROTTLING):
        slowed = [line for key, states in series.items() if (line := _slowed(key, states, reason, series))]
        if slowed:
            yield f"{reason}: {', '.join(slowed)}"
    yield from _laggards(series)


def clock_notes(samples: Sequence[GpuSample]) -> Iterator[str]:
    """What is worth knowing of the clocks and no reason for doubt."""
    told = [reasons for sample in samples for gpu in sample.gpus if (reasons := gpu.reasons) is not None]
    if samples and not told:
        yield "the driver does not tell what sets the clocks: whether the GPUs were slowed down is not known"
    share = _shares(samples).get(POWER_CAP, 0.0)
    if share >= _ALWAYS:
        yield f"the GPUs ran at their power limit ({POWER_CAP} in {share:.0%} of {len(samples)} samples)"


def by_gpu(samples: Sequence[GpuSample]) -> dict[Key, list[GpuState]]:
    """The states of each GPU, in order; host by host, by index."""
    keys = sorted({(gpu.node, gpu.index) for sample in samples for gpu in sample.gpus})
    return {
        key: [gpu for sample in samples for gpu in sample.gpus if (gpu.node, gpu.index) == key] for key in keys
    }


def gpu_label(key: Key, is_group: bool) -> str:
    """A GPU in words."""
    node, index = key
    return f"GPU {index} of node {node}" if is_group else f"GPU {index}"


def _working(states: Sequence[GpuState]) -> Sequence[GpuState]:
    """Those in which the GPU works; all of them, if it never does."""
    return [state for state in states if state.works] or states


def _known(states: Sequence[GpuState], pick: Callable[[GpuState], float | None]) -> list[float]:
    return [value for state in states if (value := pick(state)) is not None]


def _each(reduce: Callable[[Sequence[float]], float], columns: Sequence[Sequence[float]]) -> tuple[float, ...]:
    """One number per GPU; empty unless there is one for each."""
    return tuple(reduce(values) for values in columns) if all(columns) else ()


def _shares(samples: Sequence[GpuSample]) -> dict[str, float]:
    """Reason to the share of samples that show it on a working GPU; of the samples that tell any reasons."""
    shown = [
        {word for gpu in sample.gpus if gpu.works for word in gpu.reasons or ()}
        for sample in samples
        if any(gpu.reasons is not None for gpu in sample.gpus)
    ]
    names = sorted({word for words in shown for word in words} - _ORDINARY)
    return {name: fmean(name in words for words in shown) for name in names}


def _slowed(key: Key, states: Sequence[GpuState], reason: str, series: Mapping[Key, object]) -> str:
    """How much of the time `reason` slowed this GPU down; empty when that is nothing to speak of."""
    told = [state.reasons for state in states if state.works and state.reasons is not None]
    hits = [words for words in told if reason in words]
    if reason == HW_SLOWDOWN:
        hits = [words for words in hits if HW_CAUSES.isdisjoint(words)]
    # Alone and once it may be no more than a change of clocks.
    if not hits or len(hits) < _SHARE * len(told) or (reason == HW_SLOWDOWN and len(hits) < 2):
        return ""
    return f"{gpu_label(key, _is_group(series))} in {len(hits) / len(told):.0%} of {len(told)} samples"


def _laggards(series: Mapping[Key, Sequence[GpuState]]) -> Iterator[str]:
    """GPUs whose clock is far below the others'; each as a share of its own highest, as models may differ."""
    shares = {}
    for key, states in series.items():
        found = [
            state.sm_clock_mhz / state.max_sm_clock_mhz
            for state in states
            if state.sm_clock_mhz and state.max_sm_clock_mhz and (state.utilization_pct or 0.0) >= _BUSY_PCT
        ]
        if len(found) >= _MIN_SAMPLES:
            shares[key] = fmean(found)
    for key, share in shares.items():
        others = [other for name, other in shares.items() if name != key]
        if others and share < _LAGGING * median(others):
            yield (
                f"{gpu_label(key, _is_group(series))} ran at {share:.0%} of its highest clock, "
                f"the others at {median(others):.0%}"
            )


def _is_group(series: Mapping[Key, object]) -> bool:
    return any(node for node, _ in series)
