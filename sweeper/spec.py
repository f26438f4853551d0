"""What a sweep is asked to do: the typed schema behind `conf/`, frozen once validated."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, field_validator, model_validator

from launchers.masking import MASK, hide_shapes, is_secret_name
from sweeper.frozen import MAX_SECONDS, MAX_SEED, MAX_TRIALS, MAX_WHOLE, Frozen, once
from sweeper.host_spec import HostSpec
from sweeper.night_spec import BudgetSpec as BudgetSpec
from sweeper.night_spec import LimitsSpec as LimitsSpec
from sweeper.night_spec import NotifySpec as NotifySpec
from sweeper.night_spec import OnFinish as OnFinish
from sweeper.objective import ObjectiveSpec
from sweeper.workload_spec import WorkloadSpec

FlagValue = str | int | float | bool
"""A server flag's value. True is a bare flag (`--flag`), False leaves the flag away."""


class ServerConfig(Frozen):
    """A server configuration: flags under the engine's own names (`spec_type` is `--spec-type`), environment."""

    flags: Mapping[str, FlagValue] = {}
    env: Mapping[str, str] = {}

    def key(self) -> str:
        """Sixteen hex digits that are equal for equal configurations (of canonical ones: a trial's key).

        What is a secret by its name or its looks does not count: a new token makes no new configuration.
        """
        return digest({"flags": _counted(self.flags), "env": _counted(self.env)})[:16]

    def with_flags(self, flags: Mapping[str, FlagValue]) -> ServerConfig:
        """A copy in which `flags` are set."""
        return ServerConfig(flags={**self.flags, **flags}, env=self.env)

    def without(self, names: frozenset[str]) -> ServerConfig:
        """A copy in which the flags `names` are not set."""
        return ServerConfig(flags={k: v for k, v in self.flags.items() if k not in names}, env=self.env)

    def with_secrets_of(self, base: ServerConfig) -> ServerConfig:
        """A copy in which what was hidden (it holds `***`) has the value that `base` has under that name."""
        return ServerConfig(
            flags={k: base.flags.get(k, v) if MASK in str(v) else v for k, v in self.flags.items()},
            env={k: base.env.get(k, v) if MASK in v else v for k, v in self.env.items()},
        )


def _counted(settings: Mapping[str, FlagValue]) -> dict[str, FlagValue]:
    return {name: _counted_value(name, value) for name, value in settings.items()}


def _counted_value(name: str, value: FlagValue) -> FlagValue:
    if is_secret_name(name) and not isinstance(value, bool):
        return MASK
    return _without_secrets(value) if isinstance(value, str) else value


@lru_cache(maxsize=4096)
def _without_secrets(value: str) -> str:
    """The same few values in thousands of configurations."""
    return hide_shapes(value)


def digest(data: object) -> str:
    """SHA-256 (hex) of JSON-ready data, independent of the order of its keys."""
    text = json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


class Choice(Frozen):
    """One of the listed values. All numbers: they are ordered, and the search knows it."""

    kind: Literal["choice"] = "choice"
    values: Annotated[tuple[FlagValue, ...], Field(min_length=1), AfterValidator(once)]

    @property
    def ordered(self) -> bool:
        """Whether the values are numbers, and so have an order that the search can use."""
        return all(isinstance(value, int | float) and not isinstance(value, bool) for value in self.values)


class IntRange(Frozen):
    """Whole numbers from `low` to `high`, BOTH INCLUDED; `conf/` writes `range(low, high + 1)`, as Hydra does."""

    kind: Literal["range"] = "range"
    low: int = Field(ge=-MAX_WHOLE, le=MAX_WHOLE)
    high: int = Field(ge=-MAX_WHOLE, le=MAX_WHOLE)
    step: int = Field(default=1, gt=0, le=MAX_WHOLE)

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.high < self.low:
            raise ValueError(f"a range needs low <= high, not {self.low} to {self.high}")
        return self


class Interval(Frozen):
    """Real numbers from `low` to `high`, both included; `log` searches them on a logarithmic scale."""

    kind: Literal["interval"] = "interval"
    low: float
    high: float
    log: bool = False

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.high <= self.low or (self.log and self.low <= 0):
            rule = "0 < low < high" if self.log else "low < high"
            raise ValueError(f"an interval needs {rule}, not {self.low:g} to {self.high:g}")
        return self


Domain = Annotated[Choice | IntRange | Interval, Field(discriminator="kind")]


class Parameter(Frozen):
    """One searched server flag (or environment variable), and when it is active.

    `when` maps the name of another parameter to the values of it under which this one exists.
    """

    name: str
    domain: Domain
    is_env: bool = False
    when: Mapping[str, tuple[FlagValue, ...]] = {}


class SpaceSpec(Frozen):
    """The search space: parameters in an order in which conditions look backwards only."""

    parameters: tuple[Parameter, ...] = Field(min_length=1)

    @field_validator("parameters")
    @classmethod
    def _in_order(cls, parameters: tuple[Parameter, ...]) -> tuple[Parameter, ...]:
        names = once(tuple(parameter.name for parameter in parameters))
        for index, parameter in enumerate(parameters):
            if later := parameter.when.keys() - set(names[:index]):
                raise ValueError(f"{parameter.name} depends on {sorted(later)[0]}, which does not come before it")
        return parameters


class EngineSpec(Frozen):
    """Which inference server, how it is called, and the flags every launch of it gets."""

    name: str
    command: tuple[str, ...] = Field(min_length=1)
    flags: Mapping[str, FlagValue] = {}
    env: Mapping[str, str] = {}


class ModelSpec(Frozen):
    """The target model. `prepare` is run on the host first; the last line it prints replaces `path`."""

    name: str
    path: str = ""
    prepare: tuple[str, ...] = ()
    prepare_timeout_s: float = Field(default=600, gt=0, le=MAX_SECONDS)


SamplerName = Literal["auto", "physics", "tpe", "gp", "random", "grid", "brute_force"]
"""How the next configuration is chosen; `auto` is physics where that knows the space, else tpe."""


STUDY_NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"


class StudySpec(Frozen):
    """Optuna's memory of the sweep. `dir` holds everything that a sweep writes, unless said otherwise.

    `artifacts`: the folder of raw requests and logs; empty: one below `dir`. `warm_start`: other studies in the
    same storage, measured on the same host, that the search learns from.

    In a PostgreSQL storage several workers share the study: a worker that was not heard of for `lease_s` seconds
    counts as dead, and a lost connection is tried again for `reconnect_s`.
    """

    name: str = Field(pattern=STUDY_NAME)
    dir: str = Field(min_length=1)
    storage: str = Field(min_length=1)
    sampler: SamplerName = "auto"
    seed: int = Field(ge=0, le=MAX_SEED)
    startup_trials: int = Field(ge=0, le=MAX_TRIALS)
    artifacts: str = ""
    lease_s: float = Field(default=45, ge=2, le=3600)
    reconnect_s: float = Field(default=300, ge=0, le=MAX_SECONDS)
    warm_start: Annotated[tuple[str, ...], AfterValidator(once)] = ()


class VerdictSpec(Frozen):
    """`allow_lossy`: configurations that may write other text than the baseline can win, too."""

    allow_lossy: bool = False


class ProbeSpec(Frozen):
    """What is timed on the host without a server, before the search begins.

    `nccl`: all-reduces under each setting of NCCL that the space has; `timeout_s`: how long one of them may take,
    its start included. One that takes longer hangs.
    """

    nccl: bool = False
    timeout_s: float = Field(default=60, gt=0, le=MAX_SECONDS)


class TrackingSpec(Frozen):
    """MLflow. An empty `uri` turns it off. One sync never takes longer than about `sync_s` seconds."""

    uri: str
    artifact_location: str
    sync_s: float = Field(gt=0, le=MAX_SECONDS)


class StudyPlace(Frozen):
    """Where a sweep's study and MLflow's view of it are: all that looking at a sweep takes.

    `notify`: who is told when nobody can go on with it.
    """

    study: StudySpec
    tracking: TrackingSpec
    engine_name: str
    notify: NotifySpec = NotifySpec()


class SweepSpec(Frozen):
    """The whole job. Each launch is measured under `workload`, whose numbers are its own, and `more_workloads`.

    `on_finish`: how the host is left in the end; `on_finish_port`: where the best is then served (None: on the
    lowest port of the host's range).
    """

    engine: EngineSpec
    host: HostSpec
    model: ModelSpec
    space: SpaceSpec
    workload: WorkloadSpec
    more_workloads: tuple[WorkloadSpec, ...] = ()
    study: StudySpec
    budget: BudgetSpec
    limits: LimitsSpec
    notify: NotifySpec = NotifySpec()
    on_finish: OnFinish = "stop"
    on_finish_port: int | None = Field(default=None, gt=0, lt=65536)
    probe: ProbeSpec = ProbeSpec()
    tracking: TrackingSpec
    verdict: VerdictSpec = VerdictSpec()
    objective: ObjectiveSpec

    @property
    def workloads(self) -> tuple[WorkloadSpec, ...]:
        """All that each launch is measured under, the first one first."""
        return (self.workload, *self.more_workloads)

    @property
    def objective_metric(self) -> str:
        """The metric of a launch that holds what configurations are ranked by."""
        return self.objective.metric(self.workload.name)
