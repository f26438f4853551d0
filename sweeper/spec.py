"""What a sweep is asked to do: the typed schema behind `conf/`, frozen once validated."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator

FlagValue = str | int | float | bool
"""A server flag's value. True is a bare flag (`--flag`), False leaves the flag away."""


# Bounds far above any sensible sweep: a slip of the keyboard is told at once, not by an overflow in a library.
_MAX_TRIALS = 1_000_000
_MAX_COUNT = 10_000_000
_MAX_SECONDS = 10_000_000
_MAX_SEED = 2**32 - 1  # numpy's, and llama.cpp's
_MAX_WHOLE = 2**53  # Optuna stores every parameter as a double


class Frozen(BaseModel):
    """Base of everything here: immutable, strict about types, intolerant of unknown names."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class ServerConfig(Frozen):
    """A server configuration: flags under the engine's own names (`spec_type` is `--spec-type`), environment."""

    flags: Mapping[str, FlagValue] = {}
    env: Mapping[str, str] = {}

    def key(self) -> str:
        """Sixteen hex digits that are equal for equal configurations (of canonical ones: a trial's key)."""
        return digest({"flags": dict(self.flags), "env": dict(self.env)})[:16]

    def with_flags(self, flags: Mapping[str, FlagValue]) -> ServerConfig:
        """A copy in which `flags` are set."""
        return ServerConfig(flags={**self.flags, **flags}, env=self.env)

    def without(self, names: frozenset[str]) -> ServerConfig:
        """A copy in which the flags `names` are not set."""
        return ServerConfig(flags={k: v for k, v in self.flags.items() if k not in names}, env=self.env)


def digest(data: object) -> str:
    """SHA-256 (hex) of JSON-ready data, independent of the order of its keys."""
    text = json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _once(values: tuple[FlagValue, ...]) -> tuple[FlagValue, ...]:
    """`values`. Raises ValueError when one is repeated; 1, 1.0 and True are one: Optuna compares with ==."""
    if twice := [value for value, times in Counter(values).items() if times > 1]:
        raise ValueError(f"each may appear once, but {twice[0]!r} appears again")
    return values


class Choice(Frozen):
    """One of the listed values. All numbers: they are ordered, and the search knows it."""

    kind: Literal["choice"] = "choice"
    values: Annotated[tuple[FlagValue, ...], Field(min_length=1), AfterValidator(_once)]

    @property
    def ordered(self) -> bool:
        """Whether the values are numbers, and so have an order that the search can use."""
        return all(isinstance(value, int | float) and not isinstance(value, bool) for value in self.values)


class IntRange(Frozen):
    """Whole numbers from `low` to `high`, BOTH INCLUDED; `conf/` writes `range(low, high + 1)`, as Hydra does."""

    kind: Literal["range"] = "range"
    low: int = Field(ge=-_MAX_WHOLE, le=_MAX_WHOLE)
    high: int = Field(ge=-_MAX_WHOLE, le=_MAX_WHOLE)
    step: int = Field(default=1, gt=0, le=_MAX_WHOLE)

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
        names = _once(tuple(parameter.name for parameter in parameters))
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


class SshSpec(Frozen):
    """How a host is reached over SSH. What is empty (or 0) is left to `config_file` and to SSH's own defaults.

    `reconnect_s`: how long a broken connection is tried again before the host counts as lost.
    """

    destination: str = Field(min_length=1)
    user: str = ""
    port: int = Field(default=0, ge=0, lt=65536)
    identity_file: str = ""
    config_file: str = "~/.ssh/config"
    known_hosts: str = ""
    password_env: str = "SPECSWEEP_SSH_PASSWORD"
    passphrase_env: str = "SPECSWEEP_SSH_PASSPHRASE"
    connect_timeout_s: float = Field(default=10, gt=0, le=_MAX_SECONDS)
    reconnect_s: float = Field(default=300, ge=0, le=_MAX_SECONDS)


class HostSpec(Frozen):
    """Where the server runs. `port_low`..`port_high`: the first free port in it is used.

    `address`: where the server is reached over HTTP; empty: through the SSH connection, with no open port.
    `nodes`: destinations of the further hosts of a server that spans several, in the order of their ranks;
    `node_address`: the first host's HOST:PORT as they reach it. `gpus`: the indices to use; empty: all.
    `watch_gpus`: whether a launch waits for idle GPUs; None: if the engine runs on them. A GPU with at most
    `gpu_idle_mib` in use is idle; a server's memory may take `gpu_wait_s` to come back.
    """

    name: str = Field(min_length=1)
    kind: Literal["local", "ssh"] = "local"
    ssh: SshSpec | None = Field(default=None, validate_default=True)
    state_dir: str
    port_low: int = Field(gt=0, lt=65536)
    port_high: int = Field(gt=0, lt=65536)
    address: str = ""
    nodes: tuple[str, ...] = ()
    node_address: str = Field(default="", validate_default=True)
    gpus: tuple[Annotated[int, Field(ge=0, lt=1024)], ...] = ()
    watch_gpus: bool | None = None
    gpu_idle_mib: int = Field(default=1024, ge=0, le=_MAX_COUNT)
    gpu_wait_s: float = Field(default=60, ge=0, le=_MAX_SECONDS)

    @field_validator("state_dir")
    @classmethod
    def _absolute(cls, state_dir: str) -> str:
        if not state_dir.startswith(("/", "~/")) or "\0" in state_dir:
            raise ValueError(
                "should begin with / or ~/: it is a folder on the host, wherever specsweep is started"
            )
        return state_dir

    @field_validator("gpus")
    @classmethod
    def _each_once(cls, gpus: tuple[int, ...]) -> tuple[int, ...]:
        _once(gpus)
        return gpus

    @field_validator("ssh")
    @classmethod
    def _of_its_kind(cls, ssh: SshSpec | None, info: ValidationInfo) -> SshSpec | None:
        kind = info.data.get("kind")
        if kind == "ssh" and ssh is None:
            raise ValueError("needs a destination: choose host=ssh and give host.ssh.destination=NAME")
        if kind == "local" and ssh is not None:
            raise ValueError("has no meaning for this machine: choose host=ssh too")
        return ssh

    @field_validator("nodes")
    @classmethod
    def _reachable(cls, nodes: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        _once(nodes)
        if nodes and info.data.get("kind") == "local":
            raise ValueError("further hosts are reached over SSH: choose host=ssh")
        return nodes

    @field_validator("node_address")
    @classmethod
    def _where_the_first_is(cls, node_address: str, info: ValidationInfo) -> str:
        if info.data.get("nodes") and not re.fullmatch(r"\S+:\d{1,5}", node_address):
            raise ValueError(
                "should be HOST:PORT of the first host as the other nodes reach it, e.g. 10.0.0.1:20000"
            )
        return node_address

    @field_validator("port_high")
    @classmethod
    def _upwards(cls, port_high: int, info: ValidationInfo) -> int:
        if port_high < info.data.get("port_low", 0):
            raise ValueError(f"should not be below port_low ({info.data['port_low']})")
        return port_high


class ModelSpec(Frozen):
    """The target model. `prepare` is run on the host first; the last line it prints replaces `path`."""

    name: str
    path: str = ""
    prepare: tuple[str, ...] = ()
    prepare_timeout_s: float = Field(default=600, gt=0, le=_MAX_SECONDS)


class Prompt(Frozen):
    """One request of a workload. `prompt_class` groups prompts of a kind (`copy`, `chat`, ...).

    `token_ids` are filled in on the way, for a server that is sent tokens: the text under the chat template.
    """

    id: str
    text: str = Field(min_length=1)
    prompt_class: str = "default"
    token_ids: tuple[int, ...] = ()


class WorkloadSpec(Frozen):
    """One load pattern: the prompts, one after another, `repeats` times.

    `chat`: each prompt is a user's message, under the model's chat template; else the text is completed as it is.
    """

    name: str
    prompts: tuple[Prompt, ...] = Field(min_length=1)
    chat: bool = True
    max_tokens: int = Field(gt=0, le=_MAX_COUNT)
    repeats: int = Field(gt=0, le=_MAX_COUNT)
    warmup_requests: int = Field(ge=0, le=_MAX_COUNT)
    temperature: float = Field(ge=0)
    seed: int = Field(ge=0, le=_MAX_SEED)
    request_timeout_s: float = Field(gt=0, le=_MAX_SECONDS)

    @field_validator("prompts")
    @classmethod
    def _distinct(cls, prompts: tuple[Prompt, ...]) -> tuple[Prompt, ...]:
        _once(tuple(prompt.id for prompt in prompts))
        return prompts


class StudySpec(Frozen):
    """Optuna's memory of the sweep. `dir` holds everything that a sweep writes, unless said otherwise."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")
    dir: str = Field(min_length=1)
    storage: str = Field(min_length=1)
    sampler: Literal["tpe", "random"]
    seed: int = Field(ge=0, le=_MAX_SEED)
    startup_trials: int = Field(ge=0, le=_MAX_TRIALS)


class BudgetSpec(Frozen):
    """When to stop. `trials` is a total over all starts of this study, the baseline included.

    Before the verdict the best `finalists` and the baseline are launched again until each has
    `confirm_launches` fresh ones; 0 leaves the confirmation away.
    """

    trials: int = Field(gt=0, le=_MAX_TRIALS)
    finalists: int = Field(ge=1, le=_MAX_TRIALS)
    confirm_launches: int = Field(ge=0, le=_MAX_TRIALS)


class LimitsSpec(Frozen):
    """How long to wait, and when to give up.

    So many `identical_failures` in a row that are the host's or our own stop the sweep, or twice as many trials.
    """

    start_s: float = Field(gt=0, le=_MAX_SECONDS)
    stop_grace_s: float = Field(ge=0, le=_MAX_SECONDS)
    identical_failures: int = Field(gt=1, le=_MAX_COUNT)


class TrackingSpec(Frozen):
    """MLflow. An empty `uri` turns it off. One sync never takes longer than about `sync_s` seconds."""

    uri: str
    artifact_location: str
    sync_s: float = Field(gt=0, le=_MAX_SECONDS)


class SweepSpec(Frozen):
    """The whole job."""

    engine: EngineSpec
    host: HostSpec
    model: ModelSpec
    space: SpaceSpec
    workload: WorkloadSpec
    study: StudySpec
    budget: BudgetSpec
    limits: LimitsSpec
    tracking: TrackingSpec
    objective: str


def difference_text(config: ServerConfig, base: ServerConfig) -> str:
    """What distinguishes `config` from `base`, in as few words as tell it: `ngram-simple n3 m4`.

    A word is a text value by itself, a number behind the last word of its flag's name (behind the last two where
    one would be ambiguous), a bare flag's name, `no NAME` for what only `base` has, and NAME=VALUE for
    environment variables; "baseline" when nothing differs.
    """
    changed = {name: value for name, value in config.flags.items() if base.flags.get(name) != value}
    lasts = [_last_words(name, 1) for name in changed]
    words = [_file_name(value) for value in changed.values() if isinstance(value, str)]
    for name, value in changed.items():
        if isinstance(value, bool):
            words.append(name if value else f"no {name}")
        elif not isinstance(value, str):
            unique = lasts.count(_last_words(name, 1)) == 1
            words.append(f"{_last_words(name, 1 if unique else 2)}{value}")
    words += [f"no {name}" for name in base.flags if name not in config.flags]
    words += [f"{name}={value}" for name, value in config.env.items() if base.env.get(name) != value]
    words += [f"no {name}" for name in base.env if name not in config.env]
    return " ".join(words) or "baseline"


def _file_name(value: str) -> str:
    return value.rpartition("/")[2] or value if value.startswith(("/", "./", "~/")) else value


def _last_words(name: str, count: int) -> str:
    return "_".join(name.replace("-", "_").split("_")[-count:])
