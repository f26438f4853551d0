"""How the tests ask for findings, and what they read out of them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from analysis.diagnose import Finding, findings
from sweeper.records import TrialRecord
from sweeper.spec import ServerConfig
from tests.diagnose.planted import ENGINE, OBJECTIVE, Night, Server, chain, plain

CHAINS = [plain(), *(chain(steps) for steps in (1, 2, 3, 5))]
TREES = [*CHAINS, chain(3, 4, 8), chain(3, 4, 16), chain(5, 4, 16)]


def told(trials: Sequence[TrialRecord]) -> dict[str, Finding]:
    return {finding.rule: finding for finding in findings(trials, OBJECTIVE, ENGINE)}


def measured(
    server: Server, configs: Sequence[ServerConfig], noise_pct: float = 0.5, seed: int = 0
) -> list[TrialRecord]:
    return Night(server, noise_pct, launches=3, seed=seed).measure(configs)


def interval(text: str) -> tuple[float, float, float]:
    """Value and bounds of the first interval in a text."""
    found = re.search(r"(-?\+?[\d.]+)(?: ms| %)? \(([-+]?[\d.]+) to ([-+]?[\d.]+)\)", text)
    assert found is not None, text
    value, low, high = (float(part) for part in found.groups())
    return value, low, high
