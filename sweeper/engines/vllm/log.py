"""vLLM's log while it starts: phases, progress, and signs that the server will never answer.

Format strings of 0.32.0, seen on a CPU; those of CUDA graphs and of compiling from its source. The whole log is
looked at every fraction of a second, so everything here is plain text search, from the end where possible.
"""

from __future__ import annotations

import re

from sweeper.text import plain

READY = "ready"
STARTED = "Application startup complete"

# A milestone and the phase that begins there; the newest one counts. A draft's weights follow the target's.
_MILESTONES = (
    ("Initializing a V1 LLM engine", "init distributed"),
    ("Starting to load model", "loading weights"),
    ("Loading safetensors checkpoint shards", "loading weights"),
    ("Loading drafter model", "loading draft weights"),
    ("Loading weights took", "loading weights"),
    ("Model loading took", "profiling memory"),
    ("Dynamo bytecode transform time", "compiling"),
    ("Compiling a graph for", "compiling"),
    ("torch.compile took", "profiling memory"),
    ("Available KV cache memory", "allocating KV cache"),
    ("KV cache size:", "allocating KV cache"),
    ("Capturing CUDA graphs", "capturing CUDA graphs"),
    ("Graph capturing finished", "warming up"),
    ("init engine (profile, create kv cache, warmup model) took", "warming up"),
    ("Starting vLLM server on", "warming up"),
)
_DRAFT = "Loading drafter model"

_FATAL = (
    "Engine core initialization failed",
    "EngineCore failed to start",
    "EngineCore encountered a fatal error",
    "AsyncLLM output_handler failed",
    "died unexpectedly, shutting down executor",
    "vllm.v1.engine.exceptions.EngineDeadError",
    "Fatal Python error",
    "terminate called after throwing",
    "error while attempting to bind on address",
)

_TQDM = re.compile(r"(\d{1,3})% Completed \| (\d{1,9})/(\d{1,9})|"
                   r"(\d{1,3})%[^|\r\n]{0,40}\|[^|\r\n]{0,40}\| *(\d{1,9})/(\d{1,9}) \[")  # fmt: skip


def readiness(log: str) -> str:
    """The phase of the start: starting, init distributed, loading weights, loading draft weights, compiling,
    profiling memory, allocating KV cache, capturing CUDA graphs, warming up, ready."""
    if STARTED in log:
        return READY
    at, phase = _newest(log)
    if at < 0:
        return "starting"
    drafting = phase == "loading weights" and 0 <= log.rfind(_DRAFT) < at
    return "loading draft weights" if drafting else phase


def progress(log: str) -> str:
    """How far the newest progress bar of the present phase has come, `45 % (28 of 62)`; empty without one."""
    if STARTED in log:
        return ""
    start = max(0, _newest(log)[0], len(log) - 4000)
    percent = ""
    for found in _TQDM.finditer(log, start):
        share, done, total = (found[n] or found[n + 3] for n in (1, 2, 3))
        percent = f"{share} % ({done} of {total})"
    return percent


def fatal_sign(log: str) -> str:
    """The first line after which the server will never answer again, though a process of it may live on."""
    found = [at for text in _FATAL if (at := log.find(text)) >= 0]
    return plain(_line(log, min(found))) if found else ""


def _newest(log: str) -> tuple[int, str]:
    """Where the newest milestone stands and the phase it begins; -1 when there is none."""
    return max((log.rfind(text), phase) for text, phase in _MILESTONES)


def _line(log: str, at: int) -> str:
    """The line around position `at`, at most a thousand characters of it on each side."""
    start = max(log.rfind("\n", 0, at), log.rfind("\r", 0, at)) + 1
    end = log.find("\n", at)
    return log[max(start, at - 1000) : min(end if end >= 0 else len(log), at + 1000)]
