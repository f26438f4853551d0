from __future__ import annotations

import pytest

from sweeper.naming import difference_text
from sweeper.spec import ServerConfig
from tests.fakes import config

BASE = config(ctx_size=2048, threads=1)


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (BASE, "baseline"),
        (BASE.with_flags({"spec_type": "ngram-simple", "spec_n": 3, "spec_m": 4}), "ngram-simple n3 m4"),
        (BASE.with_flags({"draft_n_min": 1, "other_min": 2}), "n_min1 other_min2"),
        (BASE.with_flags({"threads": 2}), "threads2"),
        (BASE.with_flags({"spec_draft_model": "/models/small.gguf"}), "small.gguf"),
        (BASE.with_flags({"flash_attn": True}), "flash_attn"),
        (BASE.without(frozenset({"threads"})), "no threads"),
        (ServerConfig(flags=BASE.flags, env={"NCCL_ALGO": "Ring"}), "NCCL_ALGO=Ring"),
    ],
)
def test_a_configuration_is_named_by_what_differs_from_the_baseline(made: ServerConfig, text: str) -> None:
    assert difference_text(made, BASE) == text
