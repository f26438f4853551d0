"""Whether the lock of a host is still this process's: one whose file was removed keeps nobody else away."""

from __future__ import annotations

from collections.abc import Callable

from launchers.base import CommandResult
from launchers.errors import HostBusy
from launchers.shell import this_process

_READ = 'file=$1; case $file in "~/"*) file=$HOME/${file#"~/"} ;; esac; head -c 1000 "$file"'
_LIMIT_S = 30.0

Run = Callable[[tuple[str, ...], float], CommandResult]


def require_own(path: str, host: str, run: Run) -> None:
    """Read who holds the lock file `path` of `host`, by a command there.

    Raises HostBusy when it names another process: the file was removed while this one held it, and whoever came
    next has locked a new one. A file that is gone, or empty, is nobody's yet. Raises HostLost.
    """
    found = run(("sh", "-c", _READ, "sh", path), _LIMIT_S).stdout.decode("utf-8", "backslashreplace")
    holder = " ".join(found.split())
    if holder and not holder.startswith(f"{this_process()},"):
        removed = "the lock file was removed while this process held it, and is another's now"
        raise HostBusy(f"{host} is held by another specsweep: {removed}: {holder}", holder)
