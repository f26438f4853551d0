"""The first trials of a study: the baseline, then one probe that says most about a drafter."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sweeper.samplers.physics.batch import Batch
from sweeper.samplers.physics.encoding import Encoding
from sweeper.samplers.physics.evidence import Evidence
from sweeper.samplers.physics.knowledge import Knowledge

PROBES = ((5, 4, 16), (5, 1, 6), (3, 1, 4))
"""num_steps, topk, draft_tokens. A tree shows siblings as well; chains where trees are not to be had, or fail."""

PROBING = "a probe: one run shows how far this drafter's guesses carry"

MAX_PROBES = 4
"""So many failed probes are enough: the model goes on with what it has."""

MOST_DRAFTERS = 4
"""Of more, those are tried that are worth it by what the first ones showed."""


def openings(encoding: Encoding, evidence: Evidence) -> Iterator[tuple[int, str]]:
    """Heads to begin with, each with its reason; tried or illegal ones are for the caller to skip.

    None once a server with and (where the space has them) one without speculation were measured.
    """
    measured = evidence.batch.take(evidence.measured)
    own = measured.take(~measured.foreign)
    plain = next((i for i, head in enumerate(encoding.heads) if not head.speculative), None)
    tried = evidence.batch.take(evidence.failed)
    if plain is not None and not _has(own, False) and not _has(tried, False):
        yield plain, "the baseline: what everything is compared with"
    if _has(measured, True) or int(tried.speculative.sum()) >= MAX_PROBES:
        return
    for probe in PROBES:
        for drafter in range(encoding.num_drafters):
            head = _nearest(encoding, drafter, probe)
            if head is not None:
                yield head, PROBING


def probes_left(encoding: Encoding, knowledge: Knowledge) -> list[int]:
    """Heads that show most of drafters that were never tried: a chain says nothing of a tree's siblings.

    None of more than MOST_DRAFTERS, nor once MAX_PROBES failed: what probes cost is then better spent.
    """
    evidence = knowledge.evidence
    if encoding.num_drafters > MOST_DRAFTERS or (evidence.failed & evidence.batch.speculative).sum() >= MAX_PROBES:
        return []
    new = sorted(set(range(encoding.num_drafters)) - knowledge.tried)
    heads = [_nearest(encoding, drafter, PROBES[0]) for drafter in new]
    return [head for head in heads if head is not None]


def _has(batch: Batch, speculative: bool) -> bool:
    return bool((batch.speculative == speculative).any())


def _nearest(encoding: Encoding, drafter: int, probe: tuple[int, int, int]) -> int | None:
    table = encoding.table
    rows = np.flatnonzero(table.speculative & (table.drafter == drafter))
    if not len(rows):
        return None
    steps, topk, tokens = probe
    apart = (
        np.abs(table.num_steps[rows] - steps) / 4
        + 2 * np.abs(np.log2(table.topk[rows] / topk))
        + np.abs(np.log2(table.draft_tokens[rows] / tokens))
    )
    return int(rows[np.argmin(apart)])
