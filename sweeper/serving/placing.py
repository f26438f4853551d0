"""The command line and environment of a launch: of one that is made, and of one that is only shown."""

from __future__ import annotations

from dataclasses import dataclass, replace

from launchers.base import LaunchSpec
from sweeper.engines.base import Engine, HostFacts, Placement
from sweeper.spec import ServerConfig, SweepSpec


@dataclass(frozen=True)
class Placing:
    """What a server's command line is made from besides its configuration."""

    spec: SweepSpec
    engine: Engine
    facts: HostFacts

    def launch_spec(self, config: ServerConfig, port: int, nonce: str) -> LaunchSpec:
        """The engine's command line at this port; with the GPUs of the host, if only some are to be used."""
        host = self.spec.host
        placement = Placement(
            command=self.spec.engine.command,
            model_path=self.facts.model_path,
            port=port,
            nonce=nonce,
            bind=host.address or "127.0.0.1",
            num_nodes=1 + len(host.nodes),
            node_address=host.node_address,
        )
        spec = self.engine.launch_spec(config, placement)
        if not host.gpus:
            return spec
        visible = {"CUDA_VISIBLE_DEVICES": ",".join(map(str, host.gpus))}
        others = tuple(replace(other, env={**visible, **other.env}) for other in spec.others)
        return replace(spec, env={**visible, **spec.env}, others=others)
