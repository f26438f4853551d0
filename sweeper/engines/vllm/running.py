"""What a measured vLLM server shows to be otherwise than it was asked for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from sweeper.engines.vllm.rules import method_of
from sweeper.engines.vllm.table import WITHOUT_MODEL
from sweeper.spec import FlagValue
from sweeper.text import plain

BYPASS_ACCEPT_LENGTH = 1.05
BYPASS_STEPS = 200
"""A drafter of which so little is kept over so many verify steps is not made for this target."""

_GRAPHS = re.compile(r"CUDAGraphMode\.\w+ is not supported [^\n]{0,300}; setting cudagraph_mode=(\w+)[^\n]{0,100}")
_OFF = re.compile(r"[^\n]{0,200}disabling torch\.compile, CUDAGraphs|[^\n]{0,100}setting cudagraph_mode=NONE")
_BACKEND = re.compile(r"Using (\w{1,60}) (?:attention )?backend\b")


def running_mistakes(flags: Mapping[str, FlagValue], log: str) -> list[str]:
    """What the log shows to be otherwise than these flags ask, one line each."""
    return list(dict.fromkeys(plain(line) for line in _found(flags, log)))


def _found(flags: Mapping[str, FlagValue], log: str) -> Iterator[str]:
    if (reduced := _GRAPHS.search(log)) is not None:
        yield f"CUDA graphs are not used as usual: {reduced[0]}"
    elif flags.get("enforce_eager") is not True and "compilation_config" not in flags and _OFF.search(log):
        yield "CUDA graphs are off, though enforce_eager was not asked for"
    asked = flags.get("attention_backend")
    used = [found[1] for found in _BACKEND.finditer(log)]
    if isinstance(asked, str) and used and asked.upper() not in used:
        yield f"attention_backend: asked for {asked}, the log names {', '.join(dict.fromkeys(used))}"


def bypass(flags: Mapping[str, FlagValue], metrics: Mapping[str, float]) -> str:
    """Why the speculation that is asked for is not in force; empty when it is. N-grams may truly find nothing."""
    method = method_of(flags)
    if not method or method in WITHOUT_MODEL:
        return ""
    if metrics.get("num_drafted_tokens") == 0:
        return f"spec_method {method} was asked for, but not one token was drafted"
    steps, length = metrics.get("num_verify_steps", 0), metrics.get("accept_length")
    if length is None or length >= BYPASS_ACCEPT_LENGTH or steps < BYPASS_STEPS:
        return ""
    return (
        f"accept_length {length:.3f} over {steps:.0f} verify steps: the drafts are never kept. Is the draft model "
        f"made for this target, and for {method}?"
    )
