"""Faults of the way to the host: the link is cut, half open, slow; sshd restarts; names cannot be resolved."""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Callable

from tests.chaos.audit import processes_of
from tests.chaos.kills import KILL
from tests.chaos.stage import NotHere, Stage
from tests.chaos.sweeps import over_ssh
from tests.chaos.table import fault
from tests.chaos.zygote import Command
from tests.ssh.proxy import Proxy
from tests.ssh.sshd import Sshd

PROXY = "a TCP proxy before a real sshd"


def broken(stage: Stage, act: Callable[[], None]) -> Command:
    """A sweep whose second launch answers slowly; `act` comes in the middle of an answer."""
    stage.ended(stage.sweep.start("budget.trials=1"), 0)
    stage.seen.clear()
    stage.sweep.set_fault("slow", "0.5", 1)
    command = stage.sweep.start()
    stage.in_phase(command, "measuring")
    time.sleep(1.0)
    act()
    return command


@fault("the link is cut in the benchmark", "way", f"{PROXY} resets every connection for 2 s",
       "the request is sent again; the launch counts", quick=True)  # fmt: skip
def cut(stage: Stage) -> None:
    _, proxy = stage.ssh()

    def act() -> None:
        proxy.cut()
        time.sleep(2)
        proxy.heal()

    stage.ended(broken(stage, act), 0)
    stage.is_ended = True


@fault("the link is half open", "way", f"{PROXY} lets nothing through and tells nobody",
       "noticed by the missing pulse; the request is sent again; the launch counts")  # fmt: skip
def half_open(stage: Stage) -> None:
    _, proxy = stage.ssh("workload.request_timeout_s=60")

    def act() -> None:
        proxy.freeze()
        time.sleep(1)
        proxy.heal()  # what was frozen stays frozen

    stage.ended(broken(stage, act), 0)
    stage.is_ended = True


@fault("the link is gone for good", "way", f"{PROXY} refuses everything for longer than host.ssh.reconnect_s",
       "5, and what may still run there; the next start stops it and goes on")  # fmt: skip
def gone(stage: Stage) -> None:
    _, proxy = stage.ssh("host.ssh.reconnect_s=3")
    command = broken(stage, proxy.cut)
    stage.ended(command, 5, r"stopped: [^\n]*")
    proxy.heal()


@fault("the key is gone when the link breaks", "way",
       f"{PROXY} is cut for 2 s, the private key moved away: as where an agent ends",
       "5, what was tried, and what may still run there; with the key back the sweep goes on")  # fmt: skip
def without_key(stage: Stage) -> None:
    sshd, proxy = stage.ssh()
    away = sshd.key.with_name("away")

    def act() -> None:
        sshd.key.rename(away)
        proxy.cut()
        time.sleep(2)
        proxy.heal()

    command = broken(stage, act)
    stage.ended(command, 5, r"stopped: [^\n]*")
    stage.check("specsweep: stopped: whether server" in command.output, command.output[-800:])
    away.rename(sshd.key)


@fault("the link is slow", "way", f"{PROXY} delays everything by 0.2 s in both directions", "goes on")
def slow(stage: Stage) -> None:
    _, proxy = stage.ssh()
    proxy.delay_s = 0.2
    stage.ended(stage.sweep.start("budget.trials=2"), 0)
    proxy.delay_s = 0.0


@fault("sshd restarts in the benchmark", "way", "SIGKILL to sshd and its sessions; a new one after 2 s",
       "the request is sent again; the launch counts")  # fmt: skip
def restarted(stage: Stage) -> None:
    sshd, _ = stage.ssh()

    def act() -> None:
        sshd.stop()
        time.sleep(2)
        sshd.start()

    stage.ended(broken(stage, act), 0)
    stage.is_ended = True


@fault("the orchestrator dies with the link", "way", f"SIGKILL, and {PROXY} is cut at the same moment",
       "the server goes on; the next start stops it first")  # fmt: skip
def dies_with_link(stage: Stage) -> None:
    _, proxy = stage.ssh()

    def act() -> None:
        proxy.cut()

    command = broken(stage, act)
    command.send(KILL)
    stage.ended(command, -9)
    proxy.heal()
    stage.next_says = r"stopped server \w+, which an earlier process had left"


class Booted(Sshd):
    """A real sshd that sees the boot id of a file: a reboot gives it another one, and ends all processes."""

    def prepare(self) -> None:
        """Put a wrapper in the place of the program. Raises NotHere."""
        script = self.folder / "booted-sshd"
        script.write_text(
            f"#!/bin/sh\nexec unshare -m /bin/sh -c 'mount --bind {self.folder}/boot_id "
            f'/proc/sys/kernel/random/boot_id && exec {self.program} "$@"\' sh "$@"\n'
        )
        script.chmod(0o755)
        self.new_boot_id(1)
        self.program = str(script)

    def new_boot_id(self, number: int) -> None:
        (self.folder / "boot_id").write_text(f"00000000-0000-4000-8000-{number:012d}\n")


def booted(stage: Stage) -> Booted:
    """The sweep's host: a real sshd with a boot id of its own."""
    sshd = Booted(stage.folder / "sshd")
    sshd.prepare()
    tried = subprocess.run([str(sshd.program), "-t", "-f", str(sshd.folder / "sshd_config")], check=False,
                           capture_output=True)  # fmt: skip
    if tried.returncode != 0:
        raise NotHere(f"no boot id of its own here: {tried.stderr.decode(errors='replace')[:80]}")
    stage.stack.enter_context(sshd)
    stage.local(*over_ssh(sshd, stage.folder))
    return sshd


def reboot(stage: Stage, sshd: Booted) -> None:
    """All processes are gone, sshd comes back after 1 s, the boot id is another one."""
    sshd.stop()
    while found := [line for line in processes_of(stage.folder) if "specsweep" not in line]:
        for line in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(line.split()[1].rstrip(":")), KILL)
        time.sleep(0.05)
    sshd.new_boot_id(2)
    time.sleep(1)
    sshd.start()


REBOOT = (
    "SIGKILL to sshd and every process of the host; then a new boot id (bind mount in a namespace of sshd's own)"
)


@fault(
    "the host reboots in the benchmark",
    "host",
    REBOOT,
    "the launch is made again; no record of the former boot is believed",
)
def rebooted(stage: Stage) -> None:
    sshd = booted(stage)
    stage.ended(broken(stage, lambda: reboot(stage, sshd)), 0)
    stage.is_ended = True


@fault("the host reboots while nobody watches", "host", f"SIGKILL to the orchestrator; {REBOOT}",
       "the next start believes no record of the former boot, and goes on")  # fmt: skip
def rebooted_alone(stage: Stage) -> None:
    sshd = booted(stage)
    command = broken(stage, lambda: None)
    command.send(KILL)
    stage.ended(command, -9)
    reboot(stage, sshd)


RESOLVER = "a resolver that reads a file, in place of the system's"


def named(stage: Stage) -> Proxy:
    """The host is reached by a name, which a file resolves."""
    sshd = stage.stack.enter_context(Sshd(stage.folder / "sshd"))
    proxy = stage.stack.enter_context(Proxy(sshd.port))
    key = sshd.known_hosts.read_text().split(" ", 1)[1]
    sshd.known_hosts.write_text(f"[gpu.test]:{proxy.port} {key}")
    stage.local(*over_ssh(sshd, stage.folder, port=proxy.port))
    config = sshd.folder / "config-gpu1"
    config.write_text(config.read_text().replace("HostName 127.0.0.1", "HostName gpu.test"))
    stage.sweep.name_file = stage.folder / "names"
    stage.sweep.name_file.write_text("gpu.test 127.0.0.1\n")
    return proxy


@fault("DNS fails at the start", "way", RESOLVER, "5, and which name; nothing was begun")
def no_name(stage: Stage) -> None:
    named(stage)
    names = stage.folder / "names"
    names.write_text("")
    stage.sweep.words = (*stage.sweep.words, "host.ssh.reconnect_s=2")
    stage.ended(stage.sweep.start(), 5, r"specsweep: [^\n]*gpu[^\n]*")
    names.write_text("gpu.test 127.0.0.1\n")


@fault(
    "DNS fails while the link is cut",
    "way",
    f"{RESOLVER}; {PROXY} cuts the link",
    "tried again until the name is back; goes on",
)
def name_lost(stage: Stage) -> None:
    proxy, names = named(stage), stage.folder / "names"

    def act() -> None:
        names.write_text("")
        proxy.cut()
        proxy.heal()
        time.sleep(3)
        names.write_text("gpu.test 127.0.0.1\n")

    stage.ended(broken(stage, act), 0)
    stage.is_ended = True
