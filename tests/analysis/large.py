"""Nights of any length on an imagined GPU host: two drafters, failures, controls, finalists."""

from __future__ import annotations

import datetime
import math
import random

from analysis.reading import Stored
from sweeper.deciding.verdict import decide
from sweeper.errors import FailureKind
from sweeper.records import LaunchRecord, PhaseTime, Purpose, TrialRecord, TrialState
from sweeper.spec import FlagValue, ServerConfig
from tests.analysis.builders import NIGHT, OBJECTIVE, failed, new_night, simplicity, trial
from tests.analysis.studies import changed

PROMPTS = ("code", "letter", "table", "story", "summary")
FINGERPRINT = {
    "engine.name": "sglang",
    "engine.version": "0.5.15",
    "host.name": "gpu1",
    "model.name": "kimi_k25",
    "objective": OBJECTIVE,
    "study.seed": "7",
    "workload.prompts": "5 prompts, sha256 ffeeddccbbaa",
}
_DRAFTERS = {"/models/kimi-k2.5-eagle3": 0.62, "/models/other-eagle3": 0.48}


class Host:
    """Makes launches one after the other; its speed varies by 1 % from start to start."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._clock = NIGHT
        self._night = new_night()

    def launch(self, config: ServerConfig, purpose: Purpose = Purpose.SEARCH) -> LaunchRecord:
        """A measured launch, some minutes after the one before."""
        value, accept = self._speed(config)
        base = self._timed(self._random.uniform(150, 260))
        metrics = {OBJECTIVE: value, "ttft_ms": 9000 / value, "tpot_ms": 990 / value, "repeat_spread_pct": 1.2}
        phases = {"start": base[2] - 70, "warmup": 12.0, "benchmark": 48.0, "stop": 6.0}
        return LaunchRecord(
            trial_number=0,
            launch_number=0,
            purpose=purpose,
            requested=config,
            canonical=config,
            effective={"tp_size": 8},
            argv=("python", "-m", "sglang.launch_server"),
            host="gpu1",
            started_at=base[0],
            ended_at=base[1],
            phases=tuple(PhaseTime(name=name, duration_s=time) for name, time in phases.items()),
            metrics={**metrics, **({"accept_length": accept} if accept else {})},
            repeat_throughputs=(value * 0.994, value * 1.006),
            prompt_throughputs={p: value * (0.9 + 0.05 * i) for i, p in enumerate(PROMPTS)},
            provenance={"engine_version": "0.5.15", "host": "gpu1", "gpu_driver": "570.86.15"},
        )

    def failure(self) -> LaunchRecord:
        """A launch that ran out of memory."""
        start, end, _ = self._timed(95.0)
        lines = ["torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.40 GiB."]
        lost = failed(self._night, FailureKind.OUT_OF_MEMORY, "the server ran out of memory", lines)
        return changed(lost, started_at=start, ended_at=end, host="gpu1")

    def config(self) -> ServerConfig:
        """A configuration of the space."""
        choose = self._random.choice
        flags: dict[str, FlagValue] = {
            "tp_size": 8,
            "speculative_algorithm": "EAGLE3",
            "speculative_draft_model_path": choose(list(_DRAFTERS)),
            "speculative_num_steps": choose([1, 2, 3, 4, 5]),
            "speculative_eagle_topk": (topk := choose([1, 1, 2, 4])),
            "speculative_num_draft_tokens": choose([4, 8, 16]) if topk > 1 else 4,
            "attention_backend": choose(["fa3", "flashinfer", "trtllm_mla"]),
        }
        if choose([False, False, False, True]):
            flags["disable_cuda_graph"] = True
        env = {"NCCL_PROTO": choose(["LL", "LL128", "Simple"])}
        return ServerConfig(flags=flags, env=env)

    def fails(self) -> bool:
        """Whether the next launch fails: one of twelve."""
        return self._random.random() < 1 / 12

    def _timed(self, length_s: float) -> tuple[datetime.datetime, datetime.datetime, float]:
        start = self._clock + datetime.timedelta(seconds=3)
        self._clock = start + datetime.timedelta(seconds=length_s)
        return start, self._clock, length_s

    def _speed(self, config: ServerConfig) -> tuple[float, float | None]:
        """Tokens per second and accept_length: steps cost time, drafters differ, graphs and protocols help."""
        flags = config.flags
        noise = math.exp(self._random.gauss(0, 0.01))
        if "speculative_algorithm" not in flags:
            return 90 * noise, None
        odds = _DRAFTERS[str(flags["speculative_draft_model_path"])]
        steps, topk = (int(flags[f"speculative_{name}"]) for name in ("num_steps", "eagle_topk"))
        odds += 0.05 * math.log2(topk)
        accept = sum(odds**depth for depth in range(steps + 1))
        step_ms = 13 + 2.1 * steps + 0.35 * int(flags["speculative_num_draft_tokens"])
        step_ms *= 1.35 if "disable_cuda_graph" in flags else 1.0
        step_ms *= {"LL": 0.97, "LL128": 1.0, "Simple": 1.03}[config.env["NCCL_PROTO"]]
        if flags["attention_backend"] == "trtllm_mla" and topk > 1:
            step_ms *= 1.12
        return 1000 * accept / step_ms * noise, accept * math.exp(self._random.gauss(0, 0.006))


def large_night(num_trials: int, seed: int = 7) -> list[TrialRecord]:
    """A finished night of so many trials: a control after each ten, the three best confirmed twice."""
    host = Host(seed)
    plain = ServerConfig(flags={"tp_size": 8})
    launches: dict[int, list[LaunchRecord]] = {0: [host.launch(plain, Purpose.BASELINE)]}
    configs = {0: plain}
    for number in range(1, num_trials):
        configs[number] = host.config()
        launches[number] = [host.failure() if number > 1 and host.fails() else host.launch(configs[number])]
        if number % 10 == 0:
            launches[0].append(host.launch(plain, Purpose.CONTROL))
    scored = [n for n in configs if n and launches[n][0].ok]
    best = sorted(scored, key=lambda n: -launches[n][0].metrics[OBJECTIVE])[:3]
    for _ in range(2):
        for number in (0, *best):
            launches[number].append(host.launch(configs[number], Purpose.CONFIRM))
    return [
        trial(n, config, launches[n], TrialState.COMPLETE if launches[n][0].ok else TrialState.INFEASIBLE)
        for n, config in configs.items()
    ]


def fleet_night(num_trials: int, hosts: tuple[str, ...] = ("gpu1", "gpu2")) -> list[TrialRecord]:
    """The same night on hosts that are each 10 % slower than the one before, which take the trials in turn.

    Each has measured the baseline; finalists are confirmed on the first.
    """

    def on(launch: LaunchRecord, index: int) -> LaunchRecord:
        name, factor = hosts[index], 0.9**index
        return changed(
            launch,
            host=name,
            provenance={**launch.provenance, "host": name},
            metrics={k: v * factor if k == OBJECTIVE else v for k, v in launch.metrics.items()},
            repeat_throughputs=tuple(v * factor for v in launch.repeat_throughputs),
            prompt_throughputs={k: v * factor for k, v in launch.prompt_throughputs.items()},
        )

    moved = []
    for one in large_night(num_trials):
        launches = [
            on(n, 0 if n.purpose in (Purpose.BASELINE, Purpose.CONFIRM) else one.number % len(hosts))
            for n in one.launches
        ]
        if one.is_baseline:
            launches += [on(one.launches[0], index) for index in range(1, len(hosts))]
        moved.append(trial(one.number, one.canonical, launches, one.state))
    return moved


def stored(trials: list[TrialRecord], name: str = "night", **fingerprint: str) -> Stored:
    """The night as a study at its end."""
    said = decide(trials, OBJECTIVE, simplicity).text
    return Stored(name, trials, {**FINGERPRINT, **fingerprint}, last_verdict=said)
