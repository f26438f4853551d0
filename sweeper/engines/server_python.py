"""The Python that a server runs under, and what it tells of the packages that the server stands on."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

from sweeper.text import plain

_BUILD = r"""
import importlib.metadata as md, importlib.util as iu, hashlib, json, os, platform, re, subprocess, sys
found = {"python": platform.python_version()}
package, parts = sys.argv[1], sys.argv[2:]
for name in parts:
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
home = folder(package)
line = re.search(r"^[^#\n]*commit_id = '([^']+)'", text(home, "_version.py"), re.M)
if line:
    found["commit"] = line[1]
try:
    origin = json.loads(md.distribution(package).read_text("direct_url.json") or "{}")
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

_SHEBANG = 'IFS= read -r line < "$(command -v -- "$1")" || exit 127; shift; exec ${line#??} "$@"'
"""Runs the interpreter named in the first line of a program such as `sglang`."""

PARTS: Mapping[str, str] = {"torch": "torch", "triton": "triton", "transformers": "transformers"}
"""Packages that every such server stands on, and how they are called here."""

_TOLD = ("python", "cuda", "hip", "nccl", "commit")


def python_of(command: Sequence[str], program: str) -> tuple[str, ...]:
    """The Python that runs the server, with whatever it is wrapped in (`numactl`, `env`, `nice`).

    Of the installed `program` (`sglang`, `vllm`) it is named in the first line.
    """
    for index, word in enumerate(command):
        name = PurePosixPath(word).name
        if name.startswith(("python", "pypy")):
            return tuple(command[: index + 1])
        if name == program:
            return (*command[:index], "/bin/sh", "-c", _SHEBANG, "sh", word)
    return ("python3",)


def build_argv(python: Sequence[str], package: str, parts: Mapping[str, str]) -> tuple[str, ...]:
    """Asks for the commit of `package` and the versions of `parts`."""
    return (*python, "-c", _BUILD, package, *parts)


def build_in(output: str, parts: Mapping[str, str]) -> Mapping[str, str]:
    """Name to version, as far as they are known; empty for any other output. `parts`: package to name."""
    found = re.search(r"^specsweep-build (\{.*\})\s*$", output[-20_000:], re.MULTILINE)
    try:
        told = json.loads(found[1]) if found else None
    except (ValueError, RecursionError):
        return {}
    names = {**parts, **{name: name for name in _TOLD}}
    pairs = told.items() if isinstance(told, dict) else ()
    return {names[name]: plain(value, 100) for name, value in pairs if name in names and _is_word(value)}


def _is_word(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())
