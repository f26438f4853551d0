"""llama.cpp's server for other places than a launch: its words, its image, its preset file. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from sweeper.engines.serving import OwnFormat, OwnFormats, Placement, Serving
from sweeper.spec import FlagValue, ServerConfig

IMAGE = "ghcr.io/ggml-org/llama.cpp"
PORT = 8080
_KEY_OF_API = "LLAMA_API_KEY"
"""A launch does without it, since it would refuse our requests; whoever serves may well want one."""

UNSET_ENV = (
    # llama-server reads flags from LLAMA_ARG_* too: the host's own would be measured without being recorded.
    # And a key in the environment would make it refuse our requests.
    _KEY_OF_API,
    "LLAMA_ARG_SPEC_TYPE",
    "LLAMA_ARG_SPEC_DRAFT_MODEL",
    "LLAMA_ARG_MODEL_DRAFT",
    "LLAMA_ARG_DRAFT_MAX",
    "LLAMA_ARG_DRAFT_MIN",
    "LLAMA_ARG_DRAFT_P_MIN",
    "LLAMA_ARG_CTX_SIZE",
    "LLAMA_ARG_N_PARALLEL",
    "LLAMA_ARG_THREADS",
    "LLAMA_ARG_BATCH",
    "LLAMA_ARG_UBATCH",
    "LLAMA_ARG_FLASH_ATTN",
)

_BUILD = re.compile(r"b?(\d{3,6})(?: |\Z)")
_KEY = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.-]*")
_UNWRITABLE = re.compile(r"[;#\r\n]|\A[ \t]|[ \t]\Z")


def flag_words(flags: Mapping[str, FlagValue]) -> dict[str, tuple[str, ...]]:
    """Each flag that is not False, and its words."""
    return {
        name: (f"--{name.replace('_', '-')}", *(() if value is True else (str(value),)))
        for name, value in flags.items()
        if value is not False
    }


def export(config: ServerConfig, placement: Placement, version: str, health_path: str) -> Serving:
    """The server of `config`. The images are tagged by build number; the wheel's version is none of these."""
    build = _BUILD.match(version)
    return Serving(
        command=placement.command,
        image=f"{IMAGE}:server-b{build[1]}" if build else f"{IMAGE}:server",
        image_command=("/app/llama-server",),
        model=("--model", placement.model_path),
        flags=flag_words(config.flags),
        env=config.env,
        unset_env=tuple(name for name in UNSET_ENV if name not in config.env and name != _KEY_OF_API),
        port=PORT,
        health_path=health_path,
    )


def own_formats(serving: Serving) -> OwnFormats:
    """The router's preset file (`--models-preset`).

    Its grammar (llama.cpp, common/preset.cpp) knows no quotes: a value ends before `;`, `#` and the end of the
    line, and has no space at its ends.
    """
    rows = [(words[0].removeprefix("--"), words[1] if words[1:] else "true") for words in _options(serving)]
    for name, value in rows:
        if not _KEY.fullmatch(name) or _UNWRITABLE.search(value):
            return OwnFormats(left_out=(f"llama-server.ini: it cannot hold the value of --{name[:80]}",))
    lines = ["version = 1", "", "[tuned]", *(f"{name} = {value}" for name, value in rows)]
    usage = (
        "llama-server --models-preset llama-server.ini --host ADDRESS --port PORT",
        "Requests name the model `tuned`.",
        *(f"Set in the environment: {name}" for name in serving.env),
    )
    return OwnFormats((OwnFormat("llama-server.ini", "\n".join(lines) + "\n", usage),))


def _options(serving: Serving) -> list[tuple[str, ...]]:
    return [serving.model, *serving.flags.values()]
