"""A command line for the llama.cpp server inside the wheel `xllamacpp`: `python -m launchers.llamacpp_server`.

The wheel carries llama-server's whole HTTP side but no program. This maps llama-server's own flag names onto its
parameter object, so that whatever drives a native `llama-server` drives this one too. It runs in the foreground,
with the endpoints /metrics, /props and /slots on, until SIGTERM or SIGINT; then it ends with exit code 0.
A refused argument or a model that cannot be loaded ends it with exit code 1 and a line on standard error.
"""

from __future__ import annotations

import argparse
import importlib.util
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

MISSING = (
    "the packaged llama.cpp (xllamacpp) is not installed: pip install '.[embedded]' in specsweep's checkout, or "
    "engine.command=[llama-server] for a native one"
)

DRAFT_TYPES = ("draft-simple", "draft-eagle3", "draft-mtp", "draft-dflash", "draft-dspark")
NGRAM_TYPES = ("ngram-simple", "ngram-map-k", "ngram-map-k4v", "ngram-mod", "ngram-cache")


@dataclass(frozen=True)
class Flag:
    """One flag: its spellings, how its text is read, and where it goes in xllamacpp's CommonParams."""

    names: tuple[str, ...]
    read: Callable[[str], object]
    target: str


def _whole(low: int, high: int = 2**31 - 1) -> Callable[[str], int]:
    """A reader of whole numbers from `low` to `high`."""

    def read(text: str) -> int:
        try:
            value = int(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(f"must be a whole number, not {text[:80]!r}") from error
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f"must be between {low} and {high} inclusive, not {value}")
        return value

    return read


def _spec_types(text: str) -> tuple[str, ...]:
    """A comma list of speculative types; `none` anywhere switches speculation off. Raises ArgumentTypeError."""
    types = tuple(text.split(","))
    for name in types:
        if name not in ("none", *DRAFT_TYPES, *NGRAM_TYPES):
            raise argparse.ArgumentTypeError(f"unknown speculative type: {name[:80]}")
    return ("none",) if "none" in types else types


def _on_off_auto(text: str) -> str:
    """`on`, `off` or `auto`. Raises ArgumentTypeError."""
    if text not in ("on", "off", "auto"):
        raise argparse.ArgumentTypeError(f"unknown value {text[:80]!r}; on, off or auto")
    return text


def _ngram_flags() -> tuple[Flag, ...]:
    """The n-gram drafters' flags. llama-server's parser has the same limits; its parameter object has none."""
    flags = []
    for kind in ("simple", "map-k", "map-k4v"):
        target = f"speculative.ngram_{kind.replace('-', '_')}"
        flags += [
            Flag((f"--spec-ngram-{kind}-size-n",), _whole(1, 1024), f"{target}.size_n"),
            Flag((f"--spec-ngram-{kind}-size-m",), _whole(1, 1024), f"{target}.size_m"),
            Flag((f"--spec-ngram-{kind}-min-hits",), _whole(1), f"{target}.min_hits"),
        ]
    return (
        *flags,
        Flag(("--spec-ngram-mod-n-match",), _whole(1, 1024), "speculative.ngram_mod.n_match"),
        Flag(("--spec-ngram-mod-n-min",), _whole(0, 1024), "speculative.ngram_mod.n_min"),
        Flag(("--spec-ngram-mod-n-max",), _whole(0, 1024), "speculative.ngram_mod.n_max"),
    )


FLAGS = (
    Flag(("-m", "--model"), str, "model.path"),
    Flag(("-a", "--alias"), str, "model_alias"),
    Flag(("--host",), str, "hostnames"),
    Flag(("--port",), _whole(1, 65535), "port"),
    Flag(("-c", "--ctx-size"), _whole(0), "n_ctx"),
    Flag(("-np", "--parallel"), _whole(1), "n_parallel"),
    Flag(("-t", "--threads"), _whole(-1), "cpuparams.n_threads"),
    Flag(("-tb", "--threads-batch"), _whole(-1), "cpuparams_batch.n_threads"),
    Flag(("-b", "--batch-size"), _whole(1), "n_batch"),
    Flag(("-ub", "--ubatch-size"), _whole(1), "n_ubatch"),
    Flag(("--seed",), _whole(-1, 2**32 - 1), "sampling.seed"),
    Flag(("-fa", "--flash-attn"), _on_off_auto, "flash_attn_type"),
    Flag(("-md", "--spec-draft-model"), str, "speculative.draft.mparams.path"),
    Flag(("--spec-type",), _spec_types, "speculative.types"),
    Flag(("--spec-draft-n-max",), _whole(0), "speculative.draft.n_max"),
    Flag(("--spec-draft-n-min",), _whole(0), "speculative.draft.n_min"),
    Flag(("--spec-draft-p-min",), float, "speculative.draft.p_min"),
    Flag(("--spec-draft-p-split",), float, "speculative.draft.p_split"),
    *_ngram_flags(),
)


class _Parser(argparse.ArgumentParser):
    """Refuses as llama-server does: `error: ...` on standard error and exit code 1."""

    def error(self, message: str) -> NoReturn:
        self.exit(1, f"error: {message.replace('unrecognized arguments', 'invalid argument')}\n")


def parse_arguments(arguments: Sequence[str]) -> dict[str, Any]:
    """CommonParams attribute -> value, for every flag that was given. Exits with 1 when one is refused."""
    parser = _Parser(prog="llamacpp_server", description=(__doc__ or "").split("\n")[0], allow_abbrev=False)
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    for name in ("--metrics", "--props", "--slots"):  # llama-server needs them; here these endpoints are always on
        parser.add_argument(name, action="store_const", const=None)
    for flag in FLAGS:
        metavar = flag.names[-1].lstrip("-").replace("-", "_").upper()
        parser.add_argument(*flag.names, type=flag.read, dest=flag.target, metavar=metavar)
    given = {name: value for name, value in vars(parser.parse_args(arguments)).items() if value is not None}
    if not given.pop("version") and "model.path" not in given:
        parser.error("the following arguments are required: -m/--model")
    for name, what in (("model.path", "model"), ("speculative.draft.mparams.path", "draft model")):
        if name in given and not Path(given[name]).is_file():
            parser.error(f"failed to load {what}, {given[name]!r}: no such file")
    return given


def version_line() -> str:
    """`version: xllamacpp X (REVISION)`: the wheel's version and source revision; it hides llama.cpp's own."""
    from xllamacpp import _version

    versions = _version.get_versions()
    return f"version: xllamacpp {versions['version']} ({versions['full-revisionid'][:12]})"


def to_common_params(given: dict[str, Any]) -> Any:  # noqa: ANN401 - the wheel is untyped
    """xllamacpp's CommonParams with the given values set, and the endpoints that are read later switched on."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.endpoint_metrics = params.endpoint_props = params.endpoint_slots = True
    params.port = 8080  # llama-server's own default
    for target, value in given.items():
        *path, name = target.split(".")
        owner = params
        for step in path:
            owner = getattr(owner, step)
        setattr(owner, name, _converted(xllamacpp, target, value))
    # As llama-server does: batches use the same threads unless told otherwise, and the draft model the target's.
    threads = params.cpuparams.n_threads
    if "cpuparams_batch.n_threads" not in given:
        params.cpuparams_batch.n_threads = threads
    params.speculative.draft.cpuparams.n_threads = threads
    params.speculative.draft.cpuparams_batch.n_threads = params.cpuparams_batch.n_threads
    return params


def _converted(xllamacpp: Any, target: str, value: Any) -> object:  # noqa: ANN401 - the wheel is untyped
    """The value in the type that the attribute `target` of CommonParams has."""
    if target == "hostnames":
        return [value]
    if target == "model_alias":
        return {value}
    if target == "flash_attn_type":
        kind = {"on": "ENABLED", "off": "DISABLED", "auto": "AUTO"}[value]
        return getattr(xllamacpp.llama_flash_attn_type, f"LLAMA_FLASH_ATTN_TYPE_{kind}")
    if target == "speculative.types":
        names = (f"COMMON_SPECULATIVE_TYPE_{name.upper().replace('-', '_')}" for name in value)
        return [getattr(xllamacpp.common_speculative_type, name) for name in names]
    return value % 2**32 if target == "sampling.seed" else value


def serve(given: dict[str, Any]) -> int:
    """Load the model and answer until SIGTERM or SIGINT; returns the exit code."""
    import xllamacpp

    # While the model loads no Python code runs: the default action ends the process at once.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    stop = threading.Event()
    try:
        server = xllamacpp.Server(to_common_params(given))
    except (RuntimeError, ValueError, OSError) as error:
        sys.stderr.write(f"error: the server did not start: {str(error)[:500]}\n")
        return 1
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    stop.wait()
    del server  # its destructor ends the main loop and waits for it
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    given = parse_arguments(sys.argv[1:] if arguments is None else arguments)
    if importlib.util.find_spec("xllamacpp") is None:
        sys.stderr.write(f"error: {MISSING}\n")
        return 1
    if "model.path" not in given:
        sys.stdout.write(version_line() + "\n")
        return 0
    return serve(given)


if __name__ == "__main__":
    sys.exit(main())
