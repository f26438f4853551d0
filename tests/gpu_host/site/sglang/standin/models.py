"""What a model folder tells: architecture, sizes, attention kind."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .failures import ARGUMENTS, ServerError

MLA_ARCHITECTURES = {
    "DeepseekV2ForCausalLM",
    "DeepseekV3ForCausalLM",
    "KimiK25ForConditionalGeneration",
    "Eagle3DeepseekV2ForCausalLM",
}


@dataclass(frozen=True)
class Model:
    """One model folder, as far as the stand-in uses it. `weights_gib`: over all GPUs."""

    path: str
    architecture: str
    model_type: str
    hidden_size: int
    num_layers: int
    context_length: int
    weights_gib: float
    fused_size: int | None = None
    """The width a drafter's fusion layer takes; None: three times its own hidden size."""

    @property
    def is_mla(self) -> bool:
        """Whether its attention is the latent kind (DeepSeek, Kimi)."""
        return self.architecture in MLA_ARCHITECTURES

    @property
    def is_eagle3(self) -> bool:
        """Whether it is a drafter of the EAGLE-3 kind."""
        return "eagle3" in self.architecture.lower()


def read(path: str) -> Model:
    """The model in folder `path`. Raises ServerError in the words of the real one."""
    folder = Path(path)
    try:
        config: dict[str, Any] = json.loads((folder / "config.json").read_text())
    except (OSError, ValueError) as error:
        raise ServerError(
            ARGUMENTS,
            "OSError: Repo id must be in the form 'repo_name' or 'namespace/repo_name': "
            f"'{path}'. Use `repo_type` argument if needed.",
        ) from error
    text = config.get("text_config", config)
    index = folder / "model.safetensors.index.json"
    size = json.loads(index.read_text())["metadata"]["total_size"] if index.is_file() else 1 << 30
    return Model(
        path=path,
        architecture=(config.get("architectures") or ["LlamaForCausalLM"])[0],
        model_type=config.get("model_type", "llama"),
        hidden_size=text.get("hidden_size", 4096),
        num_layers=text.get("num_hidden_layers", 1),
        context_length=text.get("max_position_embeddings", 32768),
        weights_gib=size / (1 << 30),
        fused_size=config.get("target_hidden_size"),
    )
