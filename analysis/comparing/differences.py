"""In what compared studies differ: what makes their numbers incomparable, and what is being compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from analysis.comparing.numbers import Side
from sweeper.deciding.comparable import SOURCES
from sweeper.fingerprint import IMPORTED


class Weight(IntEnum):
    """What a difference means. WORK: other requests were sent, so the numbers do not compare at all."""

    WORK = 0
    SYSTEM = 1
    SEARCH = 2


@dataclass(frozen=True)
class Difference:
    """A setting or a fact, and its value in each study; empty where that has none."""

    name: str
    values: tuple[str, ...]
    weight: Weight


_WORK = ("workload.", "more_workloads.", "objective", "prompts")
_SEARCH = ("space.", "study.", "specsweep_version", "workload")
_ORIGIN = SOURCES | {IMPORTED}
"""Where imported results came from, which nothing depends on."""

_SAME_AS = frozenset({"engine", "model", "model_fingerprint", "engine_version", "host", "gpus"})
"""Facts of a launch that the fingerprint has under other names."""


def differences(sides: Sequence[Side]) -> list[Difference]:
    """Everything that is not the same for all, the gravest first."""
    known = [_known(side) for side in sides]
    names = dict.fromkeys(name for facts in known for name in facts)
    found = [Difference(name, tuple(facts.get(name, "") for facts in known), _weight(name)) for name in names]
    return sorted((each for each in found if len(set(each.values)) > 1), key=lambda each: each.weight)


def _known(side: Side) -> Mapping[str, str]:
    """The study's fingerprint, and what its launches have written down beside that."""
    facts: dict[str, list[str]] = {}
    for launch in side.reading.measured:
        for name, value in launch.provenance.items():
            facts.setdefault(name, []).append(value)
    fingerprint = side.reading.fingerprint
    shown = {name: "; ".join(dict.fromkeys(values)) for name, values in sorted(facts.items())}
    return {**fingerprint, **{n: v for n, v in shown.items() if not (n in _SAME_AS and _in(fingerprint, n))}}


def _in(fingerprint: Mapping[str, str], name: str) -> bool:
    paths = {
        "engine": "engine.name",
        "engine_version": "engine.version",
        "model": "model.name",
        "model_fingerprint": "model.content",
        "host": "host.name",
        "gpus": "host.gpus",
    }
    return paths[name] in fingerprint


def _weight(name: str) -> Weight:
    if name in _SEARCH or name in _ORIGIN or name.startswith(("space.", "study.")):
        return Weight.SEARCH
    return Weight.WORK if name.startswith(_WORK) else Weight.SYSTEM
