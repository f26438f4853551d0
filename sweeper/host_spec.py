"""Where a server runs and how the host is reached: the part of a specification behind `conf/host/`."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import Field, ValidationInfo, field_validator

from sweeper.frozen import MAX_COUNT, MAX_SECONDS, Frozen, once


class SshSpec(Frozen):
    """How a host is reached over SSH. What is empty (or 0) is left to `config_file` and to SSH's own defaults.

    `reconnect_s`: how long a broken connection is tried again before the host counts as lost.
    """

    destination: str = Field(min_length=1)
    user: str = ""
    port: int = Field(default=0, ge=0, lt=65536)
    identity_file: str = ""
    config_file: str = "~/.ssh/config"
    known_hosts: str = ""
    password_env: str = "SPECSWEEP_SSH_PASSWORD"
    passphrase_env: str = "SPECSWEEP_SSH_PASSPHRASE"
    connect_timeout_s: float = Field(default=10, gt=0, le=MAX_SECONDS)
    reconnect_s: float = Field(default=300, ge=0, le=MAX_SECONDS)


class HostSpec(Frozen):
    """Where the server runs. `port_low`..`port_high`: the first free port in it is used.

    `address`: where the server is reached over HTTP; empty: through the SSH connection, with no open port.
    `nodes`: destinations of the further hosts of a server that spans several, in the order of their ranks;
    `node_address`: the first host's HOST:PORT as they reach it. `gpus`: the indices to use; empty: all.
    `watch_gpus`: whether a launch waits for idle GPUs; None: if the engine runs on them. A GPU with at most
    `gpu_idle_mib` in use is idle; a server's memory may take `gpu_wait_s` to come back.
    `replace_server`: the port of a server of somebody else that the sweep may stop to have the host to itself;
    `on_finish=restore` starts it again. None: nobody else's server is ever touched.
    Clocks, temperature and power are read every `gpu_sample_s` seconds while a launch is measured (0: never).
    """

    name: str = Field(min_length=1)
    kind: Literal["local", "ssh"] = "local"
    ssh: SshSpec | None = Field(default=None, validate_default=True)
    state_dir: str
    port_low: int = Field(gt=0, lt=65536)
    port_high: int = Field(gt=0, lt=65536)
    address: str = ""
    nodes: tuple[str, ...] = ()
    node_address: str = Field(default="", validate_default=True)
    gpus: tuple[Annotated[int, Field(ge=0, lt=1024)], ...] = ()
    watch_gpus: bool | None = None
    gpu_idle_mib: int = Field(default=1024, ge=0, le=MAX_COUNT)
    gpu_wait_s: float = Field(default=60, ge=0, le=MAX_SECONDS)
    gpu_sample_s: float = Field(default=5, ge=0, le=MAX_SECONDS)
    replace_server: int | None = Field(default=None, gt=0, lt=65536)

    @field_validator("state_dir")
    @classmethod
    def _absolute(cls, state_dir: str) -> str:
        if not state_dir.startswith(("/", "~/")) or "\0" in state_dir:
            raise ValueError(
                "should begin with / or ~/: it is a folder on the host, wherever specsweep is started"
            )
        return state_dir

    @field_validator("address")
    @classmethod
    def _alone(cls, address: str) -> str:
        if re.search(r"[\s/]|^[^:]*:[^:]*$", address):
            raise ValueError("should be a name or an address alone: the port is the first free one of the range")
        return address

    @field_validator("gpus")
    @classmethod
    def _eachonce(cls, gpus: tuple[int, ...]) -> tuple[int, ...]:
        once(gpus)
        return gpus

    @field_validator("ssh")
    @classmethod
    def _of_its_kind(cls, ssh: SshSpec | None, info: ValidationInfo) -> SshSpec | None:
        kind = info.data.get("kind")
        if kind == "ssh" and ssh is None:
            raise ValueError("needs a destination: choose host=ssh and give host.ssh.destination=NAME")
        if kind == "local" and ssh is not None:
            raise ValueError("has no meaning for this machine: choose host=ssh too")
        return ssh

    @field_validator("nodes")
    @classmethod
    def _reachable(cls, nodes: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        once(nodes)
        if nodes and info.data.get("kind") == "local":
            raise ValueError("further hosts are reached over SSH: choose host=ssh")
        return nodes

    @field_validator("node_address")
    @classmethod
    def _where_the_first_is(cls, node_address: str, info: ValidationInfo) -> str:
        if info.data.get("nodes") and not re.fullmatch(r"\S+:\d{1,5}", node_address):
            raise ValueError(
                "should be HOST:PORT of the first host as the other nodes reach it, e.g. 10.0.0.1:20000"
            )
        return node_address

    @field_validator("port_high")
    @classmethod
    def _upwards(cls, port_high: int, info: ValidationInfo) -> int:
        if port_high < info.data.get("port_low", 0):
            raise ValueError(f"should not be below port_low ({info.data['port_low']})")
        return port_high
