"""What the real SGLang 0.5.23 said on a CPU, understood: a version that the readers were not written from."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sweeper.engines.base import StreamedResponse
from sweeper.engines.sglang import SGLang
from sweeper.errors import FailureKind

ENGINE = SGLang()
SAVED = Path(__file__).parents[1] / "data" / "sglang" / "0.5.23-cpu"
CASES = sorted(folder.name for folder in SAVED.iterdir() if folder.is_dir())
SERVED = [name for name in CASES if not name.startswith("fail_")]
FAILED = [name for name in CASES if name.startswith("fail_")]
ACCEPTED = {"eagle3_chain": 4.0, "eagle3_wrong_flag": 1.0, "standalone": 3.5, "ngram_chain": 2.0}
"""Accept length of the captured answer, at least (of the wrong flag: about)."""


def log_of(case: str) -> str:
    return (SAVED / case / "server.log").read_text(errors="replace")


def info_of(case: str) -> dict[str, object]:
    found: dict[str, object] = json.loads((SAVED / case / "server_info.json").read_text())
    return found


def stream_of(case: str) -> StreamedResponse:
    lines = (SAVED / case / "generate_stream.sse.txt").read_bytes().splitlines()
    return StreamedResponse(tuple((float(at), line) for at, line in enumerate(lines)), float(len(lines)))


@pytest.mark.parametrize("case", SERVED)
@pytest.mark.parametrize("exit_code", [None, 0, 137])
def test_a_good_run_shows_no_failure_although_its_log_holds_tracebacks(case: str, exit_code: int | None) -> None:
    assert ENGINE.diagnose(log_of(case), exit_code) is None
    assert ENGINE.fatal_sign(log_of(case)) == ""
    assert ENGINE.readiness(log_of(case)) == "ready"


@pytest.mark.parametrize("case", FAILED)
def test_a_failed_start_is_the_configurations_with_the_line_that_says_so(case: str) -> None:
    found = ENGINE.diagnose(log_of(case), 137)
    assert found is not None
    assert found.kind is FailureKind.UNSUPPORTED
    assert found.evidence


@pytest.mark.parametrize("case", SERVED)
def test_the_server_is_known_by_its_name_and_model_and_reports_its_settings(case: str) -> None:
    identity = ENGINE.identity(info_of(case))
    assert identity.nonce
    assert identity.model_path.startswith("/models")
    effective = ENGINE.effective(info_of(case))
    assert effective["device"] == "cpu"
    assert effective["disable_cuda_graph"] is True
    assert ("speculative_algorithm" in effective) == (not case.startswith(("baseline", "tiny_baseline")))


@pytest.mark.parametrize("case", SERVED)
def test_an_answer_counts_what_its_server_counted(case: str) -> None:
    answer = ENGINE.parse(stream_of(case))
    assert answer.text
    assert answer.num_output_tokens > 8
    if case.startswith(("baseline", "tiny_baseline")):
        assert answer.num_verify_steps is None
        return
    assert answer.num_verify_steps
    assert answer.num_accepted_tokens is not None
    assert sum(answer.accept_histogram) == answer.num_verify_steps
    length = 1 + answer.num_accepted_tokens / answer.num_verify_steps
    if case == "eagle3_wrong_flag":
        assert length < 1.05
    elif case in ACCEPTED:
        assert length >= ACCEPTED[case]


def test_fewer_draft_tokens_than_asked_for_are_seen() -> None:
    assert ENGINE.effective(info_of("eagle3_draft_tokens_rewritten"))["speculative_num_draft_tokens"] == 4
