"""A log that is read piece by piece: bounded, and nothing of its two ends is lost."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from sweeper.serving.launch_log import HEAD_BYTES, TAIL_BYTES, LaunchLog

BIG = bytes(i % 251 for i in range(2 * (HEAD_BYTES + TAIL_BYTES)))


@given(cuts=st.lists(st.integers(0, len(BIG)), max_size=6))
def test_a_long_log_keeps_its_head_and_its_tail_however_it_arrives(cuts: list[int]) -> None:
    log = LaunchLog()
    edges = [0, *sorted(cuts), len(BIG)]
    for start, end in itertools.pairwise(edges):
        log.append(BIG[start:end])
    assert log.content().startswith(BIG[:HEAD_BYTES] + b"\n... ")
    assert log.content().endswith(b" bytes left out ...\n" + BIG[-TAIL_BYTES:])
    assert log.num_read == len(BIG)


def test_a_short_log_is_kept_whole() -> None:
    log = LaunchLog()
    log.append(b"one\n")
    log.append(b"two\n")
    assert log.content() == b"one\ntwo\n"


def test_undecodable_bytes_are_shown_as_escapes() -> None:
    log = LaunchLog()
    log.append(b"caf\xe9\n")
    assert log.text() == "caf\\xe9\n"
    log.text().encode()


def test_last_lines_are_few_and_short() -> None:
    log = LaunchLog()
    log.append(b"".join(b"%03d " % i + b"x" * 1000 + b"\n\n" for i in range(100)))
    lines = log.last_lines()
    assert len(lines) == 20
    assert lines[-1].startswith("099 ")
    assert all(len(line) == 300 for line in lines)
