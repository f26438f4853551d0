"""What the real server writes with and without speculation, to the end of the text and beyond it."""

from __future__ import annotations

import datetime

import pytest

from launchers.clock import SystemClock
from sweeper.engines.base import Generation
from sweeper.http import Target, get_page, send
from sweeper.outputs import compare_outputs
from sweeper.records import LaunchRecord, Purpose, TrialRecord, TrialState
from sweeper.spec import FlagValue, ServerConfig
from sweeper.text_marks import marks
from tests.engines.real import COPY, ENGINE, Real, workload

pytestmark = pytest.mark.engine

TEXTS = (COPY, "Write a short story about a fisherman who finds an old map.")
NGRAM: dict[str, FlagValue] = {
    "spec_type": "ngram-simple",
    "spec_ngram_simple_size_n": 3,
    "spec_ngram_simple_size_m": 4,
}


def ask(target: Target, text: str, max_tokens: int, ignore_eos: bool = False) -> Generation:
    asked = workload().model_copy(update={"ignore_eos": ignore_eos})
    prompt = asked.prompts[0].model_copy(update={"text": text})
    return ENGINE.parse(send(target, ENGINE.request(prompt, asked, max_tokens), 90, SystemClock()))


def written(target: Target) -> dict[str, str]:
    return {f"p{n}#0": marks(ask(target, text, 20).text) for n, text in enumerate(TEXTS)}


def trial(number: int, launches: list[dict[str, str]]) -> TrialRecord:
    now, config = datetime.datetime.now(datetime.UTC), ServerConfig()
    records = [
        LaunchRecord(
            trial_number=number,
            launch_number=n,
            purpose=Purpose.SEARCH,
            requested=config,
            canonical=config,
            host="here",
            started_at=now,
            ended_at=now,
            outputs=outputs,
        )
        for n, outputs in enumerate(launches)
    ]
    state = TrialState.COMPLETE
    return TrialRecord(
        number=number, key="", state=state, requested=config, canonical=config, launches=tuple(records)
    )


def test_a_fixed_amount_of_work_goes_past_the_end_and_every_step_of_it_is_known(real: Real) -> None:
    with real.server(**NGRAM) as target:
        short = ask(target, COPY, 48)
        before = ENGINE.counters(get_page(target, "/metrics", 5).decode())
        long = ask(target, COPY, 48, ignore_eos=True)
        after = ENGINE.counters(get_page(target, "/metrics", 5).decode())
        speculated = written(target)
    assert (short.finish_reason, long.finish_reason, long.num_output_tokens) == ("stop", "length", 48)
    assert short.num_output_tokens < 48
    assert long.text.startswith(short.text)
    assert None not in (before.num_accepted_tokens, after.num_accepted_tokens)
    grown = (after.num_accepted_tokens or 0) - (before.num_accepted_tokens or 0)
    assert grown == long.num_accepted_tokens
    assert sum(after.accepted_per_position) == after.num_accepted_tokens
    assert long.chunk_ms[0] == long.ttft_ms
    assert long.server_e2e_ms is not None
    assert long.server_e2e_ms > (long.server_decode_ms or 0) > 0

    with real.server() as target:
        plain = [written(target), written(target)]
    assert plain[0] == plain[1]  # this engine repeats itself, on one thread
    found = compare_outputs(trial(1, [speculated]), trial(0, plain))
    assert (found.num_compared, found.own_compared, found.own_different, found.corrupt) == (2, 2, 0, False)
    assert found.first_difference is None or found.first_difference >= 16
