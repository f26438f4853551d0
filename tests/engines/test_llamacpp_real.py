"""The real server does what the engine's rules say: what drafts, is ignored, is refused, or crashes."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest
import xllamacpp

from sweeper.engines.llamacpp.flags import NUMBERS, TYPES
from sweeper.errors import FailureKind, TrialError
from sweeper.measuring.benchmark import measure
from sweeper.records import RequestResult
from sweeper.spec import FlagValue
from tests.engines.real import ENGINE, Real, bench, reference, workload
from tests.fakes import load_of

pytestmark = pytest.mark.engine

NGRAM: dict[str, FlagValue] = {
    "spec_type": "ngram-simple",
    "spec_ngram_simple_size_n": 3,
    "spec_ngram_simple_size_m": 4,
}
DRAFT: dict[str, FlagValue] = {"spec_type": "draft-simple", "draft": True}


def failure(real: Real, **flags: FlagValue) -> TrialError:
    with pytest.raises(TrialError) as caught:
        real.measure(**flags)
    assert real.trace.stop is None or real.trace.stop.port_free
    return caught.value


# What drafts.


def test_every_kind_of_drafting_gives_the_same_text_in_fewer_steps(real: Real) -> None:
    plain = real.measure()
    assert plain.metrics["num_drafted_tokens"] == 0
    assert plain.metrics["tokens_per_step"] == 1
    assert "accept_length" not in plain.metrics
    assert real.trace.effective == {"parallel": 1, "ctx_size": 1024}
    assert real.trace.stop is not None
    assert real.trace.stop.exit_code == 0
    for flags in (NGRAM, DRAFT):
        fast = real.measure(**flags)
        (request,) = fast.requests
        assert request.output_sha256 == plain.requests[0].output_sha256
        assert request.num_drafted_tokens is not None
        assert request.num_drafted_tokens > 0
        assert request.num_accepted_tokens == sum(fast.accepted_per_position)
        assert fast.metrics["accept_length"] > 1.5
        assert fast.metrics["tokens_per_step"] > 1.2
        assert ENGINE.diagnose(real.trace.log.text(), 0) is None


def test_the_server_reports_accept_length_as_it_is_computed_here(real: Real) -> None:
    measured = real.measure(**NGRAM)
    assert f"mean len =  {measured.metrics['accept_length']:.2f}" in real.trace.log.text()


# What is ignored: the same drafts as without it, so `canonical` drops it.


@pytest.mark.parametrize(
    ("flags", "useless"),
    [
        (NGRAM, {"spec_ngram_simple_min_hits": 100}),
        (NGRAM, {"spec_draft_n_max": 0, "spec_draft_n_min": 50, "draft": True}),
        (NGRAM, {"spec_type": "ngram-simple,ngram-simple"}),
        (DRAFT, {"spec_draft_p_split": 0.99}),
    ],
)
def test_flag_without_effect_changes_no_draft(
    real: Real, flags: dict[str, FlagValue], useless: dict[str, FlagValue]
) -> None:
    with_it, without = real.measure(**{**flags, **useless}), reference(real, **flags)
    assert with_it.requests[0].num_drafted_tokens == without.requests[0].num_drafted_tokens
    assert with_it.accepted_per_position == without.accepted_per_position


@pytest.mark.parametrize(
    "flags",
    [
        {"draft": True},
        {**NGRAM, "spec_type": "none,ngram-simple"},
        {**NGRAM, "spec_ngram_simple_size_n": 5},
        {**DRAFT, "spec_draft_n_min": 4},
        {**DRAFT, "spec_draft_p_min": 1.5},
        {"spec_type": "draft-eagle3"},
        {"spec_type": "ngram-mod", "spec_ngram_mod_n_match": 3, "spec_ngram_mod_n_max": 0},
    ],
)
def test_combination_that_silently_drafts_nothing(real: Real, flags: dict[str, FlagValue]) -> None:
    assert real.measure(**flags).metrics["num_drafted_tokens"] == 0


def test_defaults_written_out_here_are_those_of_the_server() -> None:
    speculative: Any = xllamacpp.CommonParams().speculative
    for name in (name for names in TYPES.values() for name in names):
        part, _, key = name.removeprefix("spec_").replace("ngram_", "ngram-").partition("_")
        if part.startswith("ngram-"):
            kind = next(k for k in ("map_k4v", "map_k", "simple", "mod") if name.startswith(f"spec_ngram_{k}_"))
            found = getattr(getattr(speculative, f"ngram_{kind}"), name.removeprefix(f"spec_ngram_{kind}_"))
        else:
            found = getattr(speculative.draft, key)
        assert found == NUMBERS[name].default, name


def test_types_known_here_are_those_of_the_server() -> None:
    prefix = "COMMON_SPECULATIVE_TYPE_"
    names = {
        name.removeprefix(prefix).lower().replace("_", "-") for name in dir(xllamacpp.common_speculative_type)
    }
    assert set(TYPES) <= names


# What is refused, or gives speculation up.


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ({"draft_max": 3}, "--draft-max"),
        ({"spec_ngram_size_n": 3}, "--spec-ngram-size-n"),
        ({"spec_type": "nonsense"}, "unknown speculative type: nonsense"),
        ({"spec_ngram_simple_size_n": 0}, "must be between 1 and 1024"),
        ({"spec_ngram_map_k_size_m": 1025}, "must be between 1 and 1024"),
        ({"spec_type": "draft-mtp"}, "doesn't contain MTP layers"),
        ({"spec_type": "draft-simple"}, "requires a draft context"),
        ({"spec_type": "draft-eagle3", "draft": True}, "not eagle3"),
        ({"spec_type": "draft-dflash", "draft": True}, "no target_layer_ids"),
        ({"spec_type": "draft-simple", "spec_draft_model": "/no/such.gguf"}, "/no/such.gguf"),
    ],
)
def test_what_the_server_refuses_is_unsupported(real: Real, flags: dict[str, FlagValue], said: str) -> None:
    error = failure(real, **flags)
    assert error.kind is FailureKind.UNSUPPORTED, error
    assert any(said in line for line in error.evidence)


# What crashes.


def test_draft_of_no_tokens_aborts_the_server_on_its_first_request(real: Real) -> None:
    error = failure(real, **DRAFT, spec_draft_n_max=0)
    assert error.kind is FailureKind.SERVER_CRASH
    assert "exit code 134" in str(error)
    assert any("GGML_ASSERT" in line for line in error.evidence)


def test_server_killed_in_the_middle_of_a_request_is_a_crash_with_its_log(real: Real) -> None:
    def kill_when_busy() -> None:
        handle = real.trace.handle
        assert handle is not None
        for _ in range(600):
            if b"processing task" in real.launcher.logs(handle):
                os.kill(server_pid(handle.pid), signal.SIGKILL)
                return
            pause.wait(0.05)

    def measure_until_killed() -> None:
        with real.server() as target:
            threading.Thread(target=kill_when_busy).start()
            measure(
                target,
                load_of(workload(max_tokens=900)),
                bench(lambda *_: None),
            )

    pause = threading.Event()
    with pytest.raises(TrialError) as caught:
        measure_until_killed()
    assert caught.value.kind is FailureKind.SERVER_CRASH
    assert "exit code 137" in str(caught.value)
    assert caught.value.evidence
    assert b"processing task" in real.trace.log.content()


def test_stopped_server_leaves_its_port_free(real: Real) -> None:
    results: list[RequestResult] = []
    with real.server() as target:
        measure(
            target,
            load_of(workload(max_tokens=2)),
            bench(lambda r, *_: results.append(r)),
        )
        first = real.trace
    assert first.stop is not None
    assert first.stop.port_free
    assert first.stop.signals == ("TERM",)
    assert len(results) == 1


def server_pid(leader: int) -> int:
    """The newest descendant of the leader: the server itself."""
    pid = leader
    while children := Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        pid = int(children[-1])
    return pid
