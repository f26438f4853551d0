"""Where the real vLLM is, and what a sweep's configuration needs to start it on a CPU."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sweeper.spec import FlagValue
from tests.real_sglang.environment import tiny_pair
from tests.real_vllm.install import default_folder

FLAGS: Mapping[str, FlagValue] = {
    "dtype": "float32",
    "max_model_len": 2048,
    "max_num_seqs": 4,
    "enforce_eager": True,  # a compiled start takes minutes
}
ENV: Mapping[str, str] = {
    "HF_HUB_OFFLINE": "1",
    "OMP_NUM_THREADS": "1",  # more than one spins at barriers as soon as anything else runs
    "TORCHDYNAMO_DISABLE": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",  # GiB
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_NO_USAGE_STATS": "1",
}


@dataclass(frozen=True)
class RealVllm:
    """An installed vLLM: `command` with `env` and `flags` serves on a CPU.

    `target` and `draft` are SmolLM2-135M and a draft cut from it; `tiny_target` and `tiny_draft` the EAGLE-3 pair,
    None where it is not.
    """

    python: Path
    target: Path
    draft: Path
    tiny_target: Path | None
    tiny_draft: Path | None
    env: dict[str, str] = field(default_factory=lambda: dict(ENV))
    flags: dict[str, FlagValue] = field(default_factory=lambda: dict(FLAGS))

    @property
    def command(self) -> tuple[str, ...]:
        """What `engine.command` of a sweep is. (The program `vllm` names a Python that has moved since.)"""
        return (str(self.python), "-m", "vllm.entrypoints.cli.main", "serve")


def real_vllm() -> RealVllm:
    """vLLM 0.32.0 as tests.real_vllm.install put it there."""
    folder, tiny = default_folder(), tiny_pair()
    return RealVllm(
        python=folder / "env" / "bin" / "python",
        target=folder / "models" / "target",
        draft=folder / "models" / "draft",
        tiny_target=tiny / "target" if tiny else None,
        tiny_draft=tiny / "draft-eagle3" if tiny else None,
    )
