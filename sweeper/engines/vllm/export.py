"""vLLM's server for other places than a launch: its words, its image, its own configuration file. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from sweeper.engines.all_reduces import NCCL_TUNING
from sweeper.engines.serving import OwnFormat, OwnFormats, Placement, Serving
from sweeper.engines.vllm.rules import speculative_config, world_size
from sweeper.engines.vllm.table import LISTS
from sweeper.spec import FlagValue, ServerConfig
from sweeper.yaml_text import yaml_text

IMAGE = "vllm/vllm-openai"
PORT = 8000
SPECULATIVE = "speculative_config"
_RELEASE = re.compile(r"\d+\.\d+\.\d+(?:\.?(?:post|rc)\d+)?")
_KEY_OF_API = "VLLM_API_KEY"
"""A launch does without it, since it would refuse our requests; whoever serves may well want one."""

UNSET_ENV = (
    _KEY_OF_API,
    # Settings of the host that would be measured without being recorded, or that would hide the log.
    "VLLM_ATTENTION_BACKEND",
    "VLLM_CONFIGURE_LOGGING",
    "VLLM_LOGGING_LEVEL",
    "VLLM_LOGGING_PREFIX",
    "VLLM_PROCESS_NAME_PREFIX",
    "VLLM_USE_V1",
    "VLLM_USE_FLASHINFER_SAMPLER",
    *NCCL_TUNING,
)
"""Unset at every launch, unless the configuration sets it."""


def flag_words(flags: Mapping[str, FlagValue]) -> dict[str, tuple[str, ...]]:
    """Each flag that is not False, and its words; all of speculation is one JSON."""
    words = {
        name: (_dashed(name), *_values(name, value))
        for name, value in flags.items()
        if value is not False and not name.startswith("spec_")
    }
    if entries := speculative_config(flags):
        words[SPECULATIVE] = (_dashed(SPECULATIVE), json.dumps(entries, sort_keys=True))
    return words


def _dashed(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _values(name: str, value: FlagValue) -> tuple[str, ...]:
    if value is True:
        return ()
    return tuple(str(value).split()) if name in LISTS else (str(value),)


def model_words(command: Sequence[str], path: str) -> tuple[str, ...]:
    """The words that name the model: of `vllm serve` the path alone (its --model is to be removed)."""
    return (path,) if "serve" in command else ("--model", path)


def placed(argv: Sequence[str]) -> Placement:
    """What a launch was given. Raises ValueError for any other command line."""
    heads = ("--served-model-name", "--host", "--port")
    for start in range(2, len(argv) - 5):
        if tuple(argv[start : start + 6 : 2]) == heads:
            nonce, bind, port = argv[start + 1 : start + 6 : 2]
            command = tuple(argv[: start - 1])
            command = command[:-1] if command[-1] == "--model" else command
            return Placement(command, argv[start - 1], int(port), nonce, bind)
    raise ValueError(f"no command line of a launch: it lacks {', '.join(heads)} in this order")


def export(config: ServerConfig, placement: Placement, version: str, health_path: str) -> Serving:
    """The server of `config`, in the public image of the measured release (of a preview: the newest one)."""
    release = version.partition("+")[0]
    return Serving(
        command=placement.command,
        image=f"{IMAGE}:v{release}" if _RELEASE.fullmatch(release) else f"{IMAGE}:latest",
        image_command=("vllm", "serve"),
        model=model_words(placement.command, placement.model_path),
        flags=flag_words(config.flags),
        env=config.env,
        unset_env=tuple(name for name in UNSET_ENV if name not in config.env and name != _KEY_OF_API),
        port=PORT,
        health_path=health_path,
        num_gpus=world_size(config.flags),
    )


def own_formats(serving: Serving) -> OwnFormats:
    """The file for `--config` (utils/argparse_utils.py, load_config_file); speculation is a mapping in it."""
    data: dict[str, object] = {"model": serving.model[-1]}
    for name, *values in serving.flags.values():
        key = name.removeprefix("--")
        if name == _dashed(SPECULATIVE):
            data[key] = json.loads(values[0])
        else:
            data[key] = True if not values else values[0] if len(values) == 1 else values
    usage = (
        "vllm serve --config vllm.yaml --host ADDRESS --port PORT",
        *(f"Set in the environment: {name}" for name in serving.env),
    )
    return OwnFormats((OwnFormat("vllm.yaml", yaml_text(data), usage),))
