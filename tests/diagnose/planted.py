"""Studies of known truth: a server whose step time and acceptance follow from its settings, with noise on top."""

from __future__ import annotations

import datetime
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sweeper.records import LaunchRecord, Purpose, TrialRecord, TrialState
from sweeper.spec import FlagValue, ServerConfig

NIGHT = datetime.datetime(2026, 5, 1, 22, tzinfo=datetime.UTC)
ENGINE, OBJECTIVE = "sglang", "output_throughput"
VERIFY_STEPS = 5000


@dataclass(frozen=True)
class Server:
    """base_ms: a step without drafts. Under speculation each draft forward costs forward_ms, each further token
    token_ms, and each step overhead_ms. `keeps`: drafter to the chance of its first draft; each later one is kept
    with `falls` times that. `slower`: NAME=VALUE to the factor that it has on every step."""

    base_ms: float = 10.0
    forward_ms: float = 1.0
    token_ms: float = 0.3
    overhead_ms: float = 2.0
    keeps: Mapping[str, float] = field(default_factory=lambda: {"/d/one": 0.75})
    falls: float = 0.9
    slower: Mapping[str, float] = field(default_factory=dict)

    def shares(self, config: ServerConfig) -> tuple[float, ...]:
        """Shares of steps that keep the first, second, ... draft."""
        drafter = str(config.flags.get("speculative_draft_model_path", "/d/one"))
        kept, shares = 1.0, []
        for depth in range(_whole(config, "speculative_num_steps")):
            chance = self.keeps[drafter] * self.falls**depth
            wide = _whole(config, "speculative_eagle_topk") > 1
            kept *= min(0.99, chance * (1.08 if wide else 1.0))
            shares.append(kept)
        return tuple(shares)

    def step_ms(self, config: ServerConfig) -> float:
        factor = math.prod(self.slower.get(f"{k}={v}", 1.0) for k, v in {**config.flags, **config.env}.items())
        if "speculative_algorithm" not in config.flags:
            return self.base_ms * factor
        drafts = self.forward_ms * _whole(config, "speculative_num_steps")
        tokens = self.token_ms * (_whole(config, "speculative_num_draft_tokens") - 1)
        return (self.base_ms + self.overhead_ms + drafts + tokens) * factor


def _whole(config: ServerConfig, name: str) -> int:
    value = config.flags.get(name, 0)
    return value if isinstance(value, int) else 0


def chain(steps: int, topk: int = 1, tokens: int = 0, drafter: str = "/d/one", **flags: FlagValue) -> ServerConfig:
    """A drafting configuration; a chain unless said otherwise."""
    return ServerConfig(
        flags={
            "speculative_algorithm": "EAGLE3",
            "speculative_draft_model_path": drafter,
            "speculative_num_steps": steps,
            "speculative_eagle_topk": topk,
            "speculative_num_draft_tokens": tokens or steps + 1,
            **flags,
        }
    )


def plain(**flags: FlagValue) -> ServerConfig:
    """A configuration without speculation."""
    return ServerConfig(flags=flags)


def with_env(config: ServerConfig, **env: str) -> ServerConfig:
    """The configuration under these variables."""
    return ServerConfig(flags=config.flags, env=env)


@dataclass
class Night:
    """Measures configurations of a server, `launches` times each, one every six minutes."""

    server: Server = field(default_factory=Server)
    noise_pct: float = 0.5
    launches: int = 2
    seed: int = 0

    def measure(self, configs: Sequence[ServerConfig]) -> list[TrialRecord]:
        """One trial per configuration; the first one is the baseline. All once, then all again."""
        drawn = random.Random(self.seed)
        made: list[list[LaunchRecord]] = [[] for _ in configs]
        for turn in range(self.launches):
            for number, config in enumerate(configs):
                at = NIGHT + datetime.timedelta(minutes=6 * (turn * len(configs) + number))
                made[number].append(self._launch(config, number, at, drawn, len(made[number])))
        return [_trial(number, config, made[number]) for number, config in enumerate(configs)]

    def _launch(
        self, config: ServerConfig, trial: int, at: datetime.datetime, drawn: random.Random, number: int
    ) -> LaunchRecord:
        shares, step_ms = self.server.shares(config), self.server.step_ms(config)
        length = 1 + sum(shares)
        value = 1000 * length / step_ms * math.exp(drawn.gauss(0, self.noise_pct / 100))
        metrics = {OBJECTIVE: value}
        if shares:
            metrics |= {"accept_length": length, "num_verify_steps": float(VERIFY_STEPS)}
        return LaunchRecord(
            trial_number=trial,
            launch_number=number,
            purpose=_purpose(trial, number),
            requested=config,
            canonical=config,
            host="gpu1",
            started_at=at,
            ended_at=at + datetime.timedelta(minutes=5),
            metrics=metrics,
            accepted_per_position=tuple(round(VERIFY_STEPS * share) for share in shares),
        )


def _purpose(trial: int, number: int) -> Purpose:
    if trial == 0:
        return Purpose.CONTROL if number else Purpose.BASELINE
    return Purpose.RECHECK if number else Purpose.SEARCH


def _trial(number: int, config: ServerConfig, launches: Sequence[LaunchRecord]) -> TrialRecord:
    return TrialRecord(
        number=number,
        key=config.key(),
        state=TrialState.COMPLETE,
        requested=config,
        canonical=config,
        launches=tuple(launches),
    )


def changed(trial: TrialRecord, update: Mapping[int, Mapping[str, object]]) -> TrialRecord:
    """The trial in which launches, by their number, have other fields."""
    launches = tuple(
        launch.model_copy(update=dict(update.get(launch.launch_number, {}))) for launch in trial.launches
    )
    return trial.model_copy(update={"launches": launches})
