"""Asks the real vLLM what it makes of configurations, without starting a server.

`ENV/bin/python -m tests.real_vllm.oracle TARGET DRAFT TINY_TARGET TINY_DRAFT > arguments.json`, run by the Python
of the environment. A row: the model, the entries of --speculative-config, and what came of it.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from vllm.engine.arg_utils import EngineArgs  # type: ignore[import-not-found]

NGRAM = {"method": "ngram", "num_speculative_tokens": 3}
DRAFT = {"method": "draft_model", "model": "/models/draft", "num_speculative_tokens": 3}
EAGLE3 = {"method": "eagle3", "model": "/models/tiny-eagle3/draft-eagle3", "num_speculative_tokens": 3}
ASKED: tuple[tuple[str, dict[str, Any]], ...] = (
    ("/models/target", NGRAM),
    ("/models/target", {**NGRAM, "prompt_lookup_min": 2}),
    ("/models/target", {**NGRAM, "prompt_lookup_max": 7}),
    ("/models/target", {**NGRAM, "prompt_lookup_min": 2, "prompt_lookup_max": 4}),
    ("/models/target", {**NGRAM, "prompt_lookup_min": 5, "prompt_lookup_max": 2}),
    ("/models/target", {"method": "ngram"}),
    ("/models/target", {**NGRAM, "num_speculative_tokens": 0}),
    ("/models/target", {**NGRAM, "model": "/models/draft"}),
    ("/models/target", {**NGRAM, "no_such_entry": 1}),
    ("/models/target", {**NGRAM, "rejection_sample_method": "typical"}),
    ("/models/target", {**NGRAM, "rejection_sample_method": "synthetic"}),
    ("/models/target", {**NGRAM, "rejection_sample_method": "synthetic", "synthetic_acceptance_length": 9.0}),
    ("/models/target", {**NGRAM, "rejection_sample_method": "block"}),
    ("/models/target", {"method": "suffix"}),
    ("/models/target", {"method": "no_such_method", "num_speculative_tokens": 3}),
    ("/models/target", DRAFT),
    ("/models/target", {**DRAFT, "draft_tensor_parallel_size": 1}),
    ("/models/target", {**DRAFT, "draft_tensor_parallel_size": 2}),
    ("/models/target", {**DRAFT, "tensor_parallel_size": 1}),
    ("/models/target", {"method": "draft_model", "model": "/models/draft"}),
    ("/models/target", {"method": "draft_model", "num_speculative_tokens": 3}),
    ("/models/target", {**DRAFT, "model": "/models/tiny-eagle3/target"}),
    ("/models/target", {**DRAFT, "model": "/models/tiny-eagle3/target", "use_heterogeneous_vocab": True}),
    ("/models/target", {"method": "mtp", "num_speculative_tokens": 1}),
    ("/models/tiny-eagle3/target", EAGLE3),
    ("/models/tiny-eagle3/target", {**EAGLE3, "method": "eagle"}),
    ("/models/tiny-eagle3/target", {**EAGLE3, "method": "draft_model"}),
    ("/models/tiny-eagle3/target", {"method": "eagle3", "model": EAGLE3["model"]}),
    ("/models/tiny-eagle3/target", {"method": "eagle3", "num_speculative_tokens": 3}),
)
KEPT = ("method", "num_speculative_tokens", "prompt_lookup_min", "prompt_lookup_max", "draft_tensor_parallel_size")


def answer(model: str, entries: dict[str, Any], real: dict[str, str]) -> dict[str, Any]:
    """What vLLM resolves, or the last line of its refusal."""
    given = {name: real.get(value, value) if isinstance(value, str) else value for name, value in entries.items()}
    arguments = EngineArgs(model=real[model], enforce_eager=True, max_model_len=512, speculative_config=given)
    try:
        config = arguments.create_engine_config().speculative_config
    except Exception as error:  # noqa: BLE001 - whatever it raises is the answer
        said = " ".join(str(error).split())
        for path, name in sorted(((path, name) for name, path in real.items()), reverse=True):
            said = said.replace(path, name)
        return {"refused": f"{type(error).__name__}: {said[:300]}"}
    return {"resolved": {name: getattr(config, name) for name in KEPT if getattr(config, name) is not None}}


def main(target: str, draft: str, tiny_target: str, tiny_draft: str) -> None:
    """Every row, as JSON on standard output."""
    real = {
        "/models/target": target,
        "/models/draft": draft,
        "/models/tiny-eagle3/target": tiny_target,
        "/models/tiny-eagle3/draft-eagle3": tiny_draft,
    }
    rows = [{"model": model, "entries": entries, **answer(model, entries, real)} for model, entries in ASKED]
    sys.stdout.write("\n".join(["[", *(f" {json.dumps(row)}," for row in rows)])[:-1] + "\n]\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
