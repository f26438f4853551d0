"""The name that was probably meant."""

from __future__ import annotations

import pytest

from sweeper.near_names import meant, nearest

FLAGS = ("n_gpu_layers", "gpu_memory_utilization", "tp_size", "speculative_eagle_topk", "threads", "threads_batch")


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("tp_szie", "tp_size"),
        ("n_gpu", "n_gpu_layers"),
        ("thread", "threads"),
        ("topk", "speculative_eagle_topk"),
        ("layers", "n_gpu_layers"),
        ("TOPK", "speculative_eagle_topk"),
        ("memory_util", "gpu_memory_utilization"),
        ("zzz", ""),
        ("n", ""),
        ("", ""),
    ],
)
def test_a_name_is_near_by_its_letters_or_as_a_part_of_a_longer_one(word: str, name: str) -> None:
    assert nearest(word, FLAGS) == name


def test_it_is_told_in_brackets_or_not_at_all() -> None:
    assert meant("tp_szie", FLAGS) == " (did you mean tp_size?)"
    assert meant("zzz", FLAGS) == ""
