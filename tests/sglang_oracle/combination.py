"""One combination of a model, flags and environment, and how systematic products of them are made."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field

FlagValue = str | int | float | bool


@dataclass(frozen=True)
class Combination:
    """One command line: a target on a kind of GPU, flags (None left away) and environment."""

    gpu: str
    model: str
    flags: Mapping[str, FlagValue]
    env: Mapping[str, str] = field(default_factory=dict)

    def argv(self) -> list[str]:
        """The flags as a launch would pass them."""
        words = []
        for name, value in self.flags.items():
            words += [f"--{name.replace('_', '-')}"] + ([] if value is True else str(value).split(" "))
        return words


BASE: dict[str, FlagValue] = {"attention_backend": "triton", "max_running_requests": 8, "mem_fraction_static": 0.8}
DRAFTS = {
    "EAGLE3": "{eagle3}",
    "EAGLE": "{eagle}",
    "NEXTN": "{eagle}",
    "STANDALONE": "{small}",
    "DFLASH": "{block}",
}
CHAIN = {"speculative_num_steps": 3, "speculative_eagle_topk": 1, "speculative_num_draft_tokens": 4}
TREE = {"speculative_num_steps": 3, "speculative_eagle_topk": 4, "speculative_num_draft_tokens": 8}
ALGORITHMS = ("", "EAGLE3", "EAGLE", "STANDALONE", "NGRAM", "DFLASH")
BACKENDS = (
    *("triton", "flashinfer", "fa3", "fa4", "flashmla", "trtllm_mla", "trtllm_mha", "cutlass_mla"),
    *("flex_attention", "torch_native", "cutedsl_mla", "tokenspeed_mla", "nsa", "hpc_ops"),
)


def product(**choices: Sequence[FlagValue | None]) -> Iterator[dict[str, FlagValue]]:
    """Every combination of these values; None leaves the flag away."""
    for values in itertools.product(*choices.values()):
        yield {name: value for name, value in zip(choices, values, strict=True) if value is not None}


def speculation(
    algorithm: str, numbers: Mapping[str, FlagValue] | None = None, model: str = "llama"
) -> dict[str, FlagValue]:
    """The flags of an algorithm with a draft that fits `model`; no algorithm: none."""
    if not algorithm:
        return {}
    draft: dict[str, FlagValue] = {}
    if algorithm in DRAFTS:
        wide = "-wide}" if model == "deepseek" else "}"
        draft = {"speculative_draft_model_path": DRAFTS[algorithm].replace("}", wide)}
    default = CHAIN if algorithm in ("EAGLE3", "EAGLE", "NEXTN", "STANDALONE") else {}
    return {"speculative_algorithm": algorithm, **draft, **(default if numbers is None else numbers)}


def fingerprint(found: Sequence[Combination]) -> str:
    """What tells stored outcomes from those of other combinations."""
    return hashlib.sha256(json.dumps([asdict(one) for one in found], sort_keys=True).encode()).hexdigest()[:16]
