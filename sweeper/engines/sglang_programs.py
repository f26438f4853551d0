"""What is asked of the Python that SGLang runs under: its version, what it is built of, the chat template."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

from sweeper.engines.sglang_version import parse_version
from sweeper.text import plain

_VERSION = """
from importlib.metadata import PackageNotFoundError, version
try:
    print("sglang", version("sglang"))
except PackageNotFoundError:
    import sglang
    print("sglang", sglang.__version__)
"""

_BUILD = r"""
import importlib.metadata as md, importlib.util as iu, hashlib, json, os, platform, re, subprocess
found = {"python": platform.python_version()}
for name in ("torch", "triton", "flashinfer-python", "sgl-kernel", "sglang-kernel", "transformers"):
    try:
        found[name] = md.version(name)
    except (md.PackageNotFoundError, KeyError):
        pass
for d in md.distributions():
    try:
        name = d.metadata["Name"] or ""
    except (KeyError, TypeError):
        continue
    if name.startswith("nvidia-nccl-cu") or name == "nvidia-nccl":
        found["nccl"] = d.version
def folder(name):
    try:
        return os.path.dirname(iu.find_spec(name).origin)
    except (ImportError, AttributeError, ValueError, TypeError):
        return ""
def text(*path):
    try:
        with open(os.path.join(*path)) as file:
            return file.read(100000)
    except (OSError, ValueError):
        return ""
for name in ("cuda", "hip"):
    line = re.search(r"^%s\b[^=\n]*= *'([^']+)'" % name, text(folder("torch"), "version.py"), re.M)
    if line:
        found[name] = line[1]
home = folder("sglang")
line = re.search(r"^[^#\n]*commit_id = '([^']+)'", text(home, "_version.py"), re.M)
if line:
    found["commit"] = line[1]
try:
    origin = json.loads(md.distribution("sglang").read_text("direct_url.json") or "{}")
    if origin.get("vcs_info", {}).get("commit_id"):
        found["commit"] = origin["vcs_info"]["commit_id"]
except (md.PackageNotFoundError, ValueError, AttributeError):
    pass
def git(*words):
    env = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    argv = ["git", "--no-optional-locks", "-c", "safe.directory=*", "-C", home, *words]
    return subprocess.run(argv, env=env, capture_output=True, timeout=30, check=True).stdout
try:
    if home and git("ls-files", "--error-unmatch", "__init__.py"):
        found["commit"] = git("log", "-1", "--format=%H", "--", ".").decode().strip()
        changes = git("diff", "HEAD", "--", ".")
        if changes:
            found["commit"] += " with changes " + hashlib.sha256(changes).hexdigest()[:12]
except (OSError, ValueError, subprocess.SubprocessError):
    pass
print("\nspecsweep-build " + json.dumps(found))
"""
"""Nothing is imported that takes long: packages say their version, torch its CUDA in a file of its own.

The commit: the last one of the package in the git checkout that it is imported from, with a digest of what was
changed since; else as pip or the package itself wrote it down. A release has none: its version stands for it.
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

_SHEBANG = 'IFS= read -r line < "$(command -v -- "$1")" || exit 127; shift; exec ${line#??} "$@"'
"""Runs the interpreter named in the first line of a program such as `sglang`."""

_NAMES = {
    "python": "python",
    "torch": "torch",
    "triton": "triton",
    "cuda": "cuda",
    "hip": "hip",
    "nccl": "nccl",
    "commit": "commit",
    "transformers": "transformers",
    "flashinfer-python": "flashinfer",
    "sgl-kernel": "sgl_kernel",
    "sglang-kernel": "sgl_kernel",
}


def python_of(command: Sequence[str]) -> tuple[str, ...]:
    """The Python that runs the server, with whatever it is wrapped in (`numactl`, `env`, `nice`).

    Of the program `sglang` it is named in the first line.
    """
    for index, word in enumerate(command):
        name = PurePosixPath(word).name
        if name.startswith(("python", "pypy")):
            return tuple(command[: index + 1])
        if name == "sglang":
            return (*command[:index], "/bin/sh", "-c", _SHEBANG, "sh", word)
    return ("python3",)


def version_argv(command: Sequence[str]) -> tuple[str, ...]:
    """The package's version, asked of the server's own Python: the server itself takes 20 s to tell."""
    return (*python_of(command), "-c", _VERSION)


def version_in(output: str) -> str:
    """`0.5.15.post1`. Raises ValueError when there is none, or one too old."""
    found = re.search(r"^sglang (\S+)\s*$", output, re.MULTILINE)
    if found is None:
        raise ValueError(f"no line `sglang VERSION` in {output.strip()[-200:]!r}")
    return parse_version(found[1])


def build_argv(command: Sequence[str]) -> tuple[str, ...]:
    """Asks for the commit and the versions of what the server stands on."""
    return (*python_of(command), "-c", _BUILD)


def build_in(output: str) -> Mapping[str, str]:
    """Name to version, as far as they are known; empty for any other output."""
    found = re.search(r"^specsweep-build (\{.*\})\s*$", output[-20_000:], re.MULTILINE)
    try:
        told = json.loads(found[1]) if found else None
    except (ValueError, RecursionError):
        return {}
    pairs = told.items() if isinstance(told, dict) else ()
    return {_NAMES[name]: plain(value, 100) for name, value in pairs if name in _NAMES and _is_word(value)}


def template_argv(command: Sequence[str], tokenizer: str, trust: bool, texts: Sequence[str]) -> tuple[str, ...]:
    """The model's chat template, applied by the Python that the server runs under."""
    return (*python_of(command), "-c", _TEMPLATE, tokenizer, "yes" if trust else "no", json.dumps(list(texts)))


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


def _is_word(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())
