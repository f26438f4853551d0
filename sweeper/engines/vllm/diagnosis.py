"""Why a vLLM server died or hangs, from its log and its exit code.

Wordings come from the source of 0.32.0 and from captures of it on a CPU; the host's own stand in signs.py. The API
server only says that its engine failed: the root cause stands above, in the lines of EngineCore or of a worker.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from sweeper.engines.base import Diagnosis
from sweeper.engines.signs import (
    CALLS,
    COMMAND_LINE,
    GPU_FAULTS,
    GPU_MEMORY,
    HOST,
    HOST_MEMORY,
    KERNELS,
    NATIVE_FAULT,
    NETWORK,
    RDMA,
    Sign,
    certain,
)
from sweeper.engines.vllm.log import STARTED, fatal_sign
from sweeper.engines.vllm.refusals import REFUSALS
from sweeper.errors import FailureKind
from sweeper.text import plain, without_codes

_MAX_LOG, _MAX_LINE, _MAX_EVIDENCE = 2_000_000, 1_500, 5

_TAKEN = certain(
    FailureKind.HOST_DIRTY,
    "GPU memory is held by something else: less is free than gpu_memory_utilization asks for",
    r"Free memory on device .{0,200}is less than desired GPU memory utilization",
)
_ROOM = certain(
    FailureKind.OUT_OF_MEMORY,
    "the weights leave no room for the KV cache: raise gpu_memory_utilization, or lower max_model_len",
    r"No available memory for the cache blocks",
    r"To serve at least one request with the model's max seq len",
    r"is larger than the maximum number of tokens that can be stored in KV cache",
)

_DEATHS: Sequence[Sign] = (
    certain(
        FailureKind.SERVER_HANG,
        "the GPUs waited for each other in vain (a collective operation or a worker's answer timed out)",
        r"collective operation timeout|RPC call to \w+ timed out|^TimeoutError: RPC call",
        r"watchdog got stuck for \d+ seconds|DistStoreError: Socket Timeout",
    ),
    NETWORK,
    RDMA,
    *CALLS,
)

_VAGUE: Sequence[Sign] = (
    # Said whatever the cause was: an exception above it tells more.
    certain(
        FailureKind.SERVER_CRASH,
        "a worker died: see the kernel's log (dmesg) for want of memory, or somebody killed it",
        # The last two: Ray, and versions before 0.9; vllm#5785, vllm#15295.
        r"Worker proc \S{1,80} died unexpectedly|Worker unexpectedly exits with|Worker \w{1,80} pid \d+ died",
    ),
    certain(FailureKind.SERVER_CRASH, "the engine died while it served", r"EngineCore encountered a fatal error"),
    certain(
        FailureKind.SERVER_CRASH,
        "the engine died",
        r"EngineDeadError|Engine core proc \S{1,60} died unexpectedly|EngineCore failed to start",
        r"Engine core initialization failed",
    ),
    NATIVE_FAULT,
)

SIGNS: Sequence[Sign] = (
    *COMMAND_LINE,
    *HOST,
    _TAKEN,
    _ROOM,
    HOST_MEMORY,
    GPU_MEMORY,
    *KERNELS,
    *REFUSALS,
    *GPU_FAULTS,
    *_DEATHS,
    *_VAGUE,
)
"""In the order in which evidence counts: causes stand before what they bring about."""

_PREFIX = re.compile(
    r"^(?:[\w.-]{1,60} +\| )?(?:\([^()\s]{1,60} pid=\d+\) )?"
    r"(?:(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) \d\d-\d\d [\d:.]{5,15} \[?[\w.-]{1,60}:\d+\] ?)?"
    r"(?:\[rank\d+\]: ?(?!\[))?"
)
"""Who speaks, when and where: before every line of vLLM's own, tracebacks included."""

_NOISE = re.compile(
    r"^\s*File \"|^ {4}|non-default args: |Initializing a V1 LLM engine|INFO: +[\d.:a-f\[\]]+ - \""
    r"|UserWarning|FutureWarning|NCCL INFO|it/s\]|Found ulimit of"
)
_SIGNALS = {4: "SIGILL", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 11: "SIGSEGV"}
_SAYS_NOTHING = frozenset({None, 0, 137, 143, 130, 131, -9, -15, -2, -3})
"""Exit codes of servers that were stopped, or of which nothing is known."""

_RETOLD = re.compile(
    r"^RuntimeError: Worker failed with error '(?=(?:\w+\.)*\w+(?:Error|Exception): )(.{1,1000})', please"
)
"""What a worker raised, told again by the engine (multiproc_executor.py; vllm#41027)."""

_RAISED = re.compile(r"^(?:\w+\.)*\w*(?:Error|Exception)(?:: .*)?$")
_DETERMINISTIC = re.compile(
    r"^(?:\w+\.)*(?:ValueError|AssertionError|NotImplementedError|TypeError|AttributeError|KeyError|IndexError"
    r"|NameError|OSError|\w*ValidationError|JSONDecodeError)\b"
)
"""Raised by what was asked for, not by circumstances."""
_WAITING = re.compile(r"No available shared memory broadcast block found in \d+ seconds")
_CONSEQUENCE = re.compile(
    r"Engine core initialization failed|EngineDeadError|BrokenPipeError|SystemExit|CancelledError"
)


def diagnose_log(log: str, exit_code: int | None) -> Diagnosis | None:
    """What went wrong; None when neither the log nor the exit code shows it. Never raises."""
    lines = [_RETOLD.sub(r"\1", _PREFIX.sub("", line[:_MAX_LINE], count=1).rstrip()) for line in _split(log)]
    suspects = [line for line in dict.fromkeys(lines) if line and not _NOISE.search(line)]
    died = exit_code not in _SAYS_NOTHING or bool(fatal_sign(log))
    for each in SIGNS:
        if (died or not each.fatal_only) and (found := [line for line in suspects if each.pattern.search(line)]):
            return _about_sign(each, found, suspects, was_ready=STARTED in log)
    if died and (causes := _own_exceptions(suspects)):
        return _about_exception(causes, was_ready=STARTED in log)
    return _about_death(lines, exit_code) or _about_hang(lines, was_ready=STARTED in log)


def _split(log: str) -> list[str]:
    return re.split(r"[\r\n]+", without_codes(log[-_MAX_LOG:]))


def _own_exceptions(lines: Sequence[str]) -> list[str]:
    """The last lines of tracebacks that tell a cause, not what it brought about."""
    return [line for line in lines if _RAISED.match(line) and not _CONSEQUENCE.search(line)]


def _about_sign(each: Sign, found: Sequence[str], lines: Sequence[str], *, was_ready: bool) -> Diagnosis:
    """A known sign. What a server that has served refuses may go well another time."""
    if each in _VAGUE and (causes := _own_exceptions(lines)):
        return _about_exception(causes, was_ready=was_ready)
    if each.kind is FailureKind.UNSUPPORTED and was_ready:
        message = f"the server died while it served: {each.message}"
        return Diagnosis(FailureKind.SERVER_CRASH, message, _bounded(found))
    return Diagnosis(each.kind, each.message, _bounded(found))


def _about_exception(causes: Sequence[str], *, was_ready: bool) -> Diagnosis:
    """Exceptions that no sign knows, the first one first. One that would be raised again is a refusal."""
    line = plain(causes[0], 200)
    if was_ready or not _DETERMINISTIC.match(causes[0]):
        return Diagnosis(FailureKind.SERVER_CRASH, f"the server died of an exception: {line}", _bounded(causes))
    return Diagnosis(FailureKind.UNSUPPORTED, f"the server refused to start: {line}", _bounded(causes))


def _about_death(lines: Sequence[str], exit_code: int | None) -> Diagnosis | None:
    """A death whose cause was not written down."""
    code = exit_code or 0
    name = _SIGNALS.get(-code if code < 0 else code - 128)
    if name is None:
        return None
    message = f"the server died of {name} (exit code {exit_code})"
    return Diagnosis(FailureKind.SERVER_CRASH, message, _bounded([line for line in lines if line.strip()]))


def _about_hang(lines: Sequence[str], *, was_ready: bool) -> Diagnosis | None:
    """A server that waited for its workers and said nothing else any more.

    It says so after a minute, also when they only compile: before it has served that is no sign (vllm#44185).
    """
    last = next((line for line in reversed(lines) if line and not _NOISE.search(line)), "")
    if not was_ready or not _WAITING.search(last):
        return None
    message = "the server stopped answering: its engine waits for its workers in vain"
    return Diagnosis(FailureKind.SERVER_HANG, message, _bounded([last]))


def _bounded(lines: Sequence[str]) -> tuple[str, ...]:
    """The last different lines, fit to be shown: eight ranks say everything eight times."""
    different = {re.sub(r"[\d.]+", "#", line): line for line in lines if line.strip()}
    return tuple(plain(line) for line in different.values())[-_MAX_EVIDENCE:]
