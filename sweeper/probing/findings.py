"""What the timing of all-reduces has found, as the study keeps it: an expectation for the search, no result."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence

from pydantic import ValidationError

from sweeper.frozen import Frozen
from sweeper.records import TrialRecord
from sweeper.samplers.physics import AllReduce, AllReduceTime
from sweeper.spec import FlagValue
from sweeper.storing.storage import StudyStore

_FACT = "all_reduce"
_RESTART = ("start", "stop")


class Timing(Frozen):
    """One setting of NCCL: `name` as a person reads it, and all `values` of the space that come to it.

    `microseconds`: (tokens, time) of one all-reduce; empty when `failure` says why there are none. `is_default`:
    the baseline has this setting.
    """

    name: str
    values: tuple[Mapping[str, FlagValue], ...]
    microseconds: tuple[tuple[int, float], ...] = ()
    failure: str = ""
    took_s: float
    is_default: bool = False


class Findings(Frozen):
    """The timings so far, of `num_settings`. `program`: what took them. `given_up`: why there are no more.

    `hidden_size`: the numbers in the message of one token; `num_layers`: the model's.
    """

    program: str
    num_ranks: int
    hidden_size: int
    num_layers: int
    num_settings: int
    timings: tuple[Timing, ...] = ()
    given_up: str = ""

    @property
    def took_s(self) -> float:
        """What it cost."""
        return sum(timing.took_s for timing in self.timings)

    @property
    def failed(self) -> tuple[Timing, ...]:
        """The settings that hung or died, which are not proposed. The baseline's serves: it is none of them."""
        if self.given_up:
            return ()
        return tuple(timing for timing in self.timings if timing.failure and not timing.is_default)

    @property
    def is_whole(self) -> bool:
        """Whether nothing is left to be timed."""
        return len(self.timings) >= self.num_settings

    def same_as(self, other: Findings) -> bool:
        """Whether the timings of both are of one kind."""
        return self.model_copy(update={"timings": (), "given_up": ""}) == other.model_copy(
            update={"timings": (), "given_up": ""}
        )

    def plus(self, timing: Timing) -> Findings:
        """These with one more."""
        return self.model_copy(update={"timings": (*self.timings, timing)})

    def cost_text(self, restart_s: float | None) -> str:
        """`5 settings of NCCL timed in 42 s, 11 % of a restart`."""
        count = len(self.timings)
        words = f"{count} setting{'s' if count != 1 else ''} of NCCL timed in {self.took_s:.0f} s"
        if not restart_s:
            return words
        share = self.took_s / restart_s
        return f"{words}, {f'{100 * share:.0f} % of a restart' if share < 2 else f'{share:.1f} restarts'}"

    def keep(self, store: StudyStore) -> None:
        """Write it down in the study."""
        store.set_fact(_FACT, self.model_dump(mode="json"))


def findings_of(store: StudyStore) -> Findings | None:
    """What a study keeps; None for nothing, or nothing that this version reads: it can be had again."""
    stored = store.fact(_FACT)
    try:
        return None if stored is None else Findings.model_validate_json(json.dumps(stored))
    except ValidationError:
        return None


def all_reduce_of(store: StudyStore) -> AllReduce | None:
    """The same as the physics takes it; None when it says nothing."""
    found = findings_of(store)
    if found is None or found.given_up:
        return None
    times = [time for timing in found.timings for values in timing.values for time in _times(timing, values)]
    return AllReduce(tuple(times), found.num_layers) if times else None


def restart_s(trials: Sequence[TrialRecord]) -> float | None:
    """What a restart takes, in the middle: start and stop of a measured launch; None before there is one."""
    launches = [launch for trial in trials for launch in trial.measured]
    sums = [sum(p.duration_s for p in launch.phases if p.name in _RESTART) for launch in launches]
    return statistics.median(sums) if sums else None


def _times(timing: Timing, values: Mapping[str, FlagValue]) -> list[AllReduceTime]:
    if timing.microseconds:
        return [AllReduceTime(values, tokens, us) for tokens, us in timing.microseconds]
    return [] if timing.is_default else [AllReduceTime(values, 1, None)]
