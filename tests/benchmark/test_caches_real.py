"""A real llama.cpp server: what one of its drafters remembers, and that no number is drawn from that.

Drafts are counted, not seconds: a busy machine changes nothing here.
"""

from __future__ import annotations

import pytest

from launchers.clock import SystemClock
from sweeper.engines.llamacpp import LlamaCpp
from sweeper.measuring.benchmark import Bench, measure
from sweeper.records import Measurement
from sweeper.spec import FlagValue, ServerConfig
from sweeper.workload_spec import Prompt, WorkloadSpec
from tests.engines.real import COPY, Real
from tests.fakes import load_of

pytestmark = pytest.mark.engine
STORY = Prompt(id="story", text="Tell me a short story about a lighthouse keeper who is afraid of the dark.")
MOD: dict[str, FlagValue] = {
    "spec_type": "ngram-mod",
    "spec_ngram_mod_n_match": 3,
    "spec_ngram_mod_n_min": 2,
    "spec_ngram_mod_n_max": 8,
}
SIMPLE: dict[str, FlagValue] = {
    "spec_type": "ngram-simple",
    "spec_ngram_simple_size_n": 3,
    "spec_ngram_simple_size_m": 4,
}


class Innocent(LlamaCpp):
    """Does not know that anything is remembered."""

    def remembers(self, config: ServerConfig) -> str:
        return ""


def measured(
    real: Real, engine: LlamaCpp, flags: dict[str, FlagValue], prompt: Prompt, num_tokens: int
) -> Measurement:
    """Two passes of one prompt, the same text in both, on one server."""
    workload = WorkloadSpec(
        name="w",
        prompts=(prompt,),
        max_tokens=num_tokens,
        repeats=2,
        warmup_max_requests=0,
        fresh_prefixes=False,
        temperature=0,
        seed=1,
        request_timeout_s=90,
    )
    with real.server(**flags) as target:
        return measure(
            target, load_of(workload), Bench(engine, SystemClock(), lambda *_: None, ServerConfig(flags=flags))
        )


def accepted(measurement: Measurement) -> list[int | None]:
    return [request.num_accepted_tokens for request in measurement.requests]


def test_ngram_mod_knows_what_it_has_written_and_that_is_noticed(real: Real) -> None:
    found = measured(real, Innocent(), MOD, STORY, 64)
    first, second = accepted(found)
    assert first is not None
    assert second is not None
    assert second > first + 10
    assert any("a cache of the server may flatter them" in doubt for doubt in found.doubts)


def test_ngram_mod_is_measured_with_each_text_once(real: Real) -> None:
    found = measured(real, LlamaCpp(), MOD, STORY, 4)
    assert found.metrics["num_repeats"] == 1
    assert len(found.requests) == 1
    assert "1 instead of 2 passes" in found.doubts[-1]


def test_a_drafter_that_looks_at_its_own_request_alone_gains_nothing_from_repeats(real: Real) -> None:
    # Not ngram-map-k or -k4v: they learn from request to request which drafts to leave, and draft less.
    first, second = measured(real, LlamaCpp(), SIMPLE, Prompt(id="copy", text=COPY), 24).requests
    assert first.num_accepted_tokens == second.num_accepted_tokens
    assert first.num_drafted_tokens == second.num_drafted_tokens
    assert first.num_accepted_tokens
