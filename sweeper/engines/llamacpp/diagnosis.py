"""Why a llama.cpp server died, or serves without the speculation that was asked for, from its log and exit code.

Wordings come from runs of the wheel (tests/data/llamacpp), from the sources of llama.cpp, and from public bug
reports; LC is ggml-org/llama.cpp.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from sweeper.engines.base import Diagnosis
from sweeper.errors import FailureKind
from sweeper.text import plain, without_codes

_MAX_LOG, _MAX_LINE, _MAX_EVIDENCE = 2_000_000, 1_500, 5


@dataclass(frozen=True)
class _Sign:
    """Log lines that match `pattern` show a failure of this kind.

    `survivable`: a server may say it on its way to serving (a measurement of the memory that was given up, a
    smaller buffer that was taken instead): it counts only after the last line that tells of service.
    """

    kind: FailureKind
    message: str
    pattern: re.Pattern[str]
    survivable: bool


def _sign(kind: FailureKind, message: str, *patterns: str) -> _Sign:
    return _Sign(kind, message, re.compile("|".join(patterns), re.IGNORECASE), survivable=True)


def _always(kind: FailureKind, message: str, *patterns: str) -> _Sign:
    return _Sign(kind, message, re.compile("|".join(patterns), re.IGNORECASE), survivable=False)


_SIGNS: Sequence[_Sign] = (
    # The first sign with evidence counts: causes stand before their consequences.
    _sign(
        FailureKind.OUT_OF_MEMORY,
        "the server ran out of memory",
        # Not "failed to fit params to free device memory": a warning, after which the load goes on.
        r"out of memory|bad_alloc|(?:failed|unable) to allocate .*buffer|ErrorOutOfDeviceMemory",
    ),
    _sign(
        FailureKind.UNSUPPORTED,
        "the server refused an argument",
        r"error: (?:invalid |unknown )?argument|error while handling argument|argument has been removed",
        r"unknown speculative type",
    ),
    _always(
        FailureKind.UNSUPPORTED,
        "the draft's vocabulary is not the target's: name a draft that was made for this model",
        # common/speculative.cpp; koboldcpp#2325, LC#3812.
        r"draft (?:model )?(?:vocab|special tokens|bos|eos)\b.{0,60}must (?:closely )?match",
        r"vocabs are not compatible",
    ),
    _sign(
        FailureKind.UNSUPPORTED,
        "this version cannot load the model or the draft: it does not know its architecture or its tensors",
        # src/llama-model-loader.cpp; LC#10759, LC#6665, beellama.cpp#4, beellama.cpp#92.
        r"unknown model architecture|missing tensor '|tensor '[^']{1,100}' not found|wrong number of tensors",
        r"tensor '[^']{1,100}' has wrong shape|unknown pre-tokenizer type|key not found in model",
    ),
    _always(
        FailureKind.UNSUPPORTED,
        "the server cannot speculate this way with these models",
        r"failed to initialize speculative|doesn't contain MTP layers|failed to create MTP context",
        # The last one is said at each request: lms#610, LC#24541.
        r"no target_layer_ids|failed to process speculative batch",
    ),
    _sign(
        FailureKind.UNSUPPORTED,
        "the model or the draft cannot work with these settings (cache types, flash attention, its target)",
        # src/llama-context.cpp, llama_init_from_model; ik_llama.cpp#645, llama-cpp-python#2361.
        r"cache quantization requires flash|requires ctx_other to be set|failed to initialize the context:",
    ),
    _sign(FailureKind.UNSUPPORTED, "the draft model could not be loaded", r"failed to load draft model"),
    _always(FailureKind.HOST_DIRTY, "the server's port was taken", r"couldn't bind"),
    _sign(FailureKind.SERVER_CRASH, "the model could not be loaded", r"failed to load model"),
    _sign(
        FailureKind.SERVER_CRASH,
        "a call to the GPU failed",
        # ggml-cuda.cu, ggml_cuda_error: LC#27749, LC#24310, LC#27430; Vulkan: LC#19955, LC#27306, LC#27458.
        r"\b(?:CUDA|ROCm|MUSA) error\b|vk::\w+Error|\bdevice lost\b|DeviceLost\b|Memory access fault by GPU",
    ),
    _always(
        FailureKind.SERVER_CRASH,
        "the server aborted itself",
        # An assertion of the C library, too, in builds that keep them: LC#26648.
        r"GGML_ASSERT|GGML_ABORT|terminate called|: Assertion [`'].{1,200}' failed",
    ),
)

_SERVES = re.compile(r"\blistening on http|\bmodel loaded\b")
_ANOTHER_TRY = "retrying without pipeline parallelism"
"""After a buffer that did not fit: a smaller one is tried (LC#26297)."""

_FITTING = "warning is normal during memory fitting"
"""In a complaint of every load with such a draft: only of a server that has died is it a cause (LC#24443)."""

_SIGNALS = {4: "SIGILL", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 11: "SIGSEGV"}
"""Signals by which a process ends through its own fault. SIGKILL is not one: anybody may have sent it."""


def diagnose_log(log: str, exit_code: int | None) -> Diagnosis | None:
    """What went wrong; None when neither the log nor the exit code shows it. Never raises."""
    lines = [line[:_MAX_LINE] for line in without_codes(log[-_MAX_LOG:]).splitlines()]
    if exit_code is None:
        lines = [line for line in lines if _FITTING not in line]
    recent = lines[_survived(lines) :]
    for each in _SIGNS:
        if found := [line for line in (recent if each.survivable else lines) if each.pattern.search(line)]:
            return Diagnosis(each.kind, each.message, tuple(plain(line) for line in found[:_MAX_EVIDENCE]))
    code = exit_code or 0
    if name := _SIGNALS.get(-code if code < 0 else code - 128):
        last = tuple(plain(line) for line in lines[-_MAX_EVIDENCE:])
        return Diagnosis(FailureKind.SERVER_CRASH, f"the server died of {name} (exit code {exit_code})", last)
    return None


def _survived(lines: Sequence[str]) -> int:
    """How many lines the server has outlived: up to where it served, or tried again with less."""
    return max(
        (at + 1 for at, line in enumerate(lines) if _ANOTHER_TRY in line or _SERVES.search(line)), default=0
    )
