"""The drafters of a surface, and how many drafts of each are accepted, by tree; the tables are kept in a cache."""

from __future__ import annotations

import io
import os
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from tests.bench.search.simulator.acceptance import Drafter, histograms
from tests.bench.search.simulator.configurations import MAX_STEPS, TOPKS, Trees
from tests.bench.search.simulator.draws import Floats
from tests.bench.search.simulator.regimes import QUALITIES

NUM_PROMPTS = 5
VERSION = 1
"""Of everything that the cached files are computed from."""


@dataclass(frozen=True)
class Acceptance:
    """Shares of rounds by accepted drafts: [drafter, prompt, topk, num_steps, draft_tokens, accepted]."""

    shares: Floats

    def histogram(self, trees: Trees) -> Floats:
        """[tree, prompt, accepted]."""
        topk = np.searchsorted(TOPKS, trees.topk)
        found: Floats = self.shares[trees.drafter, :, topk, trees.num_steps, trees.draft_tokens]
        return found

    def accept_length(self, trees: Trees) -> Floats:
        """Tokens per verify step, the bonus token included: [tree, prompt]."""
        lengths: Floats = 1 + self.histogram(trees) @ np.arange(MAX_STEPS + 1)
        return lengths


def draw_drafters(
    rng: np.random.Generator, seed: int, best: str, num_drafters: int
) -> tuple[tuple[str, ...], list[list[Drafter]]]:
    """The qualities of the drafters (one has the best, none a better one), and each of them on each prompt."""
    names = list(QUALITIES)
    ranks = [names.index(best)]
    ranks += [min(len(names) - 1, ranks[0] + int(rng.integers(0, 3))) for _ in range(num_drafters - 1)]
    qualities = tuple(names[ranks[place]] for place in rng.permutation(num_drafters))
    prompts = rng.normal(0, 0.38, NUM_PROMPTS)
    prompts -= prompts.mean()
    drafters = [_draw_drafter(rng, quality) for quality in qualities]
    suits = rng.normal(0, 0.12, (num_drafters, NUM_PROMPTS))
    on_prompts = [
        [
            replace(
                drafter,
                stream=seed * 100 + number * 10 + prompt + 1,
                first_logit=drafter.first_logit + prompts[prompt] + suits[number, prompt],
            )
            for prompt in range(NUM_PROMPTS)
        ]
        for number, drafter in enumerate(drafters)
    ]
    return qualities, on_prompts


def acceptance(name: str, drafters: list[list[Drafter]], num_rounds: int) -> Acceptance:
    """The table of these drafters, from the cache if it is there; `name` tells it from all others."""
    path = cache_folder() / f"acceptance-{VERSION}-{name}-{num_rounds}.npz"
    if not path.exists():
        tables = np.array([[histograms(drafter, num_rounds) for drafter in row] for row in drafters])
        packed = io.BytesIO()
        np.savez_compressed(packed, shares=tables.astype(np.float32))
        store(path, packed.getvalue())
    with np.load(path) as saved:
        return Acceptance(saved["shares"].astype(np.float64))


def cache_folder() -> Path:
    """Where tables are kept between processes: `$XDG_CACHE_HOME/specsweep/search_bench`, created if missing."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or "")
    folder = (base if base.is_absolute() else Path.home() / ".cache") / "specsweep" / "search_bench"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def store(path: Path, content: bytes) -> None:
    """Write a file of the cache; another process sees all of it or nothing."""
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
        file.write(content)
    Path(file.name).replace(path)


def _draw_drafter(rng: np.random.Generator, quality: str) -> Drafter:
    """A drafter on the average text."""
    first = rng.uniform(*QUALITIES[quality].first_logit)
    loss, bend = rng.uniform(*QUALITIES[quality].loss), rng.uniform(0.5, 1.2)
    decay = loss * np.arange(MAX_STEPS) ** bend
    decay[1:] += rng.uniform(0, 0.25)  # from the second token on, it drafts from its own guesses
    ranges = ((0.5, 1.3), (0.8, 1.8), (0.35, 0.7), (0.45, 0.85), (0.6, 1.0), (-0.25, 0.1))
    traits = [rng.uniform(low, high) for low, high in ranges]
    return Drafter(0, first, tuple(float(lost) for lost in decay), *traits)
