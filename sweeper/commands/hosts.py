"""The launcher of a configured host."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from launchers.group import GroupLauncher
from launchers.host import HostLauncher, HostSettings
from launchers.shell import LocalShell
from launchers.ssh import SshShell, SshTarget
from launchers.ssh_config import DEFAULT_CONFIG
from launchers.standing import Standing
from sweeper.config.mistakes import shown
from sweeper.errors import ConfigError
from sweeper.host_spec import HostSpec, SshSpec


def make_launcher(host: HostSpec) -> HostLauncher | GroupLauncher:
    """The launcher for a configured host, or for all hosts of a server that spans several. Raises ConfigError."""
    if host.ssh is None:
        return HostLauncher(LocalShell(host.name), _settings(host, host.name))
    if missing := list(_missing(host.ssh)):
        raise ConfigError(missing)
    destinations = [host.ssh.destination, *host.nodes]
    launchers = []
    for rank, destination in enumerate(destinations):
        name = host.name if rank == 0 else f"{host.name}/{destination}"
        try:
            target = SshTarget(**{**host.ssh.model_dump(), "destination": destination})
        except ValueError as error:
            raise ConfigError([f"host.ssh: {error}"]) from error
        launchers.append(HostLauncher(SshShell(target, name), _settings(host, name)))
    return launchers[0] if len(launchers) == 1 else GroupLauncher(launchers)


def _missing(ssh: SshSpec) -> Iterator[str]:
    """A line for each file that is named and not there. OpenSSH's usual configuration need not be."""
    for name, file in (("config_file", ssh.config_file), ("identity_file", ssh.identity_file)):
        if file not in ("", DEFAULT_CONFIG) and not _is_there(file):
            yield f"host.ssh.{name}: {shown(file)}: there is no such file"


def _is_there(file: str) -> bool:
    try:
        return Path(file).expanduser().exists()
    except (OSError, RuntimeError):  # no name of a file, or ~ of a user who is none
        return False


def standing_on(launcher: HostLauncher | GroupLauncher) -> Standing | None:
    """What stands on the launcher's host; None for a group: the configuration keeps its hosts from needing it."""
    return Standing(launcher) if isinstance(launcher, HostLauncher) else None


def _settings(host: HostSpec, name: str) -> HostSettings:
    return HostSettings(
        name=name,
        state_dir=host.state_dir,
        port_low=host.port_low,
        port_high=host.port_high,
        address=host.address,
        gpus=host.gpus,
        gpu_idle_mib=host.gpu_idle_mib,
        gpu_wait_s=host.gpu_wait_s,
    )
