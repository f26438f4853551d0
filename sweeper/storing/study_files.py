"""Which database files of a folder hold studies. Reads them as files; no table is made in any."""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from sweeper.text import plain

_FILE = "sqlite:///"
_OPTUNA = frozenset({"studies", "trials", "study_user_attributes"})
_MLFLOW = frozenset({"experiments", "runs"})
MAX_FILES = 100


@dataclass(frozen=True)
class Storages:
    """Addresses of databases that hold studies, and a line for each file that should be one and is not."""

    urls: tuple[str, ...]
    notes: tuple[str, ...] = ()


def storages_of(storage_url: str, folder: str) -> Storages:
    """The storage that is asked for; if that is a file of `folder`, or none, also all others of the folder."""
    if not storage_url.startswith("sqlite"):
        return Storages((storage_url,))
    asked = Path(storage_url.partition(":///")[2].partition("?")[0])
    if asked.parent.absolute() != Path(folder).absolute():
        return Storages((storage_url,))
    urls, notes = [], []
    for path in sorted(Path(folder).glob("*.db"))[:MAX_FILES]:
        wrong = _why_not(path)
        if wrong is None:
            urls.append(storage_url if path.absolute() == asked.absolute() else f"{_FILE}{path}")
        elif wrong:
            notes.append(f"{path}: {wrong}")
    return Storages(tuple(urls), tuple(notes))


def _why_not(path: Path) -> str | None:
    """Why a file holds no studies: empty for MLflow's, which need not; None when it does."""
    try:
        with closing(_opened(path)) as connection:
            tables = {str(row[0]) for row in connection.execute("SELECT name FROM sqlite_master")}
    except (sqlite3.Error, OSError) as error:
        return f"cannot be read: {plain(str(error), 100)}"
    if tables >= _OPTUNA:
        return None
    return "" if tables >= _MLFLOW else "is a database of something else"


def newest_names(storage_url: str, folder: str, limit: int = 200) -> list[str]:
    """The names of the newest studies in files; none of a database elsewhere, or of what cannot be read."""
    found: list[str] = []
    for url in storages_of(storage_url, folder).urls if storage_url.startswith("sqlite") else ():
        path = Path(url.partition(":///")[2].partition("?")[0])
        query = "SELECT study_name FROM studies ORDER BY study_id DESC LIMIT ?"
        with suppress(sqlite3.Error, OSError), closing(_opened(path)) as connection:
            found += [str(row[0]) for row in connection.execute(query, (limit,))]
    return found


def _opened(path: Path) -> sqlite3.Connection:
    """A connection that only reads. Raises sqlite3.Error."""
    return sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True, timeout=10)
