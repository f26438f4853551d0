"""SGLang's speculative adaptive configuration, from the best number of draft steps at each concurrency. Pure.

The format (speculative/adaptive_spec_params.py, 0.5.15 to 0.5.23): batch size, as text, to `candidate_steps`; an
entry holds from its batch size up to the next one, the first one below, too. 0 steps switch drafting off. Within
an entry SGLang moves between the candidates by what is accepted. It adapts chains only.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sweeper.engines.base import HostFacts
from sweeper.engines.serving import Loads
from sweeper.engines.sglang.version import version_of
from sweeper.spec import FlagValue, ServerConfig

ALGORITHMS = ("EAGLE", "EAGLE3")
FILE = "speculative-adaptive.json"
NAME = "speculative_adaptive"
SINCE = (0, 5, 15)
_STEPS, _TOKENS, _TOPK = "speculative_num_steps", "speculative_num_draft_tokens", "speculative_eagle_topk"
_HINDERED_BY = ("enable_dp_attention", "enable_multi_layer_eagle", "enable_two_batch_overlap", "enable_pdmux")


@dataclass(frozen=True)
class Adaptive:
    """The file's text, and the flags that go with it."""

    text: str
    flags: Mapping[str, FlagValue]


def adaptive(measured: Sequence[Loads], noise_pct: float, facts: HostFacts) -> Adaptive | str:
    """The adaptive configuration of the first of `measured`; else why there is none, empty when none is meant.

    Steps whose throughput lies within `noise_pct` percent of the best are candidates beside it.
    """
    served = measured[0].config if measured else ServerConfig()
    if len({load for loads in measured for load in loads.throughputs}) < 2:
        return ""
    if reason := _unknown_there(facts) or _unsupported(served.flags):
        return reason
    by_load = _by_load(served, measured)
    candidates = {load: _near_best(found, noise_pct) for load, found in sorted(by_load.items())}
    if len(set(candidates.values())) < 2:
        return "the same number of draft steps is the best at each concurrency"
    entries = {str(load): {"candidate_steps": list(steps)} for load, steps in candidates.items()}
    steps = _first_steps(candidates, by_load)
    return Adaptive(
        json.dumps(entries, indent=2) + "\n",
        {
            NAME: True,
            f"{NAME}_config": FILE,
            _STEPS: steps,
            _TOKENS: steps + 1,
        },
    )


def _unknown_there(facts: HostFacts) -> str:
    """Why the measured version cannot adapt; empty when it can, or is not known."""
    flags, version = facts.known_flags, facts.engine_version
    too_old = bool(version) and not version_of(version).since(*SINCE)
    return f"SGLang {version} has no such thing" if too_old or (flags and NAME not in flags) else ""


def _unsupported(flags: Mapping[str, FlagValue]) -> str:
    """Why SGLang would not adapt this configuration; empty when it would."""
    if flags.get("speculative_algorithm") not in ALGORITHMS:
        return f"SGLang adapts {' and '.join(ALGORITHMS)} only"
    if flags.get(_TOPK) != 1:
        return f"SGLang adapts chains only, and {_TOPK} is {flags.get(_TOPK)}"
    hindered = next((name for name in _HINDERED_BY if flags.get(name) is True), "")
    return f"SGLang does not adapt under {hindered}" if hindered else ""


def _by_load(served: ServerConfig, measured: Sequence[Loads]) -> dict[int, dict[int, float]]:
    """Concurrency to number of steps to throughput, of what differs from `served` in the number of steps alone.

    The same server without speculation has 0 steps.
    """
    found: dict[int, dict[int, float]] = {}
    for loads in measured:
        steps = _steps(loads.config, served)
        if steps is None:
            continue
        for load, throughput in loads.throughputs.items():
            known = found.setdefault(load, {})
            known[steps] = max(throughput, known.get(steps, 0.0))
    return found


def _steps(config: ServerConfig, served: ServerConfig) -> int | None:
    """The number of draft steps of a configuration of the same kind; None for any other one."""
    varied = frozenset({_STEPS, _TOKENS})
    if config.without(varied) == served.without(varied):
        steps = config.flags.get(_STEPS)
        return steps if isinstance(steps, int) and not isinstance(steps, bool) else None
    drafting = frozenset(name for name in served.flags if name.startswith("speculative_"))
    is_plain = "speculative_algorithm" not in config.flags
    return 0 if is_plain and config.without(drafting) == served.without(drafting) else None


def _first_steps(candidates: Mapping[int, tuple[int, ...]], by_load: Mapping[int, Mapping[int, float]]) -> int:
    """The number of steps to begin with: the best one at the lowest concurrency that drafts at all."""
    drafting = {load: [n for n in steps if n > 0] for load, steps in candidates.items()}
    load = next(load for load, steps in drafting.items() if steps)
    return max(drafting[load], key=lambda steps: by_load[load][steps])


def _near_best(throughputs: Mapping[int, float], noise_pct: float) -> tuple[int, ...]:
    least = max(throughputs.values()) * (1 - noise_pct / 100)
    return tuple(sorted(steps for steps, value in throughputs.items() if value >= least))
