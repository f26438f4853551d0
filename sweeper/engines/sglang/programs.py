"""What is asked of the Python that SGLang runs under: its version, what it is built of, the chat template."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from sweeper.engines import server_python
from sweeper.engines.server_python import PARTS
from sweeper.engines.sglang.version import parse_version

_VERSION = """
from importlib.metadata import PackageNotFoundError, version
try:
    print("sglang", version("sglang"))
except PackageNotFoundError:
    import sglang
    print("sglang", sglang.__version__)
"""

_TEMPLATE = """
import json, sys
from transformers import AutoTokenizer
tokenizer = AutoTokenizer.from_pretrained(sys.argv[1], trust_remote_code=sys.argv[2] == "yes")
texts = json.loads(sys.argv[3])
ids = [
    tokenizer.apply_chat_template(
        [{"role": "user", "content": text}], add_generation_prompt=True, tokenize=True, return_dict=False
    )
    for text in texts
]
print("\\nspecsweep-token-ids " + json.dumps([[int(i) for i in row] for row in ids]))
"""
"""Applied by the server's own Python: /generate takes no messages, and the chat endpoint tells no acceptance."""

_PARTS = {
    **PARTS,
    "flashinfer-python": "flashinfer",
    "sgl-kernel": "sgl_kernel",
    "sglang-kernel": "sgl_kernel",
}


def version_argv(command: Sequence[str]) -> tuple[str, ...]:
    """The package's version, asked of the server's own Python: the server itself takes 20 s to tell."""
    return (*_python_of(command), "-c", _VERSION)


def version_in(output: str) -> str:
    """`0.5.15.post1`. Raises ValueError when there is none, or one too old."""
    found = re.search(r"^sglang (\S+)\s*$", output, re.MULTILINE)
    if found is None:
        raise ValueError(f"no line `sglang VERSION` in {output.strip()[-200:]!r}")
    return parse_version(found[1])


def build_argv(command: Sequence[str]) -> tuple[str, ...]:
    """Asks for the commit and the versions of what the server stands on."""
    return server_python.build_argv(_python_of(command), "sglang", _PARTS)


def build_in(output: str) -> Mapping[str, str]:
    """Name to version, as far as they are known; empty for any other output."""
    return server_python.build_in(output, _PARTS)


def template_argv(command: Sequence[str], tokenizer: str, trust: bool, texts: Sequence[str]) -> tuple[str, ...]:
    """The model's chat template, applied by the Python that the server runs under."""
    return (*_python_of(command), "-c", _TEMPLATE, tokenizer, "yes" if trust else "no", json.dumps(list(texts)))


def token_ids_in(output: str) -> list[tuple[int, ...]]:
    """The token ids of each text. Raises ValueError."""
    found = re.search(r"^specsweep-token-ids (.*)$", output, re.MULTILINE)
    try:
        rows = json.loads(found[1]) if found else None
    except RecursionError as error:
        raise ValueError("the token ids are nested too deeply") from error
    if not isinstance(rows, list) or not all(_is_token_ids(row) for row in rows):
        raise ValueError(f"no token ids in {output.strip()[-200:]!r}")
    return [tuple(row) for row in rows]


def _is_token_ids(row: object) -> bool:
    return isinstance(row, list) and bool(row) and all(type(token) is int and token >= 0 for token in row)


def _python_of(command: Sequence[str]) -> tuple[str, ...]:
    return server_python.python_of(command, "sglang")
