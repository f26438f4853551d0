"""What failures of SGLang itself look like in its log, and what to do about each; the host's stand in signs.py.

Wordings come from the sources of SGLang 0.5.8 to 0.5.23, from captures of a real 0.5.15.post1, and from public bug
reports. What the server refuses stands in refusals.py.
"""

from __future__ import annotations

from collections.abc import Sequence

from sweeper.engines.signs import CALLS, GPU_FAULTS, GPU_MEMORY, HOST_MEMORY, Sign, certain, raised, sign
from sweeper.errors import FailureKind

TOO_SMALL = certain(
    FailureKind.OUT_OF_MEMORY,
    "the weights leave no room for the KV cache: raise mem_fraction_static, or use more GPUs",
    r"leave no GPU memory for the KV cache",
    r"Not enough (?:GPU )?memory\b",
    r"larger than the profiled value -\d",
    raised(r"increase --mem-fraction-static|[Rr]aise --mem-fraction-static|is too small to serve"),
)

MEMORY: Sequence[Sign] = (
    TOO_SMALL,
    HOST_MEMORY,
    GPU_MEMORY,
    sign(
        FailureKind.OUT_OF_MEMORY,
        "the KV cache has no room for the requests: lower max_running_requests or raise mem_fraction_static",
        r"\b(?:Decode|Prefill) out of memory\b",
    ),
)

FAULTS: Sequence[Sign] = (
    *GPU_FAULTS,
    sign(FailureKind.SERVER_CRASH, "the server lost count of its KV cache", r"memory leak detected"),
)

HANGS: Sequence[Sign] = (
    # After the causes: a rank that dies of something leaves the others waiting for it.
    certain(
        FailureKind.SERVER_HANG,
        "the GPUs waited for each other in vain (a collective operation timed out)",
        r"collective operation timeout|waiting for clients\. \d+/\d+ clients",
        r"client socket has timed out after|wait timeout after \d+ ?ms",
        r"watchdog got stuck for \d+ seconds|Timed out waiting \d+ ?ms for (?:send|recv) operation",
        r"got error: Socket Timeout|DistStoreError: Socket Timeout",
    ),
    certain(
        FailureKind.SERVER_HANG,
        "the scheduler made no progress until the watchdog ended it",
        r"[Ww]atchdog timeout \(self\.watchdog_timeout=(?!.*self\.soft=True)",
    ),
    sign(
        FailureKind.START_TIMEOUT,
        "a rank did not finish loading its weights in time: a slow disk, or a rank that died silently",
        r"other ranks that didn't finish loading|failed to pass monitoredBarrier",
    ),
    *CALLS,
)
