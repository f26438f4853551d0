"""What configurations are ranked by: one metric of one workload, or a weighted combination of several."""

from __future__ import annotations

import math
from collections.abc import Mapping

from pydantic import Field, field_validator

from sweeper.frozen import Frozen, once

SCORE = "score"
"""The metric that holds a combination's value."""


class Term(Frozen):
    """One metric of one workload. Weights count relative to one another."""

    workload: str
    metric: str
    weight: float = Field(default=1.0, gt=0, le=1000)


class ObjectiveSpec(Frozen):
    """The objective, the greater the better.

    Several terms are combined as a weighted geometric mean: it does not matter that one workload's numbers
    are larger than another's, and the ratio of two configurations is the weighted mean of their ratios.
    """

    terms: tuple[Term, ...] = Field(min_length=1)

    @field_validator("terms")
    @classmethod
    def _distinct(cls, terms: tuple[Term, ...]) -> tuple[Term, ...]:
        once(tuple((term.workload, term.metric) for term in terms))
        return terms

    def metric(self, first_workload: str) -> str:
        """The name under which the objective is found among a launch's metrics, which are `first_workload`'s."""
        only = self.terms[0]
        return only.metric if len(self.terms) == 1 and only.workload == first_workload else SCORE

    def value(self, metrics: Mapping[str, Mapping[str, float]]) -> float | None:
        """The combined value of the metrics by workload; None when a term was not measured or is not above 0."""
        values = [metrics.get(term.workload, {}).get(term.metric, 0.0) for term in self.terms]
        if min(values) <= 0:
            return None
        total = sum(term.weight for term in self.terms)
        logs = (term.weight * math.log(value) for term, value in zip(self.terms, values, strict=True))
        return values[0] if len(values) == 1 else math.exp(sum(logs) / total)

    def text(self, first_workload: str) -> str:
        """As it is written in the configuration."""
        names = [t.metric if t.workload == first_workload else f"{t.workload}.{t.metric}" for t in self.terms]
        if len(names) == 1:
            return names[0]
        return ", ".join(f"{name} x {term.weight:g}" for name, term in zip(names, self.terms, strict=True))
