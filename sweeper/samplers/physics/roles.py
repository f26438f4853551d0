"""What the sampler is told about an engine: which parameter means what, and what flags usually do.

The expected sizes are sharp enough to start from and wide enough to be overruled by a few trials: the model learns
the size of each flag's effect from what it sees.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from sweeper.samplers.physics.space import Config, SearchParameter, Value, position


@dataclass(frozen=True)
class FlagPrior:
    """What is expected of a system flag before anything is measured.

    size: standard deviation of what its values do to the step time, as a logarithm (0.04: about 4 %). 0: known to
        do nothing here; the flag is left at its default.
    slower: values expected to lengthen the step time, each with the expected logarithm; below 0 to shorten it.
    leaving: what every other value than the server's own is expected to add: its authors chose theirs knowing it.
    differs: the same of what they do otherwise to a server that drafts than to one that does not: an attention
        backend may be quick at decoding and slow at verifying. None: as much as `size`.
    """

    size: float
    slower: Mapping[Value, float] = field(default_factory=dict)
    leaving: float = 0.0
    differs: float | None = None


UNKNOWN_FLAG = FlagPrior(0.03)

_NO_GRAPHS = 0.45
"""Decoding without CUDA graphs is launch-bound: published single-stream losses are 25-60 %."""

KNOWN_FLAGS: Mapping[str, FlagPrior] = MappingProxyType(
    {
        "cuda_graph": FlagPrior(0.12, {False: _NO_GRAPHS}),
        "disable_cuda_graph": FlagPrior(0.12, {True: _NO_GRAPHS}),
        "num_continuous_decode_steps": FlagPrior(0.014, differs=0.012),
        "disable_custom_all_reduce": FlagPrior(0.035, differs=0.018),
        "nccl_proto": FlagPrior(0.045, differs=0.04),
        "nccl_algo": FlagPrior(0.02, differs=0.016),
        "nccl_p2p_level": FlagPrior(0.04, differs=0.02),
        "attention_backend": FlagPrior(0.045, differs=0.06),
    }
)
"""By name in lower case, with underscores and without a leading `env.`, so that flags and variables both match."""


def known_name(name: str) -> str:
    """A flag's name as `KNOWN_FLAGS` has it."""
    return name.lower().removeprefix("env.").replace("-", "_")


def always(_config: Config) -> bool:
    """In a space without a baseline everything drafts."""
    return True


@dataclass(frozen=True)
class Roles:
    """Which parameters shape acceptance; all others are system flags, which only cost or save time.

    drafter: what tells one drafter from another (algorithm, draft model …); parameters that these are
        conditional on count as well.
    num_steps: draft forwards per step. topk: branches per node; None: always 1.
    draft_tokens: tokens verified per step; None, or a chain (topk 1): num_steps + 1.
    speculates: whether a configuration drafts at all. It is called with the parameters above and the fixed values.
    fixed: values that are not searched. A role may be among them.
    default: the server's own values, where they are not the first ones listed.
    flags: expectations of this engine or machine; they come before those of `KNOWN_FLAGS`.

    Raises ValueError when num_steps has no name.
    """

    drafter: tuple[str, ...]
    num_steps: str
    topk: str | None = None
    draft_tokens: str | None = None
    speculates: Callable[[Config], bool] = always
    fixed: Config = field(default_factory=dict)
    default: Config = field(default_factory=dict)
    flags: Mapping[str, FlagPrior] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.num_steps:
            raise ValueError("roles need the name of the parameter that says how many steps are drafted")

    def names(self) -> tuple[str, ...]:
        """All parameters that shape acceptance."""
        numbers = (self.num_steps, self.topk, self.draft_tokens)
        return (*self.drafter, *(name for name in numbers if name is not None))

    def flag_prior(self, parameter: SearchParameter) -> FlagPrior:
        """What is expected of a system flag."""
        known = KNOWN_FLAGS.get(known_name(parameter.name), UNKNOWN_FLAG)
        return self.flags.get(parameter.name, known)

    def default_index(self, parameter: SearchParameter) -> int:
        """The index of the server's own value among the listed ones."""
        return max(0, position(self.default.get(parameter.name), parameter.values))
