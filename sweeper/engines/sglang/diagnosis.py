"""Why an SGLang server died or hangs, from its log and its exit code.

The exit code alone says little: 137 (SIGKILL) is how SGLang's main process ends after any failure of a child, and
up to 0.5.15 after a normal stop too.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from sweeper.engines.base import Diagnosis
from sweeper.engines.sglang.log import FIRED_UP, readiness
from sweeper.engines.sglang.memory import occupied
from sweeper.engines.sglang.refusals import REFUSALS
from sweeper.engines.sglang.signs import FAULTS, HANGS, MEMORY, TOO_SMALL
from sweeper.engines.sglang.tracebacks import Raised, ends_with_exception, uncaught
from sweeper.engines.signs import COMMAND_LINE, GPU_MEMORY, HOST, KERNELS, Sign
from sweeper.errors import FailureKind
from sweeper.text import plain, without_codes

# In the order in which evidence counts: causes stand before what they bring about.
SIGNS: Sequence[Sign] = (*COMMAND_LINE, *HOST, *MEMORY, *KERNELS, *REFUSALS, *FAULTS, *HANGS)

MAX_LOG = 2_000_000
MAX_LINE = 1_500
MAX_EVIDENCE = 5
_MIN_ALIVE = 3

# What docker compose, Ray and torch put before every line.
_PREFIX = re.compile(r"^(?:[\w.-]{1,60} +\| |\([\w.-]{1,40} pid=\d+[^)]{0,60}\) )?(?:\[rank\d+\]: ?(?!\[))?")

# Lines that only look like evidence: advice, source lines of tracebacks, settings, progress bars, access log.
_NOISE = re.compile(
    r"^\s*File \"|^ {4}|^\s*\[--|^usage: |server_args=|^\d\. |if it is an OOM problem|to a smaller value"
    r"|INFO: +[\d.:a-f\[\]]+ - \"|UserWarning|FutureWarning|NCCL INFO|it/s\]|, trying port"
)
_DECODED = "Decode batch"
_ALIVE = re.compile(r"Decode batch|Prefill batch|fired up and ready to roll")
_DEATH = re.compile(
    r" hit an exception: |[Rr]eceived sigquit|SIGQUIT received|crashed with exit code|scheduler is dead"
    r"|scheduler died during|atchdog timeout \(self\.watchdog_timeout=(?!.*soft=True)|terminate called"
    r"|watchdog thread terminated|watchdog got stuck for|Fatal Python error|Segfault encountered"
    r"|Initialization failed|error while attempting to bind"
)
_CHILD = re.compile(
    r"(?:^Subprocess|\] Subprocess) \S{1,80} \(pid=\d+\) crashed with exit code (-?\d{1,4})"
    r"|scheduler died during initialization \(exit code: (-?\d{1,4})|(?:^|\] )Exit code: (-?\d{1,4})$"
)
_HEALTH = "Health check failed. Server couldn't get a response"

_SIGNALS = {4: "SIGILL", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 11: "SIGSEGV"}
"""Signals by which a process ends through its own fault. SIGKILL is not one: anybody may have sent it."""

_SAYS_NOTHING = frozenset({None, 0, 137, 143, 130, 131, -9, -15, -2, -3})
"""Exit codes of servers that were stopped, or of which nothing is known."""

_REMEDY = {
    "loading weights": "use more GPUs (tp_size) or smaller weights",
    "loading draft weights": "use a smaller draft model, or more GPUs",
    "allocating KV cache": "lower mem_fraction_static",
    "capturing CUDA graphs": "lower mem_fraction_static, cuda_graph_max_bs or speculative_num_draft_tokens",
}


def diagnose_log(log: str, exit_code: int | None) -> Diagnosis | None:
    """What went wrong; None when neither the log nor the exit code shows it. Never raises."""
    lines = _lines(log)
    recent = _since_last_normal_service(lines)
    raised = uncaught(recent)
    died = raised is not None or exit_code not in _SAYS_NOTHING or ends_with_exception(recent)
    died = died or any(_DEATH.search(line) for line in recent)
    refused: list[str] = []
    suspects = [line for line in dict.fromkeys(recent) if line and not _NOISE.search(line)]
    for sign in SIGNS:
        if (died or not sign.fatal_only) and (found := [s for s in suspects if sign.pattern.search(s)]):
            if sign.kind is FailureKind.UNSUPPORTED and _had_decoded(lines, len(lines) - len(recent), found[0]):
                refused = refused or found
                continue
            return _about_sign(sign, found, lines)
    if raised is not None:
        before = lines[: len(lines) - len(recent) + raised.index]
        return _about_exception(raised, was_ready=any(FIRED_UP in line for line in before))
    if refused:
        return Diagnosis(FailureKind.SERVER_CRASH, "the server died while it served", _bounded(refused))
    return _about_death(recent, exit_code) or _about_hang(recent)


def _had_decoded(lines: Sequence[str], start: int, line: str) -> bool:
    """Whether the server had served when it said `line`, which stands at `start` or later.

    What cannot work shows at the first request. A decode line is written after dozens of decode steps: whatever
    goes wrong after one may go well another time, whatever its words.
    """
    return any(_DECODED in before for before in lines[: lines.index(line, start)])


def _lines(log: str) -> list[str]:
    """The log's last lines, without terminal codes and foreign prefixes; bounded."""
    text = without_codes(log[-MAX_LOG:])
    return [_PREFIX.sub("", line[:MAX_LINE], count=1).rstrip() for line in re.split(r"[\r\n]+", text)]


def _since_last_normal_service(lines: Sequence[str]) -> Sequence[str]:
    """The lines from the third-last sign of normal service on; signs after a death do not count.

    What a server has survived for that long is not what it died of.
    """
    alive: list[int] = []
    for index, line in enumerate(lines):
        if _DEATH.search(line):
            break
        if _ALIVE.search(line):
            alive.append(index)
    return lines[alive[-_MIN_ALIVE] :] if len(alive) >= _MIN_ALIVE else lines


def _bounded(lines: Sequence[str]) -> tuple[str, ...]:
    """The last different lines, fit to be shown: eight ranks say everything eight times."""
    different = {re.sub(r"[\d.]+", "#", line): line for line in lines if line.strip()}
    return tuple(plain(line) for line in different.values())[-MAX_EVIDENCE:]


def _about_sign(sign: Sign, evidence: Sequence[str], lines: Sequence[str]) -> Diagnosis:
    """A known sign. Where memory ran out: by whose fault, in which phase, and which way to turn the knob."""
    message = sign.message
    if sign in (GPU_MEMORY, TOO_SMALL) and (others := occupied(lines)):
        taken = f"GPU memory was taken by something else: {others}"
        return Diagnosis(FailureKind.HOST_DIRTY, taken, _bounded(evidence))
    if sign is GPU_MEMORY:
        phase = readiness("\n".join(lines[: lines.index(evidence[0])]))
        remedy = _REMEDY.get(phase, "lower mem_fraction_static or max_running_requests")
        when = (
            "while serving" if phase == "ready" else f"while {phase}" if phase in _REMEDY else "during its start"
        )
        message = f"{message} {when}: {remedy}"
    return Diagnosis(sign.kind, message, _bounded(evidence))


def _about_exception(raised: Raised, *, was_ready: bool) -> Diagnosis:
    """An exception that no sign knows. One that the same configuration would raise again is a refusal."""
    line = plain(raised.line, 200)
    evidence = _bounded((raised.frame, raised.line))
    if raised.in_warmup and "Timeout" in line:
        return Diagnosis(FailureKind.SERVER_HANG, f"the server did not answer its first request: {line}", evidence)
    if was_ready or raised.in_warmup or not raised.deterministic:
        about = f" about {raised.subject}" if raised.subject else ""
        return Diagnosis(FailureKind.SERVER_CRASH, f"the server died of an exception{about}: {line}", evidence)
    if line == "AssertionError" and "speculative" in raised.subject:
        line = "an assertion (speculative_num_steps is needed wherever topk or draft tokens are set)"
    return Diagnosis(
        FailureKind.UNSUPPORTED, f"the server refused {raised.subject or 'to start'}: {line}", evidence
    )


def _about_death(lines: Sequence[str], exit_code: int | None) -> Diagnosis | None:
    """A death whose cause was not written down: what is known of it."""
    for line in lines:
        if child := _CHILD.search(line):
            code = int(next(group for group in child.groups() if group))
            return Diagnosis(FailureKind.SERVER_CRASH, _child_death(code), _bounded([line]))
    evidence = [line for line in lines if _DEATH.search(line)]
    code = exit_code or 0
    if name := _SIGNALS.get(-code if code < 0 else code - 128):
        last = evidence or [line for line in lines if line.strip()]
        message = f"the server died of {name} (exit code {exit_code})"
        return Diagnosis(FailureKind.SERVER_CRASH, message, _bounded(last[-MAX_EVIDENCE:]))
    if not evidence:
        return None
    return Diagnosis(FailureKind.SERVER_CRASH, "a process of the server died without a reason", _bounded(evidence))


def _child_death(code: int) -> str:
    """What the exit code of a child says."""
    if code == -9:
        return (
            "a process of the server was killed from outside (SIGKILL): by the kernel for want of memory (see"
            " dmesg; load weights with fewer threads), or by a person"
        )
    return f"a process of the server died of {_SIGNALS.get(-code, f'exit code {code}')}"


def _about_hang(lines: Sequence[str]) -> Diagnosis | None:
    """A failed health check after which nothing was served any more."""
    failed = [index for index, line in enumerate(lines) if _HEALTH in line]
    if not failed or any(_ALIVE.search(line) for line in lines[failed[-1] :]):
        return None
    message = "the server stopped answering: its scheduler or detokenizer hangs"
    return Diagnosis(FailureKind.SERVER_HANG, message, _bounded([lines[failed[-1]]]))
