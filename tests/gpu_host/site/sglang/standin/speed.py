"""Planted speed. The numbers of one published night are drawn as a smooth surface; they prove plumbing only.

Published (Kimi-K2.5, 8 GPUs, one stream, output tokens per second): 90 without speculation, 53.2 with EAGLE3
without CUDA graphs, 50.5 with another drafter, 74.9 with graphs and 16 draft tokens, 82.3 with 3 steps and 5 draft
tokens, 81.7 with 2 steps; accept length 2.0-2.4. The rows do not say topk; topk 1 forces draft tokens = steps + 1.
ASSUMED: 53.2 and 50.5 are 3 steps, topk 1, 4 draft tokens; 74.9 is 5 steps, topk 4; 82.3 and 81.7 are topk 2 with
5 draft tokens.

Step time = fixed + per draft forward + per verified token (+ kernel launches without graphs); accept length from a
chance per depth that falls with the depth and rises with the breadth of the tree. Solved through the points above.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

BASELINE_MS = 1000 / 90
EAGER_MS = 7.2
"""What launching the kernels of one target forward costs without CUDA graphs."""
EAGER_DRAFT_MS = (13.1345 - EAGER_MS) / 3
STEP_MS = 21.1384
DRAFT_MS = 0.638786
TOKEN_MS = 0.505943
FALL, BREADTH = 0.78, 0.87
FIRST_CHANCE = {"kimi-k2.5-eagle3": 0.62, "other-eagle3": 0.577804}
"""The chance that the first draft token is right, per drafter (by folder name)."""
NCCL_FACTORS = {
    ("NCCL_PROTO", "SIMPLE"): 1.05,
    ("NCCL_ALGO", "TREE"): 1.03,
    ("NCCL_P2P_DISABLE", "1"): 1.10,
    ("NCCL_SHM_DISABLE", "1"): 1.04,
}


@dataclass(frozen=True)
class Plan:
    """What one launch does: `accept_length` tokens kept per step on average, `step_ms` per step.

    `depth`: the most draft tokens a step can accept; `chances[d]`: that depth d + 1 is right if those before are.
    """

    step_ms: float
    depth: int = 0
    chances: tuple[float, ...] = ()

    @property
    def accept_length(self) -> float:
        """Tokens kept per step, the bonus token included."""
        length = reached = 1.0
        for chance in self.chances:
            reached *= chance
            length += reached
        return length

    @property
    def throughput(self) -> float:
        """Output tokens per second of a single stream."""
        return self.accept_length / self.step_ms * 1000


def chances(steps: int, topk: int, draft_tokens: int, first: float) -> tuple[float, ...]:
    """The chance of each depth of a draft tree to hold the right token, given that its parent did."""
    breadth = min(float(topk), max(1.0, (draft_tokens - 1) / steps))
    missed = BREADTH ** math.log2(breadth)
    return tuple(1 - (1 - first * FALL**depth) * missed for depth in range(min(steps, draft_tokens - 1)))


def plan(args: Mapping[str, Any], env: Mapping[str, str], *, graphs: bool, bypassed: bool) -> Plan:
    """The speed of a server with these resolved arguments. `bypassed`: drafts are made and never accepted."""
    algorithm = args["speculative_algorithm"]
    network = math.prod(v for (name, value), v in NCCL_FACTORS.items() if env.get(name, "").upper() == value)
    if algorithm is None:
        return Plan((BASELINE_MS + (0 if graphs else EAGER_MS)) * network)
    steps = args["speculative_num_steps"]
    topk, draft_tokens = args["speculative_eagle_topk"], args["speculative_num_draft_tokens"]
    per_draft = {"NGRAM": 0.02, "STANDALONE": 2.5}.get(algorithm, DRAFT_MS)
    if algorithm == "NGRAM":
        odds = chances(3, 1, 4, 0.35)
    else:
        name = str(args["speculative_draft_model_path"]).rstrip("/").rsplit("/", 1)[-1]
        odds = chances(
            steps, topk, draft_tokens, 0.7 if algorithm == "STANDALONE" else FIRST_CHANCE.get(name, 0.6)
        )
    step_ms = STEP_MS + per_draft * steps + TOKEN_MS * draft_tokens
    if not graphs:
        step_ms += EAGER_MS + EAGER_DRAFT_MS * steps
    return Plan(step_ms * network, min(steps, draft_tokens - 1), (0.0,) * len(odds) if bypassed else odds)


def launch_factor(number: int, share: float) -> float:
    """How much faster or slower than planned launch `number` of this host is."""
    return 1 + share * random.Random(f"launch {number}").uniform(-1, 1)


def accepted(plan: Plan, seed: str) -> Iterator[int]:
    """How many drafts each step accepts. Evenly spread chances: short answers have the planned mean too."""
    at = random.Random(seed).random()
    while True:
        at = (at + 0.6180339887498949) % 1
        reached, count = 1.0, 0
        for chance in plan.chances:
            reached *= chance
            if at >= reached:
                break
            count += 1
        yield count
