"""Every fault of the stand-in, and what a launch with it must come to.

`python -m tests.sglang.faults` tries all of them over SSH and prints a table.

The fault is the stand-in's, planted; the class, the evidence and the clean host afterwards are specsweep's.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from sweeper.errors import FailureKind as Kind
from sweeper.records import LaunchRecord
from tests.gpu_host.host import make_host
from tests.launchers.conftest import until
from tests.sglang.night import Night, night, sshd_path
from tests.ssh.sshd import Sshd

MEASURED = "measured"
"""No failure: the launch has a score in spite of the fault."""


@dataclass(frozen=True)
class Expected:
    """What a launch with a fault comes to: one of `classes`, and words that must stand in its message or evidence.

    `limit_s`: how long the start may take. `next_too`: the host stays dirty, and the next launch must say so.
    `max_tokens` of each answer: 48 make 200 verify steps where nothing is accepted.
    """

    classes: tuple[str, ...]
    shows: str = ""
    detail: str = ""
    limit_s: float = 30.0
    max_tokens: int = 12
    next_too: bool = False


OOM, CRASH, HANG, DIRTY = Kind.OUT_OF_MEMORY, Kind.SERVER_CRASH, Kind.SERVER_HANG, Kind.HOST_DIRTY

FAULTS: dict[str, Expected] = {
    "oom_load": Expected((OOM,), "out of memory"),
    "oom_capture": Expected((OOM,), "out of memory"),
    "weights_too_big": Expected((OOM,), "mem_fraction_static"),
    "bad_memfrac": Expected((OOM,), "mem_fraction_static"),
    "hang_init_nccl": Expected((Kind.START_TIMEOUT, HANG), "distributed", limit_s=4),
    "hang_load": Expected((Kind.START_TIMEOUT,), "weights", limit_s=4),
    "hang_capture": Expected((Kind.START_TIMEOUT,), "CUDA graphs", limit_s=4),
    "hang_warmup": Expected((Kind.START_TIMEOUT, HANG), limit_s=4),
    "slow_weights": Expected((MEASURED,), detail="3"),
    "crash_load": Expected((CRASH, Kind.UNSUPPORTED)),
    "crash_capture": Expected((CRASH, Kind.UNSUPPORTED)),
    "crash_mid_benchmark": Expected((CRASH,)),
    "detokenizer_killed": Expected((CRASH,)),
    "server_killed_mid_benchmark": Expected((CRASH,)),
    "scheduler_stopped": Expected((HANG,)),
    "silent_hang_after_n": Expected((HANG,)),
    "watchdog": Expected((HANG,), "atchdog"),
    "illegal_memory_access": Expected((CRASH,), "illegal memory access"),
    "nccl_error": Expected((CRASH, HANG), "NCCL"),
    "orphan_memory": Expected((MEASURED,)),
    "orphan_port": Expected((MEASURED,)),
    "ignore_sigterm": Expected((MEASURED,)),
    "port_stolen": Expected((Kind.WRONG_SERVER, DIRTY)),
    "wrong_model": Expected((Kind.WRONG_SERVER,), "model"),
    "wrong_nonce": Expected((Kind.WRONG_SERVER,), "nonce"),
    "accept_one": Expected((Kind.SILENT_BYPASS,), "accept_length 1.0", max_tokens=48),
    "garbage_http": Expected((Kind.WRONG_SERVER, Kind.BENCHMARK_FAILED)),
    "garbage_stream": Expected((Kind.BENCHMARK_FAILED,)),
    "truncated_stream": Expected((Kind.BENCHMARK_FAILED, CRASH)),
    "no_final_meta": Expected((Kind.BENCHMARK_FAILED, MEASURED)),
    "http_500": Expected((Kind.BENCHMARK_FAILED,), "500"),
    "slow_http": Expected((MEASURED,), detail="1"),
    "log_flood": Expected((MEASURED,)),
    "non_utf8_log": Expected((MEASURED,)),
    "graph_false": Expected((MEASURED,)),
    "unknown_flag": Expected((Kind.UNSUPPORTED,), "unrecognized arguments"),
    "unbalanced_memory": Expected((DIRTY,)),
    "gpu_memory_stuck": Expected((MEASURED,), detail="15", next_too=True),
    "nvidia_smi_hangs": Expected((MEASURED,), detail="100", next_too=True),
    "nvidia_smi_garbage": Expected((MEASURED,), detail="100", next_too=True),
    "disk_full_log": Expected((MEASURED, CRASH)),
}

SETTINGS = (
    "workload.request_timeout_s=6",
    "limits.stop_grace_s=2",
    "host.gpu_wait_s=3",
)


@dataclass(frozen=True)
class Outcome:
    """What a launch with a fault came to, and what was wrong with that; empty when nothing was."""

    fault: str
    seen: str
    seconds: float
    wrong: tuple[str, ...]


def provoke(dark: Night, name: str, expected: Expected) -> Outcome:
    """A launch with the fault, a look at the host, and a launch without it, which must be measured."""
    wrong = []
    began = time.monotonic()
    dark.host.set_fault(name, expected.detail, launches=1)
    dark.set_max_tokens(expected.max_tokens)
    record = dark.eagle3(expected.limit_s)
    seconds = time.monotonic() - began
    seen = class_of(record)
    if seen not in expected.classes:
        wrong.append(f"came to {seen}, not {' or '.join(expected.classes)}: {said_of(record)[:600]}")
    if expected.shows and expected.shows not in said_of(record):
        wrong.append(f"does not show {expected.shows!r}: {said_of(record)[:600]}")
    if expected.next_too:
        refused = dark.eagle3()
        if class_of(refused) != DIRTY:
            wrong.append(f"the next launch came to {class_of(refused)}, although memory is still held")
        until(lambda: max(dark.host.gpu_used()) < 100, "the memory is given back")
    dark.host.clear_faults()
    if left := dark.left_behind():
        wrong.append(f"left behind: {'; '.join(left)}")
    after = dark.eagle3()
    if class_of(after) != MEASURED or not after.proof.complete:
        wrong.append(f"the next launch came to {class_of(after)}: {said_of(after)[:600]}; {after.proof}")
    return Outcome(name, seen, seconds, tuple(wrong))


def class_of(record: LaunchRecord) -> str:
    """The failure's kind, or that there was none."""
    return record.failure.kind.value if record.failure else MEASURED


def said_of(record: LaunchRecord) -> str:
    """What a person is told of a failure."""
    if record.failure is None:
        return ""
    return "\n".join([record.failure.message, *record.failure.evidence])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="only these faults")
    arguments = parser.parse_args()
    unexpected = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        host = make_host(folder / "gpu-host", time_scale="0.01", wait_scale="0.01")
        with (
            Sshd(folder / "sshd", env={"PATH": sshd_path(host)}) as sshd,
            night(host, sshd, folder, *SETTINGS) as dark,
        ):
            for fault, expected in FAULTS.items():
                if arguments.names and fault not in arguments.names:
                    continue
                outcome = provoke(dark, fault, expected)
                verdict = "ok" if not outcome.wrong else "WRONG: " + " | ".join(outcome.wrong)
                print(f"{fault:28} {outcome.seen:18} {outcome.seconds:6.1f} s  {verdict}", flush=True)
                unexpected += bool(outcome.wrong)
    return 1 if unexpected else 0


if __name__ == "__main__":
    raise SystemExit(main())
