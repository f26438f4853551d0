"""A workload as it is sent: the prompts of every pass, and the one that warms the server up."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
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
    """`passes[n]` holds the prompts of pass n, in order; the same in every launch. `warmup` is none of them.

    After `repeats` passes the same texts come again, in cycles: launches of more cycles have done the same work,
    and can be compared.
    """

    workload: WorkloadSpec
    warmup: Prompt
    passes: tuple[tuple[Prompt, ...], ...]


def loads_of(workloads: Sequence[WorkloadSpec]) -> tuple[Load, ...]:
    """The load of each workload of a launch, in the order in which they are measured. No prompt has `token_ids`.

    With `fresh_prefixes` no text is sent twice in a cycle of passes, nor by two workloads.
    """
    sent: set[str] = set()
    return tuple(_load(workload, place, sent) for place, workload in enumerate(workloads))


def _load(workload: WorkloadSpec, place: int, sent: set[str]) -> Load:
    text = _WARMUP_CHAT if workload.chat else _WARMUP_TEXT
    prompts = tuple(_filling(workload))
    first = tuple(_first(prompt, workload, place, sent) for prompt in prompts)
    later = (tuple(_fresh(p, workload, place, n) for p in prompts) for n in range(1, workload.repeats))
    cycle = (first, *later)
    num_cycles = max(1, workload.max_repeats // workload.repeats)
    warmup = Prompt(id=WARMUP_ID, text=text, prompt_class=WARMUP_ID)
    return Load(workload=workload, warmup=warmup, passes=cycle * num_cycles)


def once_each(load: Load) -> Load:
    """The same with one pass: for a sweep in which a server remembers what it has written."""
    once = load.workload.model_copy(update={"repeats": 1, "max_repeats": 0})
    return Load(workload=once, warmup=load.warmup, passes=load.passes[:1])


def _filling(workload: WorkloadSpec) -> Iterator[Prompt]:
    """The prompts, and their copies under names and prefixes of their own.

    Fewer prompts than there are places could never be that many under way at once. A copy of `a` is called `a+2`;
    where a prompt has a + in its own id, with one more of them than any has in a row: no two names are equal.
    """
    yield from workload.prompts
    mark = "+"
    while any(mark in prompt.id for prompt in workload.prompts):
        mark += "+"
    for number in range(2, 1 + workload.num_copies):
        for prompt in workload.prompts:
            word = _word(f"{workload.seed} {number} {prompt.id}")
            yield prompt.model_copy(update={"id": f"{prompt.id}{mark}{number}", "text": f"({word}) {prompt.text}"})


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
    word = _word(f"{workload.seed} {place} {number} {prompt.id}")
    return prompt.model_copy(update={"text": f"({word}) {prompt.text}"})


def _word(seed: str) -> str:
    return hashlib.sha256(seed.encode()).hexdigest()[:8]
