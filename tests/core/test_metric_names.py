"""The metric that a name of another program, or one misspelt, stands for."""

from __future__ import annotations

import pytest

from sweeper.metric_names import metric_called, metric_meant
from sweeper.metrics import METRICS


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("accept_len", "accept_length"),
        ("mean acceptance length", "accept_length"),
        ("acceptance_rate", "accept_rate"),
        ("tok/s", "output_throughput"),
        ("Tokens/s", "output_throughput"),
        ("tps", "output_throughput"),
        ("TTFT", "ttft_ms"),
        ("itl", "tpot_ms"),
        ("qps", "request_throughput"),
        ("output_througput", "output_throughput"),
        ("zzz", ""),
        ("", ""),
    ],
)
def test_names_of_others_and_near_names_are_known(word: str, name: str) -> None:
    assert metric_meant(word) == name


@pytest.mark.parametrize("name", METRICS)
def test_each_metric_is_known_by_its_name_and_as_reports_label_it(name: str) -> None:
    assert metric_meant(name) == name
    assert metric_called(METRICS[name].label) == name


def test_what_others_call_a_metric_is_the_name_of_no_other_one() -> None:
    assert [name for name in METRICS if metric_called(name) not in ("", name)] == []
