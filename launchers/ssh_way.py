"""How far the way to a host goes: each sshd on it, and what was passed there. Logs in and does nothing else."""

from __future__ import annotations

from dataclasses import dataclass

from launchers.errors import HostLost
from launchers.ssh_config import Hop, SshTarget, route
from launchers.ssh_link import STAGES, open_link


@dataclass(frozen=True)
class Way:
    """The hops, the destination last, and the (stage, hop) pairs that went well in the order of the way.

    `error`: why it ended before the last stage of the last hop; None when it did not.
    """

    hops: tuple[Hop, ...] = ()
    passed: tuple[tuple[str, Hop], ...] = ()
    error: HostLost | None = None

    @property
    def failed_stage(self) -> str:
        """The stage at which it ended, or `route` when there was no way to begin; empty when all went well."""
        if self.error is None:
            return ""
        return STAGES[len(self.passed) % len(STAGES)] if self.hops else "route"


def walk(target: SshTarget, name: str) -> Way:
    """Go the whole way once and hang up. A timeout is that of `target` for each step."""
    passed: list[tuple[str, Hop]] = []
    hops: tuple[Hop, ...] = ()
    try:
        hops = route(target)
        open_link(target, name, lambda stage, hop: passed.append((stage, hop))).close()
    except HostLost as error:
        return Way(hops, tuple(passed), error)
    return Way(hops, tuple(passed))
