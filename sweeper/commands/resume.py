"""`specsweep resume`."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import sys
from collections.abc import Sequence
from contextlib import chdir, suppress
from pathlib import Path

from launchers.clock import SystemClock
from launchers.masking import masked_words
from sweeper import config
from sweeper.commands.fleet import HOSTS, SLURM, hosts_of, is_for_slurm, specs_of_hosts
from sweeper.commands.run import run
from sweeper.errors import AlreadyAtWork, ConfigError, ExitCode, StorageUnusable
from sweeper.fingerprint import IMPORTED
from sweeper.nights.notify import ends_told
from sweeper.spec import NotifySpec, StudyPlace, StudySpec
from sweeper.standing.catalogue import Catalogue, Entry, catalogue
from sweeper.storing.addresses import sqlite_file
from sweeper.storing.kept_run import COMPLETE, INTERRUPTED, NIGHT_OVER, STOPPED, KeptRun, kept_runs
from sweeper.storing.storage import StudyStore
from sweeper.streams import lenient

GOES_ON = (INTERRUPTED, NIGHT_OVER, STOPPED)
"""The states of studies that a start without a name may mean."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_NOT_WAITING = (COMPLETE, "imported", "foreign")
"""The states of studies that no sweep has to go on with."""

_WEBHOOKS = ("notify.webhook", "notify.webhook_env")
_WHERE = ("study.dir", "study.storage")
_PLACE = (*_WHERE, "study.name")


def resume(arguments: argparse.Namespace) -> ExitCode:
    """Run a study again with the settings of its last run. Raises as `run` does.

    Why it cannot go on is told to whom the run has told: perhaps nobody sits there.
    """
    name, given = split_name(arguments.overrides)
    named = [*_without(given, ("study.name",)), *([f"study.name={name}"] if name else [])]
    place = config.load_place(named, arguments.config_dir)
    with ends_told(place.notify, name, "", _say):
        if not name:
            if (waiting := _only_waiting(place.study)) is None:
                return ExitCode.OK
            name = waiting
            place = config.load_place([*named, f"study.name={name}"], arguments.config_dir)
        store = StudyStore.of(place.study)
        runs = _runs(store)
    config_dir = arguments.config_dir.absolute() if arguments.config_dir else _path(runs[0].config_dir)
    with ends_told(_hooks(runs[0], given, config_dir, place), name, "", _say):
        words, folder = again(runs, store, place, given)
        if folder is not None:
            os.chdir(folder)
        _require_right(words, config_dir)
    where = [] if config_dir is None else ["--config-dir", str(config_dir)]
    _print(f"specsweep run {shlex.join([*where, *masked_words(words)])}")
    return run(argparse.Namespace(**{**vars(arguments), "overrides": words, "config_dir": config_dir}))


def _print(line: str) -> None:
    out = lenient(sys.stdout)  # a night needs no room for its own words
    out.write(f"{line}\n")
    out.flush()


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


def split_name(words: Sequence[str]) -> tuple[str, list[str]]:
    """The study that is named, and the settings. Raises ConfigError for two names, or a word that is neither."""
    names = [word for word in words if "=" not in word and not word.startswith(("~", "-"))]
    settings = [word for word in words if word not in names]
    names += [word.partition("=")[2] for word in settings if word.startswith("study.name=")]
    if wrong := [name for name in names if not _NAME.fullmatch(name)]:
        raise ConfigError([f"{wrong[0]!r}: is no name of a study; write specsweep resume NAME"])
    if len(names) > 1:
        raise ConfigError([f"{' '.join(names)}: one study at a time"])
    return (names[0] if names else ""), settings


def again(
    runs: Sequence[KeptRun], store: StudyStore, place: StudyPlace, given: Sequence[str]
) -> tuple[list[str], Path | None]:
    """The words of the command, and the folder to give them in if that is another one.

    Words that were kept without their secret must have been given, but those of hooks: a sweep goes on without
    them, and says so. Raises ConfigError.
    """
    kept, added = _without(_kept_words(runs), _replaced_by(given)), _without(given, _PLACE)
    masked = [word for word in kept if word in runs[0].masked]
    if missing := [word for word in masked if _key(word) not in map(_key, given) and not _is_hook(word)]:
        raise ConfigError([f"{_key(word)}: was secret and is not kept; give it again" for word in missing])
    storage = [word for word in given if _key(word) == "study.storage" and _key(word) in map(_key, masked)]
    words = _merged(kept, [*added, *storage])
    folder, study = Path(runs[0].folder), place.study
    is_here, is_named = folder == Path.cwd(), any(_key(word) in _WHERE for word in given)
    if (is_here and not is_named) or (folder.is_dir() and _is_same(store, study, words, runs[0])):
        return words, None if is_here else folder
    named = [word for word in given if _key(word) == "study.storage"]
    rest = _without(words, ("study.storage",)) if study.storage.startswith("sqlite") else words
    return _merged(rest, [f"study.name={study.name}", f"study.dir={study.dir}", *named]), None


def _replaced_by(given: Sequence[str]) -> tuple[str, ...]:
    """Settings beside which those that are given cannot stand."""
    keys = set(map(_key, given))
    pairs = (_WEBHOOKS, _WEBHOOKS[::-1])
    return tuple(one for one, other in pairs if other in keys)


def _is_hook(word: str) -> bool:
    return _key(word).partition(".")[0] == "notify"


def _hooks(kept: KeptRun, given: Sequence[str], config_dir: Path | None, place: StudyPlace) -> NotifySpec:
    """Whom the run told, by its settings and those that are given; else whom those of this folder tell."""
    whole = _merged(_without(kept.overrides, _replaced_by(given)), given)
    words = [word for word in whole if not word.startswith((HOSTS, SLURM))]
    with suppress(OSError), chdir(kept.folder if Path(kept.folder).is_dir() else "."):
        for each in (words, [*filter(_is_hook, words)]):
            with suppress(ConfigError):
                return config.load_place(each, config_dir).notify
    return place.notify


def _require_right(words: Sequence[str], config_dir: Path | None) -> None:
    """Raises ConfigError with the mistakes of settings that nobody may have typed just now: a file has changed."""
    if is_for_slurm(words):
        return
    if (hosts := hosts_of(words)) is not None:
        specs_of_hosts(hosts, argparse.Namespace(overrides=words, config_dir=config_dir))
        return
    config.load(words, config_dir)


def _is_same(store: StudyStore, study: StudySpec, words: Sequence[str], kept: KeptRun) -> bool:
    """Whether these words lead to this very study in the run's folder; a copy of its file is another one."""
    file = _file(study)
    place = [word for word in words if not word.startswith((HOSTS, SLURM))]
    with suppress(ConfigError, StorageUnusable, OSError), chdir(kept.folder):
        there = config.load_place(place, _path(kept.config_dir)).study
        if file != _file(there) or file is not None:
            return file == _file(there) and there.name == study.name
        return bool(StudyStore.of(there).fact("identity") == store.fact("identity"))
    return False


def _file(study: StudySpec) -> Path | None:
    """The database file of a study in this folder's terms; None for a server's database."""
    return None if (path := sqlite_file(study.storage)) is None else path.resolve()


def _runs(store: StudyStore) -> tuple[KeptRun, ...]:
    """The runs that a study keeps. Raises ConfigError where there is none, SpecsweepError where one is damaged."""
    if runs := kept_runs(store):
        return runs
    if IMPORTED in store.texts("fingerprint"):
        raise ConfigError([f"study.name: {store.name!r} was imported; no sweep continues it"])
    store.require_readable()
    older = "does not say with which settings it was run (an older specsweep made it)"
    raise ConfigError([f"study.name: {store.name!r} {older}; give the command of `specsweep run` again"])


def _kept_words(runs: Sequence[KeptRun]) -> list[str]:
    """The words of the newest run; with those of other hosts of a shared study, if only the host differs."""
    newest = runs[0]
    rest = _without(newest.overrides, ("host",))
    alike = [run for run in runs if _without(run.overrides, ("host",)) == rest]
    hosts = [word.partition("=")[2] for run in alike for word in run.overrides if word.startswith("host=")]
    if len(hosts) > 1 and len(hosts) == len(alike):
        return [*rest, f"hosts=[{','.join(sorted(hosts))}]"]
    return list(newest.overrides)


def _only_waiting(study: StudySpec) -> str | None:
    """The name of the only study that waits to go on; None, which is said, when all are complete.

    Raises ConfigError with the list when it is not one; AlreadyAtWork when one runs, and StorageUnusable when some
    cannot be read, and none of the others waits.
    """
    found = catalogue(study, SystemClock().now())
    waiting = [entry.study for entry in found.studies if entry.state in GOES_ON]
    if len(waiting) == 1:
        return waiting[0]
    if waiting:
        raise ConfigError(
            [f"NAME: several studies wait to go on: {', '.join(waiting)}; name one: specsweep resume NAME"]
        )
    if found.notes:
        raise StorageUnusable("; ".join(found.notes))
    if running := next((entry for entry in found.studies if entry.state == "running"), None):
        raise AlreadyAtWork(f"study {running.study} is at work already: {', '.join(running.by)}")
    done = [entry.study for entry in found.studies if entry.state == COMPLETE]
    if not done or any(entry.state not in _NOT_WAITING for entry in found.studies):
        raise ConfigError([f"NAME: no study waits to go on{_listed(found)}"])
    more = f"a larger total goes on: specsweep resume {done[0]} budget.trials=N"
    _print(f"nothing is left to do: {', '.join(done[:20])} {'are' if done[1:] else 'is'} complete; {more}")
    return None


def _listed(found: Catalogue) -> str:
    def words(entry: Entry) -> str:
        return f"{entry.study} ({entry.state})"

    return f"; there are: {', '.join(map(words, found.studies[:20]))}" if found.studies else ""


def _merged(words: Sequence[str], added: Sequence[str]) -> list[str]:
    """Words, with what is added in the place of what has the same key."""
    return [*_without(words, tuple(map(_key, added))), *added]


def _without(words: Sequence[str], keys: Sequence[str]) -> list[str]:
    return [word for word in words if _key(word) not in keys]


def _key(word: str) -> str:
    return word.partition("=")[0].lstrip("+~")


def _path(text: str) -> Path | None:
    return Path(text) if text else None
