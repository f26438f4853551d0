"""What SGLang's GPUs add up by NCCL, from the flags and the model's config.json."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from sweeper.engines.base import HostFacts
from sweeper.engines.registry import engine_for
from sweeper.spec import FlagValue

FACTS = HostFacts(
    model_path="/m", files={"/m/config.json": '{"text_config": {"hidden_size": 7168, "num_hidden_layers": 61}}'}
)


def test_the_model_tells_the_size_of_a_message_and_how_many_there_are() -> None:
    found = engine_for("sglang").all_reduces({"tp_size": (8,)}, FACTS)
    assert found is not None
    assert (found.num_ranks, found.hidden_size, found.num_layers) == (8, 7168, 61)


def test_what_is_not_known_is_none_and_one_gpu_is_what_sglang_starts_on() -> None:
    found = engine_for("sglang").all_reduces({}, HostFacts())
    assert found is not None
    assert (found.num_ranks, found.hidden_size, found.num_layers) == (1, None, None)


def test_of_several_widths_the_largest_counts() -> None:
    found = engine_for("sglang").all_reduces({"tp_size": (4, 8, 2)}, FACTS)
    assert found is not None
    assert found.num_ranks == 8


@pytest.mark.parametrize(
    ("flags", "cumem", "nvls"),
    [
        ({}, "0", "0"),
        ({"enable_nccl_nvls": (True,)}, "0", "1"),
        ({"enable_symm_mem": (True,)}, "1", "1"),
        ({"enable_symm_mem": (False, True)}, "0", "0"),  # the search decides: what SGLang does without it
    ],
)
def test_nccl_is_timed_under_what_sglang_itself_sets(
    flags: dict[str, Sequence[FlagValue]], cumem: str, nvls: str
) -> None:
    found = engine_for("sglang").all_reduces(flags, FACTS)
    assert found is not None
    assert found.env == {"NCCL_CUMEM_ENABLE": cumem, "NCCL_NVLS_ENABLE": nvls}
