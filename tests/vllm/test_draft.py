"""vLLM's drafts: what their config.json tells before a launch, and what the log says of their backend."""

from __future__ import annotations

import json

from sweeper.engines.base import HostFacts
from sweeper.engines.vllm import Vllm
from sweeper.spec import FlagValue, ServerConfig

ENGINE = Vllm()


def model_config(**keys: object) -> str:
    return json.dumps({"architectures": ["Qwen3DSparkModel"], "vocab_size": 10, **keys})


def drafted(draft: str, **flags: FlagValue) -> tuple[ServerConfig, HostFacts]:
    target = model_config(max_position_embeddings=8192)
    facts = HostFacts(model_path="/m", files={"/m/config.json": target, "/d/config.json": draft})
    return ServerConfig(flags={"spec_method": "dflash", "spec_model": "/d", "spec_tokens": 4, **flags}), facts


def test_a_draft_for_shorter_requests_is_told() -> None:
    short = model_config(max_position_embeddings=2048)
    (line,) = ENGINE.without_effect(*drafted(short))
    assert line.startswith("spec_model: it knows 2048 positions and requests may have 8192")
    assert ENGINE.without_effect(*drafted(short, max_model_len=2048)) == []
    assert ENGINE.without_effect(*drafted(short, spec_method="eagle3")) == []
    assert ENGINE.without_effect(*drafted(model_config(max_position_embeddings=8192))) == []
    assert ENGINE.without_effect(*drafted(model_config())) == []


def test_a_cache_for_mla_does_not_suit_a_draft_without_it() -> None:
    plain, mla = model_config(), model_config(kv_lora_rank=512)
    (line,) = ENGINE.violations(*drafted(plain, kv_cache_dtype="fp8_ds_mla"))
    assert line.startswith("spec_kv_cache_dtype is missing")
    for own in ("auto", "fp8"):
        asked = drafted(plain, kv_cache_dtype="fp8_ds_mla", spec_kv_cache_dtype=own)
        assert ENGINE.violations(*asked) == []
    assert ENGINE.violations(*drafted(mla, kv_cache_dtype="fp8_ds_mla")) == []
    assert ENGINE.violations(*drafted(plain, kv_cache_dtype="fp8")) == []


def test_the_backend_of_the_draft_is_not_taken_for_the_one_asked_for() -> None:
    log = (
        "[cuda.py:446] Using AttentionBackendEnum.TRITON_ATTN backend.\n"
        "[cuda.py:507] Using FLASH_ATTN attention backend out of potential backends: ['FLASH_ATTN'].\n"
    )
    assert ENGINE.running_mistakes(ServerConfig(flags={"attention_backend": "TRITON_ATTN"}), log) == []
    (line,) = ENGINE.running_mistakes(ServerConfig(flags={"attention_backend": "FLASHINFER"}), log)
    assert "FLASHINFER" in line
