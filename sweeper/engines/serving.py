"""A server as people run it: where a launch puts it, and the parts of its command line. Plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sweeper.spec import ServerConfig


@dataclass(frozen=True)
class Placement:
    """What a launch is given besides its configuration. `nonce`: a word the server must repeat.

    `bind`: the address to listen at. `num_nodes`: how many hosts the server spans; `node_address`: the first
    one's HOST:PORT, as the others reach it.
    """

    command: tuple[str, ...]
    model_path: str
    port: int
    nonce: str
    bind: str = "127.0.0.1"
    num_nodes: int = 1
    node_address: str = ""


@dataclass(frozen=True)
class Serving:
    """A configuration without what only measuring needs: no nonce, no address, no port, no metrics.

    `command`: the program on the host where it was measured; `image_command`: the same program in the container
    image `image`. `model`: the words that name the model. `flags`: each flag's words by its name. `unset_env`:
    variables that were kept away from the server. `port`: the one that users of this engine expect. `num_gpus`:
    how many each host needs; 0: unknown or none. `ranks`: of a server that spans several hosts the words of each
    rank, where NODE_ADDRESS stands for the first host's HOST:PORT; else one empty entry.
    """

    command: tuple[str, ...]
    image: str
    image_command: tuple[str, ...]
    model: tuple[str, ...]
    flags: Mapping[str, tuple[str, ...]]
    env: Mapping[str, str]
    unset_env: tuple[str, ...]
    port: int
    health_path: str
    num_gpus: int = 0
    node_address: str = ""
    ranks: tuple[tuple[str, ...], ...] = ((),)


NODE_ADDRESS = "\0NODE_ADDRESS"
"""Stands for `Serving.node_address` among the words of a rank; no argument can hold a NUL."""


@dataclass(frozen=True)
class Loads:
    """A measured configuration under several loads: requests under way at once to output tokens per second."""

    config: ServerConfig
    throughputs: Mapping[int, float]


@dataclass(frozen=True)
class OwnFormat:
    """A file in a format of the engine's own, and how it is used, in comment lines.

    `has_comments`: whether the format has comments (behind `#`).
    """

    name: str
    text: str
    usage: tuple[str, ...] = ()
    has_comments: bool = True


@dataclass(frozen=True)
class OwnFormats:
    """What an engine can write in formats of its own, and one line for each that it cannot, with the reason."""

    files: tuple[OwnFormat, ...] = ()
    left_out: tuple[str, ...] = ()


def placed_by(argv: Sequence[str], model_flag: str, name_flag: str) -> Placement:
    """What a launch was given, from its command line (of rank 0). Raises ValueError for any other one."""
    heads = (model_flag, name_flag, "--host", "--port")
    for start in range(1, len(argv) - 7):
        if tuple(argv[start : start + 8 : 2]) == heads:
            model, nonce, bind, port = argv[start + 1 : start + 8 : 2]
            nodes = argv[-6:] if len(argv) > start + 13 and argv[-6] == "--nnodes" else ()
            return Placement(
                command=tuple(argv[:start]),
                model_path=model,
                port=int(port),
                nonce=nonce,
                bind=bind,
                num_nodes=int(nodes[1]) if nodes else 1,
                node_address=nodes[3] if nodes else "",
            )
    raise ValueError(f"no command line of a launch: it lacks {', '.join(heads)} in this order")
