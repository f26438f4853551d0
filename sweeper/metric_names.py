"""The metric that was probably meant by a name that is none: what other programs and older pages call it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from sweeper.metrics import METRICS
from sweeper.near_names import nearest

_ALSO_CALLED: Mapping[str, Iterable[str]] = {
    "output_throughput": (
        "throughput", "output throughput", "tok/s", "toks/s", "tokens/s", "tps", "tok per s", "tokens per second",
        "output tok/s", "speed", "rate", "generation throughput", "eval rate",
    ),
    "decode_throughput": ("decode", "decode tok/s", "decode tps", "decode speed", "tg"),
    "request_throughput": ("qps", "rps", "req/s", "requests/s", "requests per second"),
    "accept_length": (
        "accept len", "acc len", "acc length", "acceptance length", "mean acceptance length", "mean accept len",
        "avg spec accept length", "spec accept length", "accept", "tau",
    ),
    "accept_rate": ("acceptance rate", "acceptance", "draft acceptance rate", "spec accept rate"),
    "ttft_ms": ("ttft", "ttft s", "time to first token", "median ttft ms", "mean ttft ms", "prefill"),
    "ttft_p99_ms": ("p99 ttft", "p99 ttft ms", "ttft p99"),
    "tpot_ms": ("tpot", "tpot s", "time per output token", "median tpot ms", "mean tpot ms", "itl", "itl ms"),
    "itl_p99_ms": ("p99 itl", "p99 itl ms", "itl p99", "inter token latency"),
    "e2e_latency_ms": ("latency", "e2e", "e2el", "e2e latency", "latency ms", "latency s", "median e2el ms"),
    "energy_wh": ("energy", "energy kwh"),
}  # fmt: skip
"""By the metric, in any spelling: `tok/s`, `tok_s` and `TOK-S` are one name."""


def _spelt(word: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", word.lower()).strip("_")


_METRIC_OF: dict[str, str] = {_spelt(metric.label): name for name, metric in METRICS.items()}
_METRIC_OF |= {_spelt(word): metric for metric, words in _ALSO_CALLED.items() for word in words}


def metric_called(word: str) -> str:
    """The name in METRICS of what others call `word`; empty when nobody is known to."""
    return _METRIC_OF.get(_spelt(word), "")


def metric_meant(word: str) -> str:
    """The name in METRICS that `word` stands for, or is most like; empty when none is near."""
    return metric_called(word) or nearest(word, METRICS)
