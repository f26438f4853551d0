"""Reading what a llama.cpp server says: streamed answers, the metrics page, the log. All of it is untrusted."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sweeper.engines.base import Diagnosis, Generation, StreamedResponse
from sweeper.engines.openai_stream import SHOWN, count, read_stream
from sweeper.errors import FailureKind


def parse_stream(response: StreamedResponse) -> Generation:
    """The answer of /v1/chat/completions with `stream`. Raises ValueError when it is not complete and sensible.

    llama.cpp leaves `draft_n` out when nothing was drafted, so 0 is known only if its timings are there.
    """
    stream = read_stream(response)
    num_output = count(stream.usage, "completion_tokens")
    if num_output is None and (num_output := count(stream.timings, "predicted_n")) is None:
        raise ValueError("the answer does not say how many tokens it has (neither usage nor timings)")
    drafted, accepted = count(stream.timings, "draft_n"), count(stream.timings, "draft_n_accepted")
    if stream.timings:
        drafted, accepted = drafted or 0, accepted or 0
        if not accepted <= drafted:
            raise ValueError(f"the answer claims {accepted} accepted of {drafted} drafted tokens")
    prompt_ms, decode_ms = (_duration(stream.timings, name) for name in ("prompt_ms", "predicted_ms"))
    return Generation(
        text="".join(stream.text),
        num_output_tokens=num_output,
        ttft_ms=stream.chunk_ms[0] if stream.chunk_ms else None,
        num_prompt_tokens=count(stream.usage, "prompt_tokens"),
        num_drafted_tokens=drafted,
        num_accepted_tokens=accepted,
        server_decode_ms=decode_ms,
        server_e2e_ms=None if prompt_ms is None or decode_ms is None else prompt_ms + decode_ms,
        chunk_ms=tuple(stream.chunk_ms),
        finish_reason=stream.finish_reason,
    )


def _duration(data: Mapping[str, Any], name: str) -> float | None:
    """A duration, None when absent. Raises ValueError when it is not one."""
    value = data.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e12:
        raise ValueError(f"{name} is {str(value)[:SHOWN]!r}, not a duration")
    return float(value)


@dataclass(frozen=True)
class _Sign:
    """Log lines that match one of `patterns` show a failure of this kind."""

    kind: FailureKind
    message: str
    patterns: tuple[str, ...]

    def evidence(self, lines: list[str]) -> tuple[str, ...]:
        """The first lines that match, bounded."""
        pattern = re.compile("|".join(self.patterns), re.IGNORECASE)
        return tuple(line.strip()[:SHOWN] for line in lines if pattern.search(line))[:5]


_SIGNS = (
    # The first sign with evidence counts: causes stand before their consequences.
    _Sign(
        FailureKind.OUT_OF_MEMORY,
        "the server ran out of memory",
        # Not "failed to fit params to free device memory": a warning, after which the load goes on.
        ("out of memory", "bad_alloc", r"(failed|unable) to allocate .*buffer", "ErrorOutOfDeviceMemory"),
    ),
    _Sign(
        FailureKind.UNSUPPORTED,
        "the server refused an argument",
        (
            "error: (invalid |unknown )?argument",
            "error while handling argument",
            "argument has been removed",
            "unknown speculative type",
        ),
    ),
    _Sign(FailureKind.UNSUPPORTED, "the draft model could not be loaded", ("failed to load draft model",)),
    _Sign(
        FailureKind.UNSUPPORTED,
        "the server cannot speculate this way with these models",
        (
            "failed to initialize speculative",
            "doesn't contain MTP layers",
            "failed to create MTP context",
            "no target_layer_ids",
            "vocabs are not compatible",
        ),
    ),
    _Sign(FailureKind.HOST_DIRTY, "the server's port was taken", ("couldn't bind",)),
    _Sign(FailureKind.SERVER_CRASH, "the model could not be loaded", ("failed to load model",)),
    _Sign(FailureKind.SERVER_CRASH, "the server aborted itself", ("GGML_ASSERT", "terminate called")),
)

_SIGNALS = {4: "SIGILL", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 11: "SIGSEGV"}
"""Signals by which a process ends through its own fault. SIGKILL is not one: anybody may have sent it."""


def diagnose_log(log: str, exit_code: int | None) -> Diagnosis | None:
    """What went wrong; None when neither the log nor the exit code shows it."""
    lines = log.splitlines()
    for sign in _SIGNS:
        if evidence := sign.evidence(lines):
            return Diagnosis(sign.kind, sign.message, evidence)
    if exit_code is not None and (name := _SIGNALS.get(exit_code - 128)):
        last = tuple(line.strip()[:SHOWN] for line in lines[-5:])
        return Diagnosis(FailureKind.SERVER_CRASH, f"the server died of {name} (exit code {exit_code})", last)
    return None
