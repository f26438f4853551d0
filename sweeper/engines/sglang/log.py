"""SGLang's log while it starts: phases, progress, and signs that the server will never answer.

Format strings from the sources of 0.5.8 to 0.5.23. The whole log is looked at every fraction of a second, so
everything here is plain text search, from the end where possible.
"""

from __future__ import annotations

import re

from sweeper.text import plain

READY = "ready"

_BEGIN_WEIGHTS = "Load weight begin"

# A milestone and the phase that begins there. The newest one counts: with a draft model, weights, cache and
# graphs come twice, and with `startup_weight_load_mode overlap` the weights arrive after the graphs.
_MILESTONES = (
    (_BEGIN_WEIGHTS, "loading weights"),
    ("Load weight end", "allocating KV cache"),
    ("KV Cache is allocated", "allocating KV cache"),
    ("KV cache allocated", "allocating KV cache"),
    ("Memory pool end", "allocating KV cache"),
    ("FlashInfer autotune", "capturing CUDA graphs"),
    ("Capturing batches", "capturing CUDA graphs"),
    ("Capturing num tokens", "capturing CUDA graphs"),
    ("CUDA graph begin", "capturing CUDA graphs"),
    ("cuda graph begin", "capturing CUDA graphs"),
    ("cpu graph begin", "capturing CUDA graphs"),
    ("draft extend begin", "capturing CUDA graphs"),
    ("max_total_num_tokens=", "warming up"),  # the last thing a scheduler says of its start
    ("Application startup complete", "warming up"),
    ("Uvicorn running on", "warming up"),
)
_EARLY = (
    ("Init torch distributed begin", "init distributed"),
    ("Init torch distributed ends", "init distributed"),
)
FIRED_UP = "The server is fired up and ready to roll"

_FATAL = (
    " hit an exception: ",  # Scheduler, DetokenizerManager, TokenizerManager, DataParallelController
    "Received sigquit from a child",
    "SIGQUIT received",
    "crashed with exit code",
    "scheduler is dead",
    "scheduler died during initialization",
    "for CUDA coredumps before exiting",
    # Up to 0.5.8 nobody notices when C++ ends a scheduler: the front stays, and never answers.
    "Process group watchdog thread terminated",
    "watchdog got stuck for",
    "terminate called after throwing",
    "Fatal Python error",
    "error while attempting to bind on address",
)
_WATCHDOG = re.compile(r"[Ww]atchdog timeout \(self\.watchdog_timeout=(?![^\n]*self\.soft=True)")

_FOLLOWER = re.compile(r"\b(?:TP|DP|PP|EP)0*[1-9]")
_MAX_RANKS = 64

_TQDM = re.compile(r"(\d{1,3})%[^|\r\n]{0,40}\|[^|\r\n]{0,40}\| *(\d{1,9})/(\d{1,9}) \[|"
                   r"(\d{1,3})% Completed \| (\d{1,9})/(\d{1,9})")  # fmt: skip


def readiness(log: str) -> str:
    """The phase of the start: starting, init distributed, loading weights, loading draft weights,
    allocating KV cache, capturing CUDA graphs, warming up, ready."""
    if FIRED_UP in log:
        return READY
    at, phase = _newest(log)
    if at < 0:
        begun = any(text in log for text, _ in _EARLY)
        # A log whose start was cut off, of a server at work.
        return "init distributed" if begun else READY if "Decode batch" in log else "starting"
    return "loading draft weights" if phase == "loading weights" and _is_second(log, at) else phase


def progress(log: str) -> str:
    """How far the newest progress bar of the present phase has come, `45 % (28 of 62)`; empty without one."""
    at = max(0, _newest(log)[0])
    start = max(at, len(log) - 4000)
    if FIRED_UP in log:
        return ""
    percent = ""
    for found in _TQDM.finditer(log, start):
        share, done, total = (found[n] or found[n + 3] for n in (1, 2, 3))
        percent = f"{share} % ({done} of {total})"
    return percent


def _newest(log: str) -> tuple[int, str]:
    """Where the newest milestone of the leading rank stands and the phase it begins; -1 when there is none."""
    return max((_last(log, text), phase) for text, phase in _MILESTONES)


def _last(log: str, text: str) -> int:
    """Where `text` stands last in a line of the leading rank, else of any rank; -1 when nowhere.

    The ranks run at their own pace: a phase that any of them begins would come and go.
    """
    newest = at = log.rfind(text)
    for _ in range(_MAX_RANKS):
        if at < 0 or not _FOLLOWER.search(_rank(log, at)):
            break
        at = log.rfind(text, 0, at)
    return at if at >= 0 else newest


def _is_second(log: str, at: int) -> bool:
    """Whether the rank whose line stands at `at` has begun to load weights before: then these are the draft's."""
    rank = _rank(log, at)
    earlier = log.find(_BEGIN_WEIGHTS)
    while 0 <= earlier < at:
        if _rank(log, earlier) == rank:
            return True
        earlier = log.find(_BEGIN_WEIGHTS, earlier + 1)
    return False


def _rank(log: str, at: int) -> str:
    """What stands between the time and the closing bracket of the line at `at`: `DP0 TP3`, empty for one rank."""
    head = log[log.rfind("\n", 0, at) + 1 : at][-120:]
    return head.rpartition("]")[0].rpartition("[")[2].partition(" ")[2].partition(" ")[2]


def fatal_sign(log: str) -> str:
    """The first line after which the server will never answer again, though its main process may live on.

    Empty when there is none. What the server itself only warns of (a soft watchdog) is none.
    """
    found = [at for text in _FATAL if (at := log.find(text)) >= 0]
    if "atchdog timeout (" in log and (watchdog := _WATCHDOG.search(log)):
        found.append(watchdog.start())
    return plain(_line(log, min(found))) if found else ""


def _line(log: str, at: int) -> str:
    """The line around position `at`, at most a thousand characters of it on each side."""
    start = max(log.rfind("\n", 0, at), log.rfind("\r", 0, at)) + 1
    end = log.find("\n", at)
    return log[max(start, at - 1000) : min(end if end >= 0 else len(log), at + 1000)]
