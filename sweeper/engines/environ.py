"""The environment that a server really runs with, as far as it matters: of its processes, from /proc on its host.

What a launch unsets can be set again on the way: by a wrapper script, a module file, a container's entry point.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

MAX_BYTES = 16_384
_MAX_VALUE = 200

_READ = r"""
mark=$1 names=$2
[ -r /proc/self/environ ] || { echo "there is no /proc to read" >&2; exit 3; }
pids=$(head -c 1048576 /proc/[0-9]*/environ 2>/dev/null | LC_ALL=C tr '\000' '\n' | LC_ALL=C awk -v mark="$mark" '
  /^==> \/proc\/[0-9]+\/environ <==$/ { split($0, path, "/"); pid = path[3]; next }
  $0 == mark && pid != "" { print pid }')
[ -n "$pids" ] || { echo "no process carries $mark" >&2; exit 4; }
for pid in $pids; do
  { LC_ALL=C tr '\000\n' '\n ' < "/proc/$pid/environ"; } 2>/dev/null | LC_ALL=C grep -E "$names"
done | sort -u | head -c 16384
"""
"""Variables of other names are never printed: they may hold secrets. One without a line end in its value."""


def environ_argv(mark: str, beginnings: Sequence[str]) -> tuple[str, ...]:
    """Prints the variables that begin so, of all processes whose environment has `mark` (NAME=VALUE).

    Exit code 4: there is no such process. `beginnings` are plain letters, digits and underscores.
    """
    return ("/bin/sh", "-c", _READ, "environ", mark, f"^({'|'.join(beginnings)})[A-Za-z0-9_]*=")


def parse_environ(output: bytes) -> Mapping[str, str]:
    """Name to value. Processes may differ: of several values of a name one is given, a non-empty one."""
    found: dict[str, str] = {}
    for line in output[:MAX_BYTES].decode("utf-8", "replace").splitlines():
        name, equals, value = line.partition("=")
        if equals and name.replace("_", "").isalnum() and (value or name not in found):
            found[name] = value[:_MAX_VALUE]
    return found
