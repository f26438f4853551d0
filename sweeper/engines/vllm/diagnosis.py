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
    Sign,
    certain,
    raised,
    sign,
)
from sweeper.engines.vllm.log import STARTED, fatal_sign
from sweeper.errors import FailureKind
from sweeper.text import plain, without_codes

_MAX_LOG, _MAX_LINE, _MAX_EVIDENCE = 2_000_000, 1_500, 5

_VALIDATION = r"^\s*Value error, .{0,1000}?"
"""Before what pydantic has a validator say, a line below the name of the model that was refused."""


def _refused(pattern: str) -> str:
    return rf"(?:{raised(pattern)})|(?:{_VALIDATION}(?:{pattern}))"


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

_REFUSALS: Sequence[Sign] = (
    sign(
        FailureKind.UNSUPPORTED,
        "the draft model does not suit the target: its vocabulary or its shape is another",
        _refused(r"[Vv]ocab.{0,60}(?:same|match|draft)|draft.{0,80} vocab|same vocabulary"),
        raised(r"size mismatch|shape mismatch|shapes cannot be multiplied|Attempted to load weight"),
        r"^(?:\w+\.)*AssertionError: Attempted to load weight|There is no module or parameter named",
    ),
    sign(
        FailureKind.UNSUPPORTED,
        "this version does not know the architecture of the model or the draft (an EAGLE-3 draft needs eagle3)",
        r"Model architectures .{0,300}not supported|does not recognize this architecture|no vLLM implementation",
        _refused(r"trust_remote_code|contains custom code|[Uu]nrecognized model in|[Uu]nrecognized configuration"),
    ),
    sign(
        FailureKind.UNSUPPORTED,
        "the server refused the speculative settings",
        _refused(
            r"prompt_lookup|num_speculative_tokens|[Ss]peculative|draft_tensor_parallel_size"
            r"|synthetic_acceptance|[Aa]sync scheduling"
        ),
        r"validation errors? for SpeculativeConfig",
    ),
    sign(
        FailureKind.UNSUPPORTED,
        "a model file cannot be read: check the path, the access rights and that the files are complete",
        r"Repo id must be|HFValidationError|is not a local folder|not a valid model identifier|[Gg]ated ?[Rr]epo",
        r"\b40[134] Client Error|RepositoryNotFoundError|LocalEntryNotFoundError|RevisionNotFoundError",
        _refused(r"Invalid repository ID or local directory|Cannot find any (?:model )?weights|[Nn]o config"),
        r"SafetensorError|HeaderTooLarge|header too large|MetadataIncompleteBuffer|InvalidHeader",
        raised(
            r"couldn't connect to 'https://huggingface|does not appear to have|[Cc]annot find the requested files"
        ),
    ),
    sign(
        FailureKind.UNSUPPORTED,
        "the model cannot be divided over so many GPUs",
        _refused(r"must be divisible by tensor parallel|attention heads .{0,60}divisible|World size .{0,60}GPUs"),
        r"invalid device ordinal|cudaErrorInvalidDevice\b",
    ),
    sign(
        FailureKind.UNSUPPORTED,
        "max_model_len is longer than the model's own context",
        _refused(r"User-specified max_model_len .{0,100}is greater than"),
    ),
    sign(
        FailureKind.UNSUPPORTED,
        "the quantization or its kernels do not fit this model or GPU",
        _refused(r"[Qq]uantization|[Qq]uantized|quant_method"),
    ),
    sign(
        FailureKind.UNSUPPORTED,
        "this attention backend does not serve this model, cache or GPU: choose another attention_backend",
        _refused(
            r"attention backend|Selected backend|No valid attention backend|CUDAGraphMode\.\w+ is not supported"
        ),
    ),
    sign(
        FailureKind.UNSUPPORTED,
        "a Python package of the host is missing or does not fit this version",
        r"^(?:\w+\.)*(?:ModuleNotFoundError|ImportError)\b",
    ),
    sign(
        FailureKind.UNSUPPORTED,
        "the server refused its settings",
        r"^(?:\w+\.)*ValidationError: |validation errors? for \w+Config\b",
    ),
)

_DEATHS: Sequence[Sign] = (
    certain(
        FailureKind.SERVER_HANG,
        "the GPUs waited for each other in vain (a collective operation or a worker's answer timed out)",
        r"collective operation timeout|RPC call to \w+ timed out|^TimeoutError: RPC call",
        r"watchdog got stuck for \d+ seconds|DistStoreError: Socket Timeout",
    ),
    *CALLS,
)

_VAGUE: Sequence[Sign] = (
    # Said whatever the cause was: an exception above it tells more.
    certain(
        FailureKind.SERVER_CRASH,
        "a worker died: see the kernel's log (dmesg) for want of memory, or somebody killed it",
        r"Worker proc \S{1,80} died unexpectedly",
    ),
    certain(FailureKind.SERVER_CRASH, "the engine died while it served", r"EngineCore encountered a fatal error"),
    certain(
        FailureKind.SERVER_CRASH,
        "the engine died",
        r"EngineDeadError|Engine core proc \S{1,60} died unexpectedly|EngineCore failed to start",
        r"Engine core initialization failed",
    ),
)

SIGNS: Sequence[Sign] = (
    *COMMAND_LINE,
    *HOST,
    _TAKEN,
    _ROOM,
    HOST_MEMORY,
    GPU_MEMORY,
    *KERNELS,
    *_REFUSALS,
    *GPU_FAULTS,
    *_DEATHS,
    *_VAGUE,
)
"""In the order in which evidence counts: causes stand before what they bring about."""

_PREFIX = re.compile(
    r"^(?:[\w.-]{1,60} +\| )?(?:\([^()\s]{1,60} pid=\d+\) )?"
    r"(?:(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) \d\d-\d\d [\d:.]{5,15} \[[\w.-]{1,60}:\d+\] ?)?"
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

_RAISED = re.compile(r"^(?:\w+\.)*\w*(?:Error|Exception)(?:: .*)?$")
_DETERMINISTIC = re.compile(
    r"^(?:\w+\.)*(?:ValueError|AssertionError|NotImplementedError|TypeError|AttributeError|KeyError|IndexError"
    r"|NameError|OSError|\w*ValidationError|JSONDecodeError)\b"
)
"""Raised by what was asked for, not by circumstances."""
_CONSEQUENCE = re.compile(
    r"Engine core initialization failed|EngineDeadError|BrokenPipeError|SystemExit|CancelledError"
)


def diagnose_log(log: str, exit_code: int | None) -> Diagnosis | None:
    """What went wrong; None when neither the log nor the exit code shows it. Never raises."""
    lines = [_PREFIX.sub("", line[:_MAX_LINE], count=1).rstrip() for line in _split(log)]
    suspects = [line for line in dict.fromkeys(lines) if line and not _NOISE.search(line)]
    died = exit_code not in _SAYS_NOTHING or bool(fatal_sign(log))
    for each in SIGNS:
        if (died or not each.fatal_only) and (found := [line for line in suspects if each.pattern.search(line)]):
            return _about_sign(each, found, suspects, was_ready=STARTED in log)
    if died and (causes := _own_exceptions(suspects)):
        return _about_exception(causes, was_ready=STARTED in log)
    return _about_death(lines, exit_code)


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


def _bounded(lines: Sequence[str]) -> tuple[str, ...]:
    """The last different lines, fit to be shown: eight ranks say everything eight times."""
    different = {re.sub(r"[\d.]+", "#", line): line for line in lines if line.strip()}
    return tuple(plain(line) for line in different.values())[-_MAX_EVIDENCE:]
