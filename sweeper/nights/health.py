"""How a host is before a launch: errors of its GPUs' hardware, and free disk there and here.

What a host does not tell is absent, never "all is well": a container may not read the kernel's log, and many GPUs
count no ECC errors.
"""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from launchers.errors import HostLost
from sweeper.rig import Rig
from sweeper.text import plain

HEALTH_TIMEOUT_S = 60.0
_MAX_LINES = 200
_GIB = 1024**3

_SCRIPT = r"""
set -u
dir=$1
case $dir in "~/"*) dir=$HOME/${dir#"~/"} ;; esac
while [ ! -e "$dir" ] && [ "$dir" != / ]; do dir=${dir%/*}; dir=${dir:-/}; done
df -Pk -- "$dir" 2>/dev/null | awk 'NR == 2 { print "disk", $4 }'
[ "$2" = yes ] || exit 0
nvidia-smi --query-gpu=index,ecc.errors.uncorrected.volatile.total --format=csv,noheader,nounits 2>/dev/null |
  sed 's/^/ecc /'
{ dmesg 2>/dev/null || journalctl -k -b -q --no-pager -o short-monotonic 2>/dev/null; } |
  grep -a 'NVRM: Xid' | tail -n "$3" | sed 's/^/xid /'
"""

FATAL_XIDS = frozenset({48, 61, 62, 63, 64, 74, 79, 92, 94, 95, 109, 110, 119, 120, 140, 143, 149})
"""Xids that mean the GPU, its memory, its link or its firmware (NVIDIA, "Xid Errors"). All others may be what a
server did: 13, 31, 43 and 45 follow a kernel that went wrong, and belong to its configuration."""

_XID = re.compile(r"NVRM: Xid \((?P<gpu>[^)]{1,60})\): (?P<number>\d{1,4})\b")
_ECC = re.compile(r"\s*(\d{1,4})\s*,\s*(\d{1,12})\s*")


@dataclass(frozen=True)
class Health:
    """One look. `ecc`: GPU index to uncorrected errors since the driver was loaded. `xids`: the kernel's lines.

    Free GiB of the disk that holds the host's state folder, and of the one that holds the study.
    """

    ecc: Mapping[int, int] = field(default_factory=dict)
    xids: tuple[str, ...] = ()
    host_free_gib: float | None = None
    own_free_gib: float | None = None


def read_health(rig: Rig) -> Health:
    """One look at the first host and at this machine. A host that cannot be reached now tells nothing."""
    spec = rig.spec
    own = shutil.disk_usage(spec.study.dir).free / _GIB
    argv = health_argv(spec.host.state_dir, on_gpus=rig.watch_gpus and spec.limits.gpu_errors)
    try:
        text = rig.launcher.run(argv, HEALTH_TIMEOUT_S).stdout.decode("utf-8", "replace")
    except HostLost:  # the launch itself finds out, and has its own row in the policy table
        return Health(own_free_gib=own)
    return parse_health(text, own)


def health_argv(state_dir: str, *, on_gpus: bool) -> tuple[str, ...]:
    """The command that prints, on the host, what `parse_health` reads."""
    return ("/bin/sh", "-c", _SCRIPT, "health", state_dir, "yes" if on_gpus else "no", str(_MAX_LINES))


def parse_health(text: str, own_free_gib: float | None = None) -> Health:
    """What the script printed. Lines that make no sense are left out."""
    told: dict[str, list[str]] = {"disk": [], "ecc": [], "xid": []}
    for line in text.split("\n"):
        word, _, rest = line.partition(" ")
        if word in told:
            told[word].append(rest)
    ecc = [found for line in told["ecc"] if (found := _ECC.fullmatch(line))]
    free = next((int(word) for word in told["disk"] if word.isdecimal() and len(word) < 20), None)
    return Health(
        ecc={int(found[1]): int(found[2]) for found in ecc},
        xids=tuple(plain(line) for line in told["xid"][-_MAX_LINES:] if _XID.search(line)),
        host_free_gib=None if free is None else free * 1024 / _GIB,
        own_free_gib=own_free_gib,
    )


def new_gpu_errors(before: Health, now: Health) -> list[str]:
    """What of the GPUs' hardware has failed since `before`, one line each; old errors are not held against it."""
    lines = [
        f"GPU {index}: {count - before.ecc.get(index, count)} new uncorrected ECC errors ({count} in all)"
        for index, count in now.ecc.items()
        if count > before.ecc.get(index, count)
    ]
    return lines + [line for line in _added(before.xids, now.xids) if _number(line) in FATAL_XIDS]


def fatal_xids(health: Health) -> list[str]:
    """The kernel's lines about errors of the hardware, old ones too."""
    return [line for line in health.xids if _number(line) in FATAL_XIDS]


def _added(before: Sequence[str], now: Sequence[str]) -> list[str]:
    """Lines that were not there before; equal lines are told apart by their number."""
    return list((Counter(now) - Counter(before)).elements())


def _number(line: str) -> int:
    found = _XID.search(line)
    return int(found["number"]) if found else 0
