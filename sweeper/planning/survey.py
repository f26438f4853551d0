"""The space under the engine's rules, counted: what is illegal and why, what is the same, what is left. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from sweeper.engines.base import Speculation
from sweeper.naming import difference_text
from sweeper.planning.model import BrokenRule, ShortFilter, Space
from sweeper.searching.candidates import ENUMERABLE, Candidates
from sweeper.space import domain_values, grid, num_combinations, samples
from sweeper.spec import FlagValue, Interval, ServerConfig

NUM_SAMPLES = 2000
"""Of a space that cannot be listed so many are looked at."""

_NUMBER = re.compile(r"(?<![\w.])\d+(\.\d+)?")


@dataclass
class _Counts:
    """What has been seen so far. `kept`: key of a valid configuration to how often the short filter keeps it."""

    looked_at: int = 0
    illegal: int = 0
    kept: dict[str, int] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    let_through: int = 0
    broken: dict[str, tuple[int, str, str]] = field(default_factory=dict)

    def illegal_one(self, name: str, reasons: Iterable[str], *, kept: bool) -> None:
        """A configuration that breaks rules."""
        self.illegal += 1
        self.let_through += kept
        for rule, reason in {_pattern(reason): reason for reason in reasons}.items():
            count, example, told = self.broken.get(rule, (0, name, reason))
            self.broken[rule] = (count + 1, example, told)

    def valid_one(self, name: str, key: str, *, kept: bool) -> None:
        """A configuration that is legal."""
        self.kept[key] = self.kept.get(key, 0) + kept
        self.names.setdefault(key, name)


def survey(candidates: Candidates, baseline: ServerConfig, roles: Speculation | None) -> Space:
    """Look at every configuration that was asked for, or at NUM_SAMPLES of more than can be listed.

    `baseline`: canonical. `roles`: which flags a short filter is written about; None: there is none.
    """
    space = candidates.space
    asked = num_combinations(space)
    is_sample = asked is None or asked > ENUMERABLE
    counts = _Counts()
    for flags in samples(space, NUM_SAMPLES) if is_sample else grid(space):
        _look(flags, candidates, baseline, roles, counts)
    sizes = [domain_values(parameter.domain) for parameter in space.parameters]
    rules = sorted(counts.broken.items(), key=lambda item: -item[1][0])
    return Space(
        asked=asked,
        product=None if None in sizes else math.prod(len(values) for values in sizes if values is not None),
        looked_at=counts.looked_at,
        is_sample=is_sample,
        illegal=counts.illegal,
        same=counts.looked_at - counts.illegal - len(counts.kept),
        distinct=len(counts.kept),
        has_baseline=baseline.key() in counts.kept,
        rules=tuple(
            BrokenRule(rule=rule, count=count, example=example, reason=reason)
            for rule, (count, example, reason) in rules
        ),
        short_filter=None if is_sample else _short_filter(counts, candidates, roles),
        continuous=tuple(p.name for p in space.parameters if isinstance(p.domain, Interval)),
        never_legal=tuple(candidates.never_legal()),
    )


def _look(
    flags: Mapping[str, FlagValue],
    candidates: Candidates,
    baseline: ServerConfig,
    roles: Speculation | None,
    counts: _Counts,
) -> None:
    """Count one configuration."""
    counts.looked_at += 1
    requested = candidates.requested(flags)
    canonical = candidates.canonical(requested)
    kept = _is_kept(requested.flags, roles)
    if reasons := candidates.violations(canonical):
        counts.illegal_one(difference_text(requested, baseline), reasons, kept=kept)
    else:
        counts.valid_one(difference_text(canonical, baseline), canonical.key(), kept=kept)


def _is_kept(flags: Mapping[str, FlagValue], roles: Speculation | None) -> bool:
    """What `steps * topk + 1 >= draft tokens` says; that holds where one of them is not given."""
    if roles is None:
        return True
    values = [flags.get(name) for name in (roles.num_steps, roles.topk, roles.draft_tokens)]
    numbers = [value for value in values if isinstance(value, int) and not isinstance(value, bool)]
    return len(numbers) < len(values) or numbers[0] * numbers[1] + 1 >= numbers[2]


def _short_filter(counts: _Counts, candidates: Candidates, roles: Speculation | None) -> ShortFilter | None:
    """How that filter would do; None where its flags are not searched."""
    searched = {parameter.name for parameter in candidates.space.parameters}
    if roles is None or roles.draft_tokens not in searched:
        return None
    missed = [key for key, times in counts.kept.items() if not times]
    return ShortFilter(
        rule=f"{roles.num_steps} * {roles.topk} + 1 >= {roles.draft_tokens}",
        missed=len(missed),
        example=counts.names[missed[0]] if missed else "",
        let_through=counts.let_through,
        repeated=sum(times - 1 for times in counts.kept.values() if times > 1),
    )


def _pattern(reason: str) -> str:
    """The rule behind a reason: the same words, with N for each number."""
    return _NUMBER.sub("N", reason)
