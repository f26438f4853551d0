"""Here and in the stores: prompts, folders, the study's database, MLflow."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

from sweeper.doctor.context import Context
from sweeper.doctor.finding import Check, Place, Said, error, ok, warning
from sweeper.doctor.stores import look_at_mlflow, look_at_postgres, sqlite_tables, unwritable
from sweeper.errors import ConfigError, StudyMismatch
from sweeper.fingerprint import fingerprint
from sweeper.http import ExchangeError
from sweeper.probing.findings import findings_of
from sweeper.storing.addresses import is_shared, masked
from sweeper.storing.damage import left_out, told
from sweeper.storing.losses import STORAGE_ERRORS, reason_of
from sweeper.storing.storage import StudyStore
from sweeper.storing.study_facts import require_known_settings
from sweeper.text import plain
from sweeper.tracking.place import PlaceUnusable, check_database, mask, place_of

_GIB = 1024.0**3
_SQLITE = "sqlite:///"


def workloads_are_read(ctx: Context) -> Iterator[Said]:
    """Prompts as they were read: counts and classes."""
    for workload in ctx.spec.workloads:
        classes = len({prompt.prompt_class for prompt in workload.prompts})
        kinds = f" of {classes} classes" if classes > 1 else ""
        load = f"up to {workload.max_tokens} tokens, {workload.concurrency} at once"
        yield ok(f"{workload.name}: {len(workload.prompts)} prompts{kinds}, {load}")


def nothing_is_shown(ctx: Context) -> Iterator[Said]:
    """What `run` would remark on: secrets on the command line, arrivals that decide a throughput."""
    yield from (warning(plain(note, 400)) for note in ctx.notes)
    if not ctx.notes:
        yield ok("nothing to remark on")


def folders_are_writable(ctx: Context) -> Iterator[Said]:
    """study.dir and the artifacts."""
    study = ctx.spec.study
    places = dict.fromkeys(Path(path).absolute() for path in (study.dir, study.artifacts) if path)
    mistakes = [reason for place in places if (reason := unwritable(place))]
    yield from (error(reason, "choose another one: study.dir=...") for reason in dict.fromkeys(mistakes))
    if mistakes:
        return
    place = next(
        path for path in (Path(study.dir).absolute(), *Path(study.dir).absolute().parents) if path.exists()
    )
    free = shutil.disk_usage(place).free / _GIB
    if free < ctx.spec.limits.free_gib:
        yield error(
            f"{free:.1f} GiB are free here", f"free {ctx.spec.limits.free_gib:g} GiB, or lower limits.free_gib"
        )
    else:
        yield ok(f"{study.dir} can be written to, {free:.1f} GiB are free")


def storage_opens(ctx: Context) -> Iterator[Said]:
    """The study's database answers, is new enough, and can be written to."""
    url = ctx.spec.study.storage
    yield from _postgres(url) if is_shared(url) else _sqlite(url, "study.storage")


def study_is_the_same(ctx: Context) -> Iterator[Said]:
    """A study of this name was made with these settings, or there is none yet."""
    store = _store(ctx)
    if store is None:
        yield ok(f"{ctx.spec.study.name} will be made")
        return
    if damages := store.damages():
        yield error(
            f"of {ctx.spec.study.name} cannot be read: {'; '.join(told(damages))}",
            "use the version that wrote it, put a copy of the database back, or begin another study that learns "
            f"from the rest: study.name=... study.warm_start=[{ctx.spec.study.name}]",
        )
        return
    count = len(store.trials())
    try:
        require_known_settings(store, _settings(ctx, store))
    except StudyMismatch as mismatch:
        lines = [line.strip() for line in str(mismatch).splitlines()[1:-1]]
        yield error(
            f"{ctx.spec.study.name} was made with other settings: {plain('; '.join(lines) or str(mismatch), 900)}",
            "put these back, or begin another study: study.name=...",
        )
        return
    found = findings_of(store)
    for timing in found.failed if found else ():
        text = f"{plain(timing.name, 160)}: {plain(timing.failure, 160)}"
        yield warning(f"{text} when its all-reduces were timed; it is not proposed")
    yield ok(f"{ctx.spec.study.name} has {count} trials; the run goes on with it")


def _settings(ctx: Context, store: StudyStore) -> dict[str, str]:
    """What `run` would compare. Of a model that is prepared first the content is not known yet."""
    current = fingerprint(ctx.spec, ctx.facts)
    if not ctx.spec.model.prepare:
        return current
    stored = store.texts("fingerprint")
    unknown = {path: text for path, text in stored.items() if path.startswith(("model.content", "host.files."))}
    return {**current, **unknown}


def warm_starts_exist(ctx: Context) -> Iterator[Said]:
    """The studies that the search learns from."""
    for name in ctx.spec.study.warm_start:
        store = _store(ctx, name)
        if store is None:
            yield error(
                f"study.warm_start: there is no study {plain(name, 100)!r} in this storage", "correct the name"
            )
        elif lines := left_out(store.name, store.damages()):
            yield warning(lines[0], "the search learns from the rest; with a copy of the database, from all")
        else:
            yield ok(f"learns from {plain(name, 100)}")


def mlflow_answers(ctx: Context) -> Iterator[Said]:
    """MLflow's place can be used. A sweep goes on without it, and catches up."""
    uri = ctx.spec.tracking.uri
    if not uri:
        yield ok("off")
        return
    try:
        place = place_of(ctx.spec.tracking)
    except PlaceUnusable as mistake:
        yield warning(plain(str(mistake)), "correct tracking.uri")
        return
    if place.database is None:
        yield from _mlflow_server(uri)
        return
    if place.database.exists():
        try:
            check_database(place.database)
        except (PlaceUnusable, sqlite3.Error) as mistake:
            yield warning(f"{place.database}: {mistake}", "choose another file: tracking.uri=sqlite:///PATH")
            return
    reason = unwritable(place.database)
    yield (
        warning(reason, "choose another file: tracking.uri=sqlite:///PATH") if reason else ok(f"{place.database}")
    )


def _mlflow_server(uri: str) -> Iterator[Said]:
    shown, own = mask(uri), version("mlflow")
    try:
        look = look_at_mlflow(uri, os.environ)
    except ExchangeError as mistake:
        yield warning(
            f"{shown}: no MLflow server answers: {plain(mask(str(mistake)))}",
            "start it, or correct tracking.uri; the sweep goes on without it",
        )
        return
    there = plain(look.version, 40)
    if look.status in (401, 403):
        hint = "set MLFLOW_TRACKING_USERNAME and _PASSWORD; a server may also refuse its name: --allowed-hosts"
        if not os.environ.get("MLFLOW_TRACKING_TOKEN"):
            yield warning(f"{shown}: refused with status {look.status}", hint)
        else:
            yield ok(f"{shown}: version {there}; whether the token is taken was not tried")
    elif look.status != 200:
        yield warning(f"{shown}: answered with status {look.status}", "is it an MLflow server?")
    elif there.split(".")[:2] != own.split(".")[:2]:
        yield warning(f"{shown}: version {there}, here {own}", "use one version of MLflow on both sides")
    else:
        yield ok(f"{shown}: version {there}")


def _sqlite(url: str, name: str) -> Iterator[Said]:
    file = Path(url.removeprefix(_SQLITE)).absolute()
    if reason := unwritable(file) or unwritable(file.parent):
        yield error(f"{name}: {reason}", "choose another one: study.dir=...")
    elif not file.exists():
        yield ok(f"{file} will be made")
    else:
        try:
            tables = sqlite_tables(file)
        except sqlite3.Error as mistake:
            yield error(f"{file} is no database: {plain(str(mistake))}", "move it away, or choose another one")
            return
        if "experiments" in tables and "trials" not in tables:
            yield error(
                f"{file} is MLflow's; the study needs a database of its own", "study.storage=sqlite:///PATH"
            )
        else:
            yield ok(f"{file}")


def _postgres(url: str) -> Iterator[Said]:
    shown = masked(url)
    try:
        look = look_at_postgres(url)
    except (*STORAGE_ERRORS, ValueError) as mistake:
        fix = "check address, database, user and password (~/.pgpass, PGPASSWORD), pg_hba.conf"
        yield error(f"{shown}: {plain(reason_of(mistake))}", fix)
        return
    text = f"{shown}: PostgreSQL {look.server // 10000}.{look.server % 10000}, client {look.client // 10000}"
    if look.is_read_only:
        yield error(f"{text}: it takes no writes (a standby?)", "name the primary server")
    elif not look.has_studies and not look.may_create:
        yield error(f"{text}: this user may make no tables", "GRANT CREATE ON SCHEMA public TO that user")
    elif look.client // 10000 < look.server // 10000 - 3:
        yield warning(f"{text}: the client is much older", "update psycopg")
    else:
        yield ok(text)


def _store(ctx: Context, name: str = "") -> StudyStore | None:
    """The study, or another one beside it; None when there is none. Makes nothing. Raises ConfigError."""
    study = ctx.spec.study
    if is_shared(study.storage):
        if not look_at_postgres(study.storage).has_studies:
            return None
    else:
        file = Path(study.storage.removeprefix(_SQLITE))
        if not file.exists() or "studies" not in sqlite_tables(file):
            return None
    try:
        return StudyStore.of(study, name=name, create=False)
    except ConfigError as mistake:
        if any(line.startswith("study.name") for line in mistake.mistakes):
            return None
        raise


STORE_CHECKS: tuple[Check[Context], ...] = (
    Check(
        "folder",
        Place.STORES,
        "can study.dir be written to; free disk here",
        folders_are_writable,
        ("configuration",),
    ),
    Check(
        "storage",
        Place.STORES,
        "does the study's database answer, take the login and writes",
        storage_opens,
        ("configuration",),
    ),
    Check(
        "study",
        Place.STORES,
        "was a study of this name made with other settings",
        study_is_the_same,
        ("storage", "engine", "drafts"),
    ),
    Check(
        "warm_start",
        Place.STORES,
        "do the studies exist that the search learns from",
        warm_starts_exist,
        ("storage",),
    ),
    Check(
        "mlflow",
        Place.STORES,
        "does MLflow answer, take the login, and have the version of here",
        mlflow_answers,
        ("configuration",),
    ),
)
HERE_CHECKS: tuple[Check[Context], ...] = (
    Check("workloads", Place.HERE, "prompts: were they read, how many", workloads_are_read, ("configuration",)),
    Check(
        "remarks",
        Place.HERE,
        "what `run` would remark on: secrets on the command line, ...",
        nothing_is_shown,
        ("configuration",),
    ),
)
