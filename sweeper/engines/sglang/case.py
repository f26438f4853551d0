"""One configuration together with everything that decides about it: what the rules of SGLang are given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from sweeper.engines.base import HostFacts
from sweeper.engines.sglang.model import Model, config_path, read_model
from sweeper.engines.sglang.version import Version, version_of
from sweeper.spec import FlagValue

EAGLE_FAMILY = ("EAGLE", "EAGLE3", "STANDALONE")
"""After NEXTN has become EAGLE: the algorithms that _handle_eagle_family (formerly server_args.py) deals with."""

_GPUS = (
    # Part of the name that nvidia-smi gives, to the architecture. The first that fits wins.
    ("RTX PRO", "sm120"),
    ("RTX 50", "sm120"),
    ("GB200", "sm100"),
    ("GB300", "sm100"),
    ("B200", "sm100"),
    ("B300", "sm100"),
    ("B100", "sm100"),
    ("GH200", "sm90"),
    ("H100", "sm90"),
    ("H200", "sm90"),
    ("H800", "sm90"),
    ("H20", "sm90"),
    ("RTX 40", "sm89"),
    ("L40", "sm89"),
    ("L4", "sm89"),
    ("A100", "sm80"),
    ("A800", "sm80"),
    ("A30", "sm80"),
    ("A10", "sm86"),
    ("A40", "sm86"),
    ("RTX A6000", "sm86"),
    ("V100", "sm70"),
    ("T4", "sm75"),
)


@dataclass(frozen=True)
class Case:
    """Flags and environment, and the host they are for. `target` and `draft`: None when nothing is known of them.

    `gpu` is sm80, sm90, sm100, sm120, ...; empty when unknown or when the host has several kinds.
    """

    flags: Mapping[str, FlagValue]
    env: Mapping[str, str]
    version: Version
    gpu: str = ""
    target_path: str = ""
    target: Model | None = None
    draft: Model | None = None

    @property
    def algorithm(self) -> str:
        """The speculative algorithm as the server names it; empty for none."""
        return self.text("speculative_algorithm")

    def text(self, name: str) -> str:
        """A flag's text; empty when it is not set, or is no text."""
        value = self.flags.get(name)
        return value if isinstance(value, str) else ""

    def number(self, name: str) -> int | None:
        """A flag's whole number; None when it is not set, or is none."""
        value = self.flags.get(name)
        return value if type(value) is int else None

    def at_least(self, name: str, default: int = 1) -> int:
        """A flag's whole number, or `default`."""
        number = self.number(name)
        return default if number is None else number

    def on(self, name: str) -> bool:
        """Whether a bare flag is set."""
        return self.flags.get(name) is True

    @property
    def dp_attention(self) -> int:
        """Into how many groups attention is split; 1 for not at all (parallel_hook.py; server_args.py before)."""
        if self.on("enable_dp_attention"):
            return max(self.at_least("dp_size"), self.at_least("attn_dp_size"))
        return self.at_least("attn_dp_size")


def case_of(flags: Mapping[str, FlagValue], env: Mapping[str, str], facts: HostFacts) -> Case:
    """The case of these flags on the host of `facts`."""
    draft = flags.get("speculative_draft_model_path")
    return Case(
        flags=flags,
        env=env,
        version=version_of(facts.engine_version),
        gpu=gpu_architecture(facts.gpu_names),
        target_path=facts.model_path,
        target=_model(facts.model_path, facts),
        draft=_model(draft, facts) if isinstance(draft, str) else None,
    )


@lru_cache(maxsize=64)
def gpu_architecture(names: tuple[str, ...]) -> str:
    """The architecture of these GPUs; empty when a name is not known, or when they differ."""
    kinds = {next((kind for part, kind in _GPUS if part in name), "") for name in names}
    return kinds.pop() if len(kinds) == 1 else ""


def _model(path: str, facts: HostFacts) -> Model | None:
    """The model at `path`; None when its config.json was not looked for, with an error when it is not there."""
    name = config_path(path)
    if not name or name not in facts.files:
        return None
    text = facts.files[name]
    return Model(error="does not exist") if text is None else read_model(text)
