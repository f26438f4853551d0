"""accept_length is exact against servers whose every verify step is known, in the words of each version."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeper.engines.base import Generation
from sweeper.engines.llamacpp import LlamaCpp
from sweeper.engines.sglang.acceptance import CORRECT_DRAFTS, FALLBACK, TWO_OWN
from sweeper.engines.sglang.answers import parse_generate
from sweeper.measuring.figures import metrics_of
from sweeper.records import RequestResult
from tests.engines import sglang_saved
from tests.engines.saved import streamed


@dataclass(frozen=True)
class Truth:
    """What a server did for one answer: drafts accepted in each verify step, and tokens cut off at its end.

    `cut`: tokens of the last step beyond max_tokens, or beyond the end of the text inside an accepted run.
    `own`: tokens that each step adds beside accepted drafts. `again`: how often it was taken back and begun anew.
    """

    accepted: Sequence[int]
    cut: int = 0
    own: int = 1
    again: int = 0
    width: int = 5

    @property
    def num_tokens(self) -> int:
        """The first token comes from the prefill, and again from the prefill of each new beginning."""
        return 1 + self.again + sum(self.accepted) + self.own * len(self.accepted) - self.cut

    @property
    def accept_length(self) -> float:
        """Tokens that verification kept per step."""
        return self.own + sum(self.accepted) / len(self.accepted)

    @property
    def histogram(self) -> list[int]:
        return [list(self.accepted).count(n) for n in range(self.width)]


def _v0_5_8(truth: Truth) -> dict[str, object]:
    return {"spec_accept_token_num": sum(truth.accepted), "spec_draft_token_num": _proposed(truth)}


def _v0_5_10(truth: Truth) -> dict[str, object]:
    return {**_v0_5_8(truth), "spec_accept_histogram": truth.histogram}


def _v0_5_15(truth: Truth) -> dict[str, object]:
    aliases = {"spec_accepted_drafts": sum(truth.accepted), "spec_proposed_drafts": _proposed(truth)}
    return {**_v0_5_23(truth), **aliases, "spec_accept_histogram": truth.histogram}


def _v0_5_20(truth: Truth) -> dict[str, object]:
    more = {"spec_cap_length": 4.0, "spec_block_accept_length": 2.5, "spec_cap_lens_histogram": [0, 1]}
    return {**_v0_5_15(truth), **more}


def _v0_5_23(truth: Truth) -> dict[str, object]:
    return {
        "spec_num_correct_drafts": sum(truth.accepted),
        "spec_num_proposed_drafts": _proposed(truth),
        "spec_correct_drafts_histogram": truth.histogram,
    }


def _uncounted(truth: Truth) -> dict[str, object]:
    """0.4.6 and 0.5.3, which the engine refuses, and whatever stops counting."""
    return {}


def _proposed(truth: Truth) -> int:
    return len(truth.accepted) * (truth.width - 1)


COUNTING = {"0.5.8": _v0_5_8, "0.5.10": _v0_5_10, "0.5.15": _v0_5_15, "0.5.20": _v0_5_20, "0.5.23": _v0_5_23}
Version = Callable[[Truth], dict[str, object]]


def sglang(truth: Truth, version: Version) -> Generation:
    """What is understood of the answer that a server of that version gives."""
    steps = len(truth.accepted)
    meta: Mapping[str, object] = {
        "finish_reason": {"type": "length"},
        "completion_tokens": truth.num_tokens,
        "num_retractions": truth.again,
        "spec_verify_ct": steps,
        "spec_accept_length": truth.num_tokens / steps,
        "spec_accept_rate": 0.5,
        **version(truth),
    }
    body = {"text": "word", "meta_info": meta}
    return parse_generate(streamed(b"data: " + json.dumps(body).encode() + b"\n\ndata: [DONE]\n\n"))


def accept_length(answers: Sequence[Generation]) -> float:
    """What is recorded of a launch with these answers."""
    requests = [
        RequestResult(
            prompt_id=str(n),
            prompt_class="",
            repeat=0,
            sent_at=datetime(2026, 1, 1, tzinfo=UTC),
            e2e_latency_ms=100.0,
            num_output_tokens=answer.num_output_tokens,
            num_drafted_tokens=answer.num_drafted_tokens,
            num_accepted_tokens=answer.num_accepted_tokens,
            num_verify_steps=answer.num_verify_steps,
        )
        for n, answer in enumerate(answers)
    ]
    return metrics_of(requests)["accept_length"]


CASES = {
    "steps of every kind": Truth([0, 4, 2, 4, 1]),
    "nothing accepted": Truth([0] * 63),
    "everything accepted": Truth([4] * 40),
    "end of text inside an accepted run": Truth([1, 2, 4], cut=3),
    "max_tokens cuts the last run": Truth([3] * 15 + [4], cut=4),
    "one step, cut after the first token": Truth([4], cut=4),
    "taken back and begun anew": Truth([2, 2, 0], again=1),
}


@pytest.mark.parametrize("truth", CASES.values(), ids=CASES.keys())
@pytest.mark.parametrize("version", COUNTING.values(), ids=COUNTING.keys())
def test_every_version_that_counts_is_exact(version: Version, truth: Truth) -> None:
    answer = sglang(truth, version)
    assert accept_length([answer]) == truth.accept_length
    assert answer.accept_source == CORRECT_DRAFTS
    assert list(answer.accept_histogram) == ([] if version is _v0_5_8 else truth.histogram)


steps = st.lists(st.integers(0, 4), min_size=1, max_size=60)


@given(accepted=steps, cut=st.integers(0, 4), which=st.sampled_from(sorted(COUNTING)))
def test_any_answer_is_exact_wherever_it_ends(accepted: list[int], cut: int, which: str) -> None:
    truth = Truth(accepted, cut=min(cut, accepted[-1]))
    assert accept_length([sglang(truth, COUNTING[which])]) == truth.accept_length


def test_a_launch_is_exact_over_all_its_requests_together() -> None:
    truths = list(CASES.values())
    kept = sum(truth.accept_length * len(truth.accepted) for truth in truths)
    exact = kept / sum(len(truth.accepted) for truth in truths)
    assert accept_length([sglang(truth, _v0_5_23) for truth in truths]) == pytest.approx(exact, rel=1e-12)


@given(accepted=steps, cut=st.integers(0, 4))
def test_without_counts_it_is_too_low_by_what_was_cut_off_per_step_and_never_too_high(
    accepted: list[int], cut: int
) -> None:
    truth = Truth(accepted, cut=min(cut, accepted[-1]))
    answer = sglang(truth, _uncounted)
    bias = accept_length([answer]) - truth.accept_length
    assert bias == pytest.approx(-truth.cut / len(accepted), abs=1e-9)
    assert answer.accept_source == FALLBACK


def test_steps_that_add_two_tokens_of_their_own_are_recognised() -> None:
    truth = Truth([0, 2, 1] * 12, own=2, cut=1)
    answer = sglang(truth, _v0_5_23)
    assert accept_length([answer]) == truth.accept_length == 3
    assert answer.accept_source == TWO_OWN
    assert answer.accept_histogram == (12, 12, 12, 0, 0)


@pytest.mark.parametrize(("name", "exact"), [("e3_after", 1 + 39 / 26), ("wrong_flag", 1.0)])
def test_a_real_server_is_read_exactly_though_its_last_run_was_cut(name: str, exact: float) -> None:
    answer = parse_generate(streamed(sglang_saved.stream(name)))
    assert accept_length([answer]) == exact
    steps, accepted = answer.num_verify_steps or 0, answer.num_accepted_tokens or 0
    assert 1 + steps + accepted >= answer.num_output_tokens == 64  # the server's own 64 / steps is neither


# llama.cpp: steps are counted on its metrics page, drafts in the answer and there.


def page(steps: int, truth: Sequence[int]) -> str:
    counted = {"drafts_total": steps, "accepted_tokens_total": sum(truth)}
    for n in range(4):
        counted[f'accepted_tokens_per_pos_total{{position="{n}"}}'] = sum(kept > n for kept in truth)
    return "".join(f"llamacpp:spec_decode_num_{name} {value}\n" for name, value in counted.items())


@given(earlier=steps, accepted=steps)
def test_llamacpps_counters_are_exact_between_two_readings(earlier: list[int], accepted: list[int]) -> None:
    before = LlamaCpp().counters(page(len(earlier), earlier))
    after = LlamaCpp().counters(page(len(earlier + accepted), earlier + accepted))
    assert None not in (before.num_drafts, before.num_accepted_tokens)
    grown = [(after.num_drafts or 0) - (before.num_drafts or 0)]
    grown.append((after.num_accepted_tokens or 0) - (before.num_accepted_tokens or 0))
    assert grown == [len(accepted), sum(accepted)]
    old = (*before.accepted_per_position, 0, 0, 0, 0)
    positions = [new - old[n] for n, new in enumerate(after.accepted_per_position)]
    assert positions == [sum(kept > n for kept in accepted) for n in range(4)]
