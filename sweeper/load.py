"""A workload as it is sent: the prompts of every pass, and the one that warms the server up."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from sweeper.workload_spec import Prompt, WorkloadSpec

WARMUP_ID = "warm-up"
_WARMUP_TEXT = (
    "List the months of the year in order. For each one write a short sentence about the weather, then one about "
    "what grows in the garden."
)


@dataclass(frozen=True)
class Load:
    """`passes[n]` holds the prompts of pass n, in order; the same in every launch. `warmup` is none of them."""

    workload: WorkloadSpec
    warmup: Prompt
    passes: tuple[tuple[Prompt, ...], ...]


def load_of(workload: WorkloadSpec) -> Load:
    """The load of a workload. Its prompts have no `token_ids` yet."""
    count = max(workload.repeats, workload.max_repeats)
    return Load(
        workload=workload,
        warmup=Prompt(id=WARMUP_ID, text=_WARMUP_TEXT, prompt_class=WARMUP_ID),
        passes=tuple(tuple(_in_pass(p, number, workload) for p in workload.prompts) for number in range(count)),
    )


def _in_pass(prompt: Prompt, number: int, workload: WorkloadSpec) -> Prompt:
    """The prompt of one pass: as it is in the first, then behind a prefix that no earlier request had.

    A prefix cache compares from the first token on. The words depend on the prompt and the pass alone, so that
    all launches send the same.
    """
    if number == 0 or not workload.fresh_prefixes:
        return prompt
    word = hashlib.sha256(f"{workload.seed} {number} {prompt.id}".encode()).hexdigest()[:8]
    return prompt.model_copy(update={"text": f"({word}) {prompt.text}"})
