"""A night of 40 trials as a person would open it in the morning: speeds planted, some trials that failed."""

from __future__ import annotations

import random
from collections.abc import Mapping

from sweeper.errors import FailureKind
from sweeper.records import Purpose, TrialRecord
from sweeper.spec import FlagValue, ServerConfig
from tests.tracking.studies import FakeStudy, failed_trial, launch, trial

BASE: Mapping[str, FlagValue] = {
    "tp_size": 8,
    "mem_fraction_static": 0.9,
    "attention_backend": "triton",
    "max_running_requests": 4,
}
NUM_TRIALS = 40
BASELINE_RATE = 90.0
OUT_OF_MEMORY = (9, 23, 31)
CRASHED = (17,)
FACTS = {
    "engine": "sglang",
    "engine_version": "0.5.23",
    "model": "kimi-k2.5",
    "host": "gpu1",
    "gpus": "8 x NVIDIA RTX PRO 6000",
    "workload": "single_stream",
    "driver": "580.95",
}
VERDICT = (
    "Winner: trial 4 (EAGLE3 kimi-k2.5-eagle3 steps5 topk4 tokens4) does 143.6 tok/s against 90.2 of the "
    "baseline: 1.592 times, 90 % interval 1.571 to 1.613."
)


def night() -> FakeStudy:
    """The study: trial 0 is the baseline; the best trials and the baseline were launched again at the end."""
    study = FakeStudy(name="kimi-night", facts=FACTS, verdict=VERDICT)
    drawn = random.Random(3)
    study.add(measured(0, ServerConfig(flags=BASE), BASELINE_RATE, 1.0, launches=3))
    for number in range(1, NUM_TRIALS):
        study.add(_searched(number, drawn))
    return study


def _searched(number: int, drawn: random.Random) -> TrialRecord:
    steps, topk = drawn.choice((1, 2, 3, 4, 5, 7)), drawn.choice((1, 1, 2, 4))
    tokens = steps + 1 if topk == 1 else drawn.choice((4, 6, 8, 16))
    graphs = number % 7 != 5
    flags: dict[str, FlagValue] = {
        **BASE,
        "speculative_algorithm": "EAGLE3",
        "speculative_draft_model_path": drawn.choice(("/models/kimi-k2.5-eagle3", "/models/other-eagle3")),
        "speculative_num_steps": steps,
        "speculative_eagle_topk": topk,
        "speculative_num_draft_tokens": tokens,
        **({} if graphs else {"disable_cuda_graph": True}),
    }
    config = ServerConfig(flags=flags, env={"NCCL_P2P_LEVEL": drawn.choice(("SYS", "PHB"))})
    asked = ServerConfig(flags={"disable_cuda_graph": False, **flags}, env=config.env)
    return _outcome(number, config, drawn, graphs=graphs).model_copy(update={"requested": asked})


def _outcome(number: int, config: ServerConfig, drawn: random.Random, *, graphs: bool) -> TrialRecord:
    """What became of the trial; speeds follow from accept length and step time, as on a real server."""
    flags = config.flags
    if number in OUT_OF_MEMORY:
        return failed_trial(number, config)
    if number in CRASHED:
        return failed_trial(number, config, FailureKind.SERVER_CRASH)
    steps, topk = int(flags["speculative_num_steps"]), int(flags["speculative_eagle_topk"])
    good = str(flags["speculative_draft_model_path"]).startswith("/models/kimi")
    accept = 1 + (0.62 if good else 0.45) * sum(0.62**depth for depth in range(steps)) * (1 + 0.08 * (topk - 1))
    step_ms = 13.2 + 1.15 * steps + 0.22 * int(flags["speculative_num_draft_tokens"]) + (9.5 if not graphs else 0)
    return measured(number, config, 1000 * accept / step_ms * drawn.gauss(1, 0.006), accept)


def measured(number: int, config: ServerConfig, rate: float, accept: float, launches: int = 1) -> TrialRecord:
    """A trial whose launches did about `rate` tok/s."""
    made = []
    for index in range(launches):
        value = rate * (1 + 0.002 * index)
        metrics = {
            "output_throughput": value,
            "decode_throughput": value * 1.06,
            "ttft_ms": 182.4 + number,
            "tpot_ms": 1000 / value,
            "start_s": 211.0 + number,
            **({"accept_length": accept} if number else {}),
        }
        purpose = Purpose.CONFIRM if index else Purpose.SEARCH if number else Purpose.BASELINE
        made.append(
            launch(
                number, config, index, metrics=metrics, purpose=purpose, repeat_throughputs=(value * 0.997, value)
            )
        )
    return trial(number, config, launches=tuple(made))
