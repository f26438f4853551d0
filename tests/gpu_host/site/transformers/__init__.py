"""A stand-in for the one thing that is asked of transformers on a host: a chat template."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sglang.standin import tokens  # type: ignore[import-not-found,unused-ignore]


class _Tokenizer:
    """Applies a template like the real ones: role and content between marks."""

    def apply_chat_template(
        self,
        conversation: Sequence[Mapping[str, str]],
        tokenize: bool = True,
        add_generation_prompt: bool = False,
        **_: Any,
    ) -> list[int] | str:
        """The prompt that a server would build for these messages."""
        text = "".join(f"<|im_{m['role']}|>{m['content']}<|im_end|>" for m in conversation)
        if add_generation_prompt:
            text += "<|im_assistant|>"
        ids: list[int] = tokens.encode(text)
        return ids if tokenize else text


class AutoTokenizer:
    """Finds the tokenizer of a model folder."""

    @staticmethod
    def from_pretrained(path: str, **_: Any) -> _Tokenizer:
        """The tokenizer in folder `path`. Raises OSError, as the real one does, when there is none."""
        if not (Path(path) / "tokenizer_config.json").is_file():
            raise OSError(
                f"Can't load tokenizer for '{path}'. If you were trying to load it from "
                "'https://huggingface.co/models', make sure you don't have a local directory with the same name."
            )
        return _Tokenizer()
