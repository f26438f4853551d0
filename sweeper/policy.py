"""What each kind of failure means for its trial: the one table that `Study.tell` follows.

A failure that is the configuration's fault is told to the sampler as a violated constraint, so that the search
keeps away from it (Optuna's FAIL state is invisible to samplers). A failure that is not is never held against it.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass

from sweeper.errors import FailureKind


class Fault(enum.StrEnum):
    """Whose fault a failure is."""

    CONFIGURATION = "configuration"
    TOOLING = "tooling"
    HOST = "host"


@dataclass(frozen=True)
class Policy:
    """`max_launches`: how often a launch may fail this way before the trial is told; None: put back each time."""

    fault: Fault
    max_launches: int | None
    meaning: str


POLICY: Mapping[FailureKind, Policy] = {
    FailureKind.ILLEGAL: Policy(Fault.CONFIGURATION, 1, "the engine refuses or ignores this combination"),
    FailureKind.OUT_OF_MEMORY: Policy(Fault.CONFIGURATION, 1, "the server ran out of memory"),
    FailureKind.UNSUPPORTED: Policy(Fault.CONFIGURATION, 1, "the server does not support this configuration"),
    FailureKind.SILENT_BYPASS: Policy(
        Fault.CONFIGURATION, 1, "speculation was asked for, but nothing was drafted: not a score"
    ),
    FailureKind.SERVER_CRASH: Policy(Fault.CONFIGURATION, 2, "the server died, and died again when retried"),
    FailureKind.START_TIMEOUT: Policy(Fault.CONFIGURATION, 2, "the server was not ready in time, twice"),
    FailureKind.SERVER_HANG: Policy(Fault.CONFIGURATION, 2, "the server stopped answering, twice"),
    FailureKind.BENCHMARK_FAILED: Policy(Fault.TOOLING, 2, "the benchmark failed twice"),
    FailureKind.INTERRUPTED: Policy(Fault.TOOLING, 5, "specsweep itself died five times during this trial"),
    FailureKind.WRONG_SERVER: Policy(Fault.HOST, None, "another server answered on the port"),
    FailureKind.FAKED: Policy(Fault.HOST, None, "the server only pretends to accept drafts: nothing was measured"),
    FailureKind.HOST_DIRTY: Policy(Fault.HOST, None, "something that is not ours stands in the way"),
    FailureKind.HOST_LOST: Policy(Fault.HOST, None, "the host did not answer"),
}


def is_host_fault(kind: FailureKind) -> bool:
    """Whether a launch that failed this way says nothing about its configuration and is simply made again."""
    return POLICY[kind].fault is Fault.HOST
