"""The way to the host: names, sshd, keys, jump hosts, and what its shell does with a script."""

from __future__ import annotations

from collections.abc import Iterator

from launchers.errors import HostLost
from launchers.ssh_config import Hop
from sweeper.doctor.context import Context
from sweeper.doctor.finding import Check, Place, Said, error, ok, warning
from sweeper.text import plain

_SLOW_S = 0.5
"""Round trips of more than this make each step of a launch felt."""

_SKEW_S = 2.0
_FAR_SKEW_S = 60.0

_FIXES = {
    "route": "correct that file, or host.ssh.config_file",
    "reached": "check the address, the port, the network and the firewall; try: ssh {alias}",
    "host key": "compare and accept the host's key; try: ssh {alias}",
    "login": "name the right key or load it into the agent; try: ssh {alias}",
}


def route_is_known(ctx: Context) -> Iterator[Said]:
    """ssh_config can be applied: which hosts are passed."""
    if (way := ctx.way) is None:
        yield ok("this machine: no SSH")
    elif way.failed_stage == "route" and way.error is not None:
        yield _lost(way.error, _FIXES["route"])
    else:
        yield ok(" -> ".join(_name(hop) for hop in way.hops))


def _stage(stage: str, words: str, ctx: Context) -> Iterator[Said]:
    """What became of one stage at every hop that was come to."""
    if (way := ctx.way) is None:
        return
    done = [hop for passed, hop in way.passed if passed == stage]
    if way.failed_stage == stage and way.error is not None:
        alias = way.hops[min(len(done), len(way.hops) - 1)].alias
        yield _lost(way.error, _FIXES[stage].format(alias=alias))
    elif len(done) == len(way.hops):
        yield ok(words.format(", ".join(map(_name, done))))
    else:
        blocked = way.hops[len(done) - 1] if done else way.hops[0]
        yield error(f"not come to: the way ends at {_name(blocked)}", "mend that first")


def hosts_are_reached(ctx: Context) -> Iterator[Said]:
    """Every name is known, and something answers on its port."""
    return _stage("reached", "{} answers", ctx)


def keys_are_known(ctx: Context) -> Iterator[Said]:
    """Every host shows the key that known_hosts has of it."""
    return _stage("host key", "the key is known: {}", ctx)


def logins_work(ctx: Context) -> Iterator[Said]:
    """Every host lets us in."""
    return _stage("login", "{} lets us in", ctx)


def scripts_run(ctx: Context) -> Iterator[Said]:
    """A script that is fed to /bin/sh runs, and what the login shell adds to that."""
    try:
        look = ctx.look
    except HostLost as lost:
        fix = "a start-up file (.bashrc, .cshrc, config.fish) must not end or replace a session without a terminal"
        yield error(plain(str(lost), 600), lost.fix or fix)
        return
    shell = plain(look.first("shell"), 80)
    if ctx.way is not None and look.noise.strip():
        yield warning(
            f"the login shell prints before a command runs: {plain(look.noise, 100)!r}; it is passed over here, "
            "and breaks scp and rsync",
            "in .bashrc, first: case $- in *i*) ;; *) return ;; esac",
        )
    user = plain(look.first("user"), 60)
    system = plain(look.first("distribution").strip('"') or look.first("os"), 80)
    yield ok(f"{system}, user {user}, shell {shell or '?'}")


def answers_come_soon(ctx: Context) -> Iterator[Said]:
    """The time that one small script takes."""
    if ctx.way is None:
        return
    trip_s = ctx.pulse.trip_s
    text = f"a script takes {1000 * trip_s:.0f} ms there and back"
    if trip_s <= _SLOW_S:
        yield ok(text)
    else:
        yield warning(text, "start specsweep nearer to the host; concurrent load runs on the host in any case")


def clocks_agree(ctx: Context) -> Iterator[Said]:
    """The host's clock against this machine's: times in logs and reports."""
    if ctx.way is None:
        return
    pulse = ctx.pulse
    if pulse.skew_s is None:
        yield warning("the host's `date` tells no seconds", "")
        return
    off_s = max(0.0, abs(pulse.skew_s) - pulse.trip_s / 2)
    text = f"the host's clock is {abs(pulse.skew_s):.1f} s {'ahead' if pulse.skew_s > 0 else 'behind'}"
    if off_s <= _SKEW_S:
        yield ok("the clocks agree")
    else:
        far = "; certificates and a deadline by the clock may fail" if off_s > _FAR_SKEW_S else ""
        yield warning(f"{text}{far}", "set both by NTP: timedatectl set-ntp true")


def _lost(lost: HostLost, fix: str) -> Said:
    return error(plain(lost.reason, 600), plain(lost.fix or fix, 600))


def _name(hop: Hop) -> str:
    return plain(f"{hop.user}@{hop.host}:{hop.port}", 120)


WAY_CHECKS: tuple[Check[Context], ...] = (
    Check(
        "route",
        Place.WAY,
        "can ssh_config be applied; which jump hosts are there",
        route_is_known,
        ("configuration",),
    ),
    Check(
        "reach", Place.WAY, "are names known, and does an sshd answer, at every hop", hosts_are_reached, ("route",)
    ),
    Check("host_key", Place.WAY, "is every host's key known and unchanged", keys_are_known, ("reach",)),
    Check(
        "login", Place.WAY, "is a key, the agent or a password accepted at every hop", logins_work, ("host_key",)
    ),
    Check(
        "session",
        Place.WAY,
        "does a script run, whatever the login shell, and without noise",
        scripts_run,
        ("login",),
    ),
    Check("latency", Place.WAY, "how long a round trip takes", answers_come_soon, ("session",)),
    Check("clocks", Place.WAY, "do the clocks of the host and of this machine agree", clocks_agree, ("session",)),
)
