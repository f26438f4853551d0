"""When a launch ends early, and when it goes on."""

from __future__ import annotations

import math
import random

import pytest

from sweeper.measuring.stopping import Estimate, SoFar, another_pass, hopeless
from sweeper.records import Reference, RequestResult
from sweeper.workload_spec import Prompt, WorkloadSpec
from tests.fakes import EPOCH

RATES = {"a": 90.0, "b": 78.0, "c": 84.0, "d": 71.0, "e": 86.0}
REFERENCE = Reference(
    trial_number=4,
    value=81.0,
    prompt_throughputs=RATES,
    launch_noise_pct=1.5,
    launch_noise_degrees=3,
    prompt_spread_pct=5.0,
)
THROUGHPUT = "output_throughput"


def workload(repeats: int = 2, max_repeats: int = 0, **more: object) -> WorkloadSpec:
    fields: dict[str, object] = {
        "name": "w",
        "prompts": tuple(Prompt(id=i, text=i) for i in RATES),
        "max_tokens": 100,
        "temperature": 0,
        "seed": 0,
        "request_timeout_s": 10,
        "repeats": repeats,
        "max_repeats": max_repeats,
    }
    return WorkloadSpec.model_validate(fields | more)


def request(prompt: str, rate: float, repeat: int = 0, tokens: int = 100) -> RequestResult:
    return RequestResult(
        prompt_id=prompt,
        prompt_class="default",
        repeat=repeat,
        sent_at=EPOCH,
        e2e_latency_ms=tokens * 1000 / rate,
        num_output_tokens=tokens,
    )


def at_ratio(ratio: float, count: int = 5, repeat: int = 0) -> list[RequestResult]:
    """The first prompts, each so many times as fast as under the reference."""
    return [request(prompt, rate * ratio, repeat) for prompt, rate in list(RATES.items())[:count]]


def stop(requests: list[RequestResult], reference: Reference | None = REFERENCE) -> Estimate | None:
    return hopeless(requests, workload(), reference, THROUGHPUT)


def num_prompts_until_stopped(requests: list[RequestResult]) -> int | None:
    return next((n for n in range(1, len(requests) + 1) if stop(requests[:n])), None)


# Without hope.


@pytest.mark.parametrize(("ratio", "expected"), [(0.5, 2), (0.7, 2), (0.85, 2), (1.0, None), (1.3, None)])
def test_a_hopeless_launch_ends_after_two_prompts_not_after_one(ratio: float, expected: int | None) -> None:
    assert num_prompts_until_stopped(at_ratio(ratio)) == expected


def test_the_less_is_known_of_what_starts_differ_by_the_further_behind_is_hopeless() -> None:
    well, little = (REFERENCE.model_copy(update={"launch_noise_degrees": degrees}) for degrees in (60, 3))
    assert stop(at_ratio(0.91), well) is not None
    assert stop(at_ratio(0.91), little) is None
    assert stop(at_ratio(0.88), little) is not None


def test_the_estimate_is_the_reference_times_the_paired_ratio_and_says_so() -> None:
    estimate = stop(at_ratio(0.62, count=2))
    assert estimate is not None
    assert estimate.value == pytest.approx(0.62 * 81)  # although the first two prompts are fast ones
    assert estimate.text == (
        "stopped after 2 of 5 prompts: 38 % (95 % interval 32 to 43 %) slower than trial 4; the throughput is "
        "estimated from these prompts"
    )


def test_all_tokens_count_over_all_time_unless_rates_are_averaged() -> None:
    uneven = [request("a", 45.0, tokens=100), request("b", 31.2, tokens=900)]  # 0.5 and 0.4 of the reference
    whole = hopeless(uneven, workload(), REFERENCE, THROUGHPUT)
    mean = hopeless(uneven, workload(), REFERENCE, "mean_prompt_throughput")
    assert whole is not None
    assert mean is not None
    assert whole.value / 81 == pytest.approx((100 / 90 + 900 / 78) / (100 / 45 + 900 / 31.2))
    assert mean.value / 81 == pytest.approx((45 + 31.2) / (90 + 78))


def test_prompts_that_spread_more_than_the_reference_knows_are_given_more_time() -> None:
    even = [request("a", 90 * 0.85), request("b", 78 * 0.85)]
    uneven = [request("a", 90 * 0.65), request("b", 78 * 1.11)]  # the same ratio in the mean
    assert stop(even) is not None
    assert stop(uneven) is None


@pytest.mark.parametrize(
    ("reference", "spec", "metric"),
    [
        (None, workload(), THROUGHPUT),
        (REFERENCE, workload(stop_hopeless=False), THROUGHPUT),
        (REFERENCE, workload(), "decode_throughput"),
        (REFERENCE, workload(), ""),
        (REFERENCE.model_copy(update={"prompt_throughputs": {"other": 80.0}}), workload(), THROUGHPUT),
    ],
)
def test_nothing_ends_early_when_nobody_asked_or_nothing_can_be_estimated(
    reference: Reference | None, spec: WorkloadSpec, metric: str
) -> None:
    assert hopeless(at_ratio(0.1), spec, reference, metric) is None


def simulated(true_ratio: float, draw: random.Random) -> list[RequestResult]:
    """One launch: it and the reference's differ by launch noise, and its prompts spread."""
    launch = math.exp(draw.gauss(0, 0.015) - draw.gauss(0, 0.015))
    return [
        request(prompt, rate * true_ratio * launch * math.exp(draw.gauss(0, 0.05)))
        for prompt, rate in RATES.items()
    ]


def test_a_launch_that_equals_the_reference_is_stopped_in_less_than_one_of_a_hundred_cases() -> None:
    draw = random.Random(7)
    stopped = sum(num_prompts_until_stopped(simulated(1.0, draw)) is not None for _ in range(1000))
    assert stopped < 10


def test_launches_a_third_slower_end_after_one_or_two_prompts() -> None:
    draw = random.Random(7)
    needed = [num_prompts_until_stopped(simulated(0.67, draw)) or 10 for _ in range(300)]
    assert sum(n <= 2 for n in needed) / len(needed) > 0.95


# Enough.


def passes(*factors: float, ratio: float = 1.0) -> SoFar:
    """Passes that differ by these factors, all prompts alike."""
    requests = [r for number, factor in enumerate(factors) for r in at_ratio(ratio * factor, repeat=number)]
    return SoFar(requests, elapsed_s=60)


def test_the_passes_asked_for_are_made_however_clear_the_numbers_are() -> None:
    assert another_pass(passes(1.0), workload(repeats=2))
    assert not another_pass(passes(1.0, 1.0), workload(repeats=2))
    assert another_pass(passes(1.0, 1.0, 1.0), workload(repeats=4, max_repeats=2))
    assert not another_pass(passes(1.0, 1.2, 1.1, 0.9), workload(repeats=4, max_repeats=2))


def test_passes_that_differ_are_followed_by_more_until_their_mean_is_known() -> None:
    wanted = workload(repeats=2, max_repeats=4)
    assert another_pass(passes(1.0, 1.1), wanted)
    assert another_pass(passes(1.0, 1.1, 0.95), wanted)
    assert another_pass(passes(1.0, 1.001, 1.0), wanted)  # a cycle that was begun is ended
    assert not another_pass(passes(1.0, 1.1), workload(repeats=2, max_repeats=3))  # half a cycle is other work
    assert not another_pass(passes(1.0, 1.1, 0.95, 1.2), wanted)
    assert not another_pass(passes(1.0, 1.001), wanted)
    assert another_pass(passes(1.0), workload(repeats=1, max_repeats=3))  # one pass shows no spread


def test_prompts_that_differ_between_passes_are_seen_though_their_sums_agree() -> None:
    swung = [
        *(request(p, RATES[p] * factor, 0) for p, factor in zip("abcd", (1.1, 0.9, 1.1, 0.9), strict=True)),
        *(request(p, RATES[p] * factor, 1) for p, factor in zip("abcd", (0.9, 1.1, 0.9, 1.1), strict=True)),
    ]
    assert another_pass(SoFar(swung, 60), workload(max_repeats=4))
    assert not another_pass(SoFar(swung, 60, walls_s=(5.0, 5.0)), workload(max_repeats=4))  # they overlapped


@pytest.mark.parametrize(("ratio", "more"), [(0.99, True), (1.02, True), (0.9, False), (1.2, False)])
def test_only_a_launch_close_to_the_reference_is_measured_more_precisely(ratio: float, more: bool) -> None:
    assert another_pass(passes(1.0, 1.03, ratio=ratio), workload(max_repeats=5), REFERENCE) is more


def test_no_pass_begins_after_the_time_is_up() -> None:
    late = SoFar(at_ratio(1.0), elapsed_s=100)
    assert another_pass(late, workload(max_measure_s=101))
    assert not another_pass(late, workload(max_measure_s=100))


@pytest.mark.parametrize(("factors", "more"), [((1.0,), False), ((1.0, 1.1), False), ((1.0, 1.1, 0.9), True)])
def test_further_passes_that_were_begun_in_time_are_all_made(factors: tuple[float, ...], more: bool) -> None:
    wanted = workload(repeats=2, max_repeats=4, max_measure_s=50)
    assert another_pass(passes(*factors), wanted) is more
