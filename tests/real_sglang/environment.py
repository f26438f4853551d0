"""Where the real SGLang is, and what a sweep's configuration needs to start it on a CPU."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sweeper.spec import FlagValue
from tests.real_sglang.install import default_folder, install

VERSION = "0.5.23"
SHIM = Path(__file__).parent / "shim"
TINY = "SPECSWEEP_TINY_EAGLE3"
NO_TINY = f"the tiny EAGLE-3 pair was not found: {TINY} names a folder with `target` and `draft-eagle3`"

FLAGS: Mapping[str, FlagValue] = {
    "device": "cpu",
    "attention_backend": "intel_amx",  # SGLang's only CPU attention that can speculate; the shim provides it
    "dtype": "float32",  # a CPU without bfloat16 instructions emulates them
    "mem_fraction_static": 0.2,
    "max_total_tokens": 4096,
    "context_length": 2048,
    "max_running_requests": 4,
    "disable_cuda_graph": True,
    "grammar_backend": "none",
    "skip_server_warmup": True,  # a warm-up request waits for /health twice, and is told nothing else
    "enable_metrics": True,
    "decode_log_interval": 10,  # steps; 40 would be more than a short answer has
}
ENV: Mapping[str, str] = {
    "PYTHONPATH": str(SHIM),
    "SGLANG_USE_CPU_ENGINE": "1",
    "HF_HUB_OFFLINE": "1",
    "OMP_NUM_THREADS": "1",  # more than one spins at barriers as soon as anything else runs
    "TORCHDYNAMO_DISABLE": "1",  # else the first speculative request compiles for half a minute
}


@dataclass(frozen=True)
class RealSglang:
    """An installed SGLang: `python -m sglang.launch_server` with `env` and `flags` serves on a CPU.

    `target` and `draft_standalone` are SmolLM2-135M and a draft cut from it; `tiny_target` and `tiny_draft` the
    EAGLE-3 pair, None where it is not.
    """

    python: Path
    target: Path
    draft_standalone: Path
    tiny_target: Path | None
    tiny_draft: Path | None
    env: dict[str, str] = field(default_factory=lambda: dict(ENV))
    flags: dict[str, FlagValue] = field(default_factory=lambda: dict(FLAGS))

    @property
    def command(self) -> tuple[str, ...]:
        """What `engine.command` of a sweep is."""
        return (str(self.python), "-m", "sglang.launch_server")


def real_sglang() -> RealSglang:
    """SGLang 0.5.23, installed first where it is not: some minutes, once. Raises InstallFailed, OSError."""
    folder = default_folder()
    install(folder)
    tiny = tiny_pair()
    return RealSglang(
        python=folder / "env" / "bin" / "python",
        target=folder / "models" / "target",
        draft_standalone=folder / "models" / "draft",
        tiny_target=tiny / "target" if tiny else None,
        tiny_draft=tiny / "draft-eagle3" if tiny else None,
    )


def tiny_pair() -> Path | None:
    """The folder with the tiny target and its EAGLE-3 draft, if it is anywhere."""
    if not (named := os.environ.get(TINY)):
        return None
    folder = Path(named).absolute()
    return folder if (folder / "target").is_dir() and (folder / "draft-eagle3").is_dir() else None
