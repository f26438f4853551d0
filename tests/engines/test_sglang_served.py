"""What words mean once the server has served: what cannot work would have failed at the first request."""

from __future__ import annotations

import pytest

from tests.engines.test_sglang_diagnosis import (
    BATCH,
    CRASH,
    HANG,
    KILLED,
    LOADING,
    REFUSED,
    SERVING,
    diagnose,
    died,
)

WORDS_OF_REFUSALS = [
    "RuntimeError: Sizes of tensors must match except in dimension 1. Expected size 3 but got size 2",
    "RuntimeError: The size of tensor a (96) must match the size of tensor b (90) at non-singleton dimension 1",
    "RuntimeError: speculative decoding verify produced NaN",
    "FileNotFoundError: [Errno 2] No such file or directory: '/models/x/lora.json'",
]


@pytest.mark.parametrize("line", WORDS_OF_REFUSALS)
@pytest.mark.parametrize("decode_lines", [1, 4])
def test_words_of_a_refusal_condemn_nothing_once_the_server_has_decoded(line: str, decode_lines: int) -> None:
    found = diagnose(died(line, before=LOADING + SERVING + decode_lines * BATCH))
    assert found.kind is CRASH
    assert line[:60] in found.message


@pytest.mark.parametrize("line", WORDS_OF_REFUSALS)
@pytest.mark.parametrize("before", [LOADING, LOADING + SERVING])
def test_words_of_a_refusal_condemn_the_configuration_until_the_first_decode_line(line: str, before: str) -> None:
    assert diagnose(died(line, before=before) + BATCH).kind is REFUSED


def test_a_refusals_words_outside_a_traceback_are_still_shown_when_the_server_had_served() -> None:
    found = diagnose(SERVING + BATCH + "mat1 and mat2 shapes cannot be multiplied (4x7 and 2x7)\n" + KILLED)
    assert (found.kind, found.message) == (CRASH, "the server died while it served")
    assert "shapes cannot be multiplied" in found.evidence[0]


def test_a_collective_watchdog_that_got_stuck_is_a_hang_even_while_the_process_lives() -> None:
    stuck = "[rank6]:[F1019 01:14:03.3] ProcessGroupNCCL's watchdog got stuck for 600 seconds without progress.\n"
    assert diagnose(SERVING + 4 * BATCH + stuck, None).kind is HANG
    assert diagnose(SERVING + 4 * BATCH + stuck + KILLED).kind is HANG
