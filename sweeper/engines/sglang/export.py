"""SGLang's server for other places than a launch: its words, its image, its own configuration files. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from sweeper.engines.serving import NODE_ADDRESS, OwnFormat, OwnFormats, Placement, Serving
from sweeper.engines.sglang.adaptive import Adaptive
from sweeper.engines.sglang.host_env import UNSET_ENV
from sweeper.engines.sglang.table import LISTS
from sweeper.spec import FlagValue, ServerConfig
from sweeper.yaml_text import yaml_text

IMAGE = "lmsysorg/sglang"
PORT = 30000
_RELEASE = re.compile(r"\d+\.\d+\.\d+(?:\.?(?:post|rc)\d+)?")


def flag_words(flags: Mapping[str, FlagValue]) -> dict[str, tuple[str, ...]]:
    """Each flag that is not False, and its words; a list's values are words of their own."""
    return {
        name: (f"--{name.replace('_', '-')}", *_values(name, value))
        for name, value in flags.items()
        if value is not False
    }


def _values(name: str, value: FlagValue) -> tuple[str, ...]:
    if value is True:
        return ()
    return tuple(str(value).split()) if name in LISTS else (str(value),)


def rank_words(num_nodes: int, node_address: str) -> tuple[tuple[str, ...], ...]:
    """What each rank of a server that spans several hosts is given; one empty entry for a server on one."""
    if num_nodes == 1:
        return ((),)
    same = ("--nnodes", str(num_nodes), "--dist-init-addr", node_address, "--node-rank")
    return tuple((*same, str(rank)) for rank in range(num_nodes))


def export(config: ServerConfig, placement: Placement, version: str, health_path: str) -> Serving:
    """The server of `config`, in the public image of the measured release (of a preview: the newest one)."""
    return Serving(
        command=placement.command,
        image=f"{IMAGE}:v{version}" if _RELEASE.fullmatch(version) else f"{IMAGE}:latest",
        image_command=("python3", "-m", "sglang.launch_server"),
        model=("--model-path", placement.model_path),
        flags=flag_words(config.flags),
        env=config.env,
        unset_env=tuple(name for name in UNSET_ENV if name not in config.env),
        port=PORT,
        health_path=health_path,
        num_gpus=max(1, _world_size(config.flags) // placement.num_nodes),
        node_address=placement.node_address,
        ranks=rank_words(placement.num_nodes, NODE_ADDRESS),
    )


def _world_size(flags: Mapping[str, FlagValue]) -> int:
    """GPUs in all: attention's data parallelism divides a tensor-parallel group, the other kind repeats it."""
    sizes = {name: value for name, value in flags.items() if isinstance(value, int) and value > 0}
    copies = 1 if flags.get("enable_dp_attention") is True else sizes.get("dp_size", 1)
    return sizes.get("tp_size", 1) * sizes.get("pp_size", 1) * copies


def own_formats(serving: Serving, found: Adaptive | str) -> OwnFormats:
    """The file for `--config` (server_args_config_parser.py), and what `adaptive` found."""
    command = "python3 -m sglang.launch_server --config {} --host ADDRESS --port PORT"
    ranks = len(serving.ranks)
    rank = f" --node-rank RANK (0 to {ranks - 1})" if ranks > 1 else ""
    environment = tuple(f"Set in the environment: {name}" for name in serving.env)
    plain = OwnFormat(
        "sglang.yaml", config_file(serving, serving.flags), (command.format("sglang.yaml") + rank, *environment)
    )
    if isinstance(found, str):
        return OwnFormats((plain,), (f"speculative-adaptive.json: {found}",) if found else ())
    flags = {**serving.flags, **flag_words(found.flags)}
    usage = (
        command.format("sglang-adaptive.yaml") + rank,
        "from the folder of speculative-adaptive.json. The number of draft steps follows the batch size. Each of",
        "them was measured by itself; the switching between them was not.",
        *environment,
    )
    return OwnFormats(
        (
            plain,
            OwnFormat("speculative-adaptive.json", found.text, has_comments=False),
            OwnFormat("sglang-adaptive.yaml", config_file(serving, flags), usage),
        )
    )


def config_file(serving: Serving, flags: Mapping[str, tuple[str, ...]]) -> str:
    """What `--config` reads. All values are text: SGLang passes each on as the word that it is."""
    ranks = serving.ranks[0][:-2]  # the rank itself is given on the command line
    pairs = zip(ranks[::2], ranks[1::2], strict=True)
    data: dict[str, object] = {serving.model[0].removeprefix("--"): serving.model[1]}
    for name, *values in flags.values():
        data[name.removeprefix("--")] = True if not values else values[0] if len(values) == 1 else values
    for name, value in pairs:
        data[name.removeprefix("--")] = serving.node_address if value == NODE_ADDRESS else value
    return yaml_text(data)
