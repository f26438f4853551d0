"""What the tests of imports share: places to import into, and files to import."""

from __future__ import annotations

from pathlib import Path

from sweeper.importing.importer import Options, Outcome, add_results, read_files, understood_files
from sweeper.records import TrialRecord
from sweeper.spec import FlagValue, StudySpec
from sweeper.storing.storage import StudyStore

DATA = Path(__file__).parents[1] / "data" / "imports"
EAGLE3: dict[str, FlagValue] = {"speculative_algorithm": "EAGLE3"}


def place(folder: Path, name: str = "old") -> StudySpec:
    return StudySpec(name=name, dir=str(folder), storage=f"sqlite:///{folder}/optuna.db", seed=0, startup_trials=1)


def csv_file(folder: Path, *lines: str, name: str = "r.csv") -> Path:
    path = folder / name
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def bring(folder: Path, *paths: Path, options: Options | None = None, name: str = "old") -> Outcome:
    asked = options or Options(fixed=EAGLE3)
    return add_results(understood_files(read_files(paths, asked.kind), asked), place(folder, name))


def stored(folder: Path, name: str = "old") -> StudyStore:
    return StudyStore.open(f"sqlite:///{folder}/optuna.db", name, str(folder), create=False)


def trials(folder: Path, name: str = "old") -> tuple[TrialRecord, ...]:
    return stored(folder, name).trials()
