"""Lines that differ between versions, against what was read in their sources and in a log of the newest."""

from __future__ import annotations

from typing import Any

import pytest

from tests.gpu_host.site.sglang.standin import lines
from tests.gpu_host.site.sglang.standin.faults import Fault
from tests.gpu_host.site.sglang.standin.launch import Launch
from tests.gpu_host.site.sglang.standin.models import Model


def test_ranks_meet_in_the_words_of_their_version() -> None:
    assert lines.distributed_ends((0, 5, 8), 0.2, 0.5) == ["Init torch distributed ends. mem usage=0.50 GB"]
    ended = "Init torch distributed ends. elapsed=0.20 s, mem usage=0.50 GB"
    assert lines.distributed_ends((0, 5, 20), 0.2, 0.5) == [ended]
    assert lines.distributed_begins((0, 5, 23)) == "Init parallel begin."
    newest = ["Init parallel ends. elapsed=0.20 s", "Memory baseline taken. mem usage=0.50 GB"]
    assert lines.distributed_ends((0, 5, 23), 0.2, 0.5) == newest


def test_a_latent_cache_has_one_size() -> None:
    assert lines.pool((0, 5, 10), 7, 2.0, latent=True) == "KV Cache is allocated. #tokens: 7, KV size: 2.00 GB"
    ours = lines.pool((0, 5, 23), 7, 2.0, latent=False)
    assert ours == "KV Cache is allocated. dtype: torch.bfloat16, #tokens: 7, K size: 1.00 GB, V size: 1.00 GB"


@pytest.mark.parametrize(
    ("given", "graphs"),
    [
        ({}, True),
        ({"disable_cuda_graph": True}, False),
        ({"cuda_graph_backend_decode": "disabled"}, False),
        ({"cuda_graph_config": '{"decode": {"backend": "disabled"}}'}, False),
        ({"cuda_graph_config": '{"prefill": {"backend": "disabled"}}'}, True),
    ],
)
def test_graphs_can_be_turned_off_in_every_spelling(given: dict[str, Any], graphs: bool) -> None:
    model = Model("m", "LlamaForCausalLM", "llama", 2048, 16, 4096, 3.0)
    assert Launch(given, (0, 5, 15), 1, 0.0, Fault(), model, None, (0,)).graphs is graphs
