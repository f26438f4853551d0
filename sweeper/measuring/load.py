"""A workload as it is sent: the prompts of every pass, and the one that warms the server up."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from sweeper.workload_spec import Prompt, WorkloadSpec

WARMUP_ID = "warm-up"
_WARMUP_CHAT = (
    "List the months of the year in order. For each one write a short sentence about the weather, then one about "
    "what grows in the garden."
)
_WARMUP_TEXT = (
    "The months of the year in order, each with a short sentence about the weather and one about what grows in "
    "the garden.\n\nJanuary:"
)
"""Bare text is gone on with: an instruction would be, too, and often ends at once."""


@dataclass(frozen=True)
class Load:
    """`passes[n]` holds the prompts of pass n, in order; the same in every launch. `warmup` is none of them."""

    workload: WorkloadSpec
    warmup: Prompt
    passes: tuple[tuple[Prompt, ...], ...]


def load_of(workload: WorkloadSpec) -> Load:
    """The load of a workload that is alone in its launch. Its prompts have no `token_ids` yet."""
    return loads_of([workload])[0]


def loads_of(workloads: Sequence[WorkloadSpec]) -> tuple[Load, ...]:
    """The load of each workload of a launch, in the order in which they are measured.

    With `fresh_prefixes` no text is sent twice in a launch, neither by a later pass nor by another workload.
    """
    sent: set[str] = set()
    return tuple(_load(workload, place, sent) for place, workload in enumerate(workloads))


def _load(workload: WorkloadSpec, place: int, sent: set[str]) -> Load:
    text = _WARMUP_CHAT if workload.chat else _WARMUP_TEXT
    first = tuple(_first(prompt, workload, place, sent) for prompt in workload.prompts)
    later = range(1, max(workload.repeats, workload.max_repeats))
    return Load(
        workload=workload,
        warmup=Prompt(id=WARMUP_ID, text=text, prompt_class=WARMUP_ID),
        passes=(first, *(tuple(_fresh(p, workload, place, n) for p in workload.prompts) for n in later)),
    )


def _first(prompt: Prompt, workload: WorkloadSpec, place: int, sent: set[str]) -> Prompt:
    """The prompt of the first pass: as it is, unless an equal text was sent before."""
    if prompt.text in sent:
        return _fresh(prompt, workload, place, 0)
    sent.add(prompt.text)
    return prompt


def _fresh(prompt: Prompt, workload: WorkloadSpec, place: int, number: int) -> Prompt:
    """The prompt of pass `number` behind a word of its own, or as it is without `fresh_prefixes`.

    A prefix cache compares from the first token on, and so all of the prompt behind a new word is new. The word
    depends on the prompt, its pass and the workload's place alone: all launches of a study send the same. It is
    put in brackets, and reads as a mark in front of a question as well as of text that is gone on with.
    """
    if not workload.fresh_prefixes:
        return prompt
    word = hashlib.sha256(f"{workload.seed} {place} {number} {prompt.id}".encode()).hexdigest()[:8]
    return prompt.model_copy(update={"text": f"({word}) {prompt.text}"})
