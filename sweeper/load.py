"""A workload as it is sent: the prompts of every pass, and the one that warms the server up."""

from __future__ import annotations

import hashlib
import itertools
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
    return tuple(_load(workload, sent) for workload in workloads)


def _load(workload: WorkloadSpec, sent: set[str]) -> Load:
    warmup = Prompt(id=WARMUP_ID, text=_WARMUP_CHAT if workload.chat else _WARMUP_TEXT, prompt_class=WARMUP_ID)
    passes = range(max(workload.repeats, workload.max_repeats))
    return Load(
        workload=workload,
        warmup=warmup,
        passes=tuple(tuple(_in_pass(p, number, workload, sent) for p in workload.prompts) for number in passes),
    )


def _in_pass(prompt: Prompt, number: int, workload: WorkloadSpec, sent: set[str]) -> Prompt:
    """The prompt of one pass: as it is when it is new to the server, else behind a prefix of its own.

    A prefix cache compares from the first token on, and so all of the prompt behind a new word is new. The word
    depends on the prompt, the pass and what was sent before alone: all launches send the same. It stands in
    brackets, which reads as a mark in front of a question as well as in front of text that is gone on with.
    """
    text = prompt.text
    if workload.fresh_prefixes:
        for attempt in itertools.count():
            if text not in sent:
                break
            word = hashlib.sha256(f"{workload.seed} {number} {attempt} {prompt.id}".encode()).hexdigest()[:8]
            text = f"({word}) {prompt.text}"
        sent.add(text)
    return prompt.model_copy(update={"text": text}) if text != prompt.text else prompt
