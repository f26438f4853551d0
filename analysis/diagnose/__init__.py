"""Why the numbers are as they are: rules that read a study's trials, and what each of them found.

A rule is a pure function of a Context. It claims nothing that lies within the noise, and says nothing where
nothing was measured. To add one: write it, and list it in RULES.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from analysis.diagnose.bottlenecks import communication_bound, launch_bound, memory_bound
from analysis.diagnose.break_even import break_even, draft_limit
from analysis.diagnose.context import Context
from analysis.diagnose.depth import positions
from analysis.diagnose.effects import cuda_graphs, draft_tokens, nccl, num_steps, other_settings
from analysis.diagnose.finding import Evidence as Evidence
from analysis.diagnose.finding import Finding as Finding
from analysis.diagnose.finding import Severity as Severity
from analysis.diagnose.steadiness import baseline_drift, cold_first_launch, cold_passes, throttling
from analysis.diagnose.step_split import step_split
from analysis.diagnose.suspects import acceptance_decay, never_kept, prompt_classes
from analysis.diagnose.ties import equals, unknown_noise
from sweeper.records import TrialRecord

Rule = Callable[[Context], Finding | None]

RULES: tuple[Rule, ...] = (
    never_kept,
    break_even,
    draft_limit,
    cuda_graphs,
    launch_bound,
    communication_bound,
    nccl,
    num_steps,
    draft_tokens,
    other_settings,
    positions,
    step_split,
    memory_bound,
    equals,
    prompt_classes,
    unknown_noise,
    acceptance_decay,
    cold_passes,
    cold_first_launch,
    throttling,
    baseline_drift,
)
"""In the order in which findings of one severity are told."""

_ORDER = (Severity.WARNING, Severity.LIMIT, Severity.NOTE)


def findings(
    trials: Sequence[TrialRecord], objective: str, engine: str = "", concurrency: float = 1.0
) -> list[Finding]:
    """What all rules find in the trials that may be compared: warnings first, then what limits, then notes.

    engine: its name, by which the flags of the drafts are known. concurrency: requests under way at once.
    """
    context = Context(tuple(trials), objective, engine, concurrency)
    found = [finding for rule in RULES if (finding := rule(context)) is not None]
    return sorted(found, key=lambda finding: _ORDER.index(finding.severity))
