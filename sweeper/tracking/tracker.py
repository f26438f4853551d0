"""MLflow, behind one door: a view of the study that can be rebuilt at any time and never holds up the sweep.

Every finished trial is one run. A run is found by its tags, created only when there is none, replayed, and marked
last with the digest of what it shows; so a sync that dies anywhere is completed by the next one, and a trial that
has not changed costs nothing. A run that a user deleted stays deleted, as long as the study has that very trial.
"""

from __future__ import annotations

import itertools
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from launchers.clock import Clock
from sweeper.errors import ConfigError
from sweeper.records import TrialRecord, TrialState
from sweeper.spec import TrackingSpec
from sweeper.tracking.client import HTTP_TIMEOUT_S, Calls, OutOfTime, limit_http, load_mlflow, open_client, within
from sweeper.tracking.experiment import lookup
from sweeper.tracking.memory import DELETED, Memory
from sweeper.tracking.page import page_tags, view_fragment
from sweeper.tracking.place import (
    Place,
    mask,
    one_line,
    place_of,
    require_database,
    require_port,
    ui_address,
    ui_argv,
    ui_env,
)
from sweeper.tracking.runs import Writer
from sweeper.tracking.shelf import Shelf
from sweeper.tracking.view import RunView, owner_tags

if TYPE_CHECKING:
    from mlflow import MlflowClient

RETRY_AFTER_S = 30.0

GRACE_S = 1.0
"""How much longer than its deadline a call is waited for that is about to give up by itself."""

REFRESH_S = 0.25
"""After each launch runs whose trial has not changed are written for so long.

In a study of thousands each launch of the baseline changes every speedup. These follow one by one, and all that
time allows when the sweep has ended."""

LOAD_S = 0.4
"""After each launch what MLflow shows is learned for so long, until all is known: 10,000 runs take 15 s in all."""

MAX_LOOKS = 200
"""Of these runs so many are looked at after each launch: making a view takes a millisecond."""


class StudyView(Protocol):
    """What the view is drawn from."""

    @property
    def name(self) -> str:
        """The study's name; the experiment gets the same."""

    @property
    def identity(self) -> str:
        """What tells the study from another of its name: a word that it got when it was made, and keeps."""

    @property
    def objective(self) -> str:
        """The metric (a name in METRICS) that the study ranks on."""

    @property
    def facts(self) -> Mapping[str, str]:
        """What all trials have in common: engine version, model, host, workload, ..."""

    def trials(self) -> Sequence[TrialRecord]:
        """All trials so far; those that still run are not shown."""

    def artifact(self, trial_number: int, name: str) -> bytes:
        """The bytes of an artifact named in `TrialRecord.artifacts`. Raises KeyError when it is gone."""

    def verdict_text(self) -> str | None:
        """The verdict in words, once there is one."""


@dataclass(frozen=True)
class SyncReport:
    """How a sync went. `num_written`: runs brought up to date now; `num_behind`: finished trials not yet shown.

    `error` is one line, without credentials; empty when all went well or only time ran out.
    """

    num_written: int = 0
    num_behind: int = 0
    error: str = ""
    is_off: bool = False


class Tracker:
    """Keeps MLflow in step with a study. One per process: MLflow's settings are made in `os.environ`."""

    def __init__(self, spec: TrackingSpec, clock: Clock) -> None:
        self._spec = spec
        self._clock = clock
        self._client: MlflowClient | None = None
        self._memory = Memory()
        self._shelf: Shelf | None = None
        self._retry_at_s = float("-inf")
        self._error = ""

    def sync(self, study: StudyView, deadline_s: float | None = None) -> SyncReport:
        """Bring MLflow up to date with `study`. Never raises because of MLflow.

        Takes about `spec.sync_s` seconds at most (the first call also loads MLflow, some seconds more); what is
        left is done next time. After an error nothing is tried for 30 seconds, except when `deadline_s` is given:
        who grants time wants a try, also of what MLflow refused before.
        """
        if not self._spec.uri:
            return SyncReport(is_off=True)
        known = frozenset(self._memory.present)  # before the study is read: what it lacks now, it has lost
        shelf = self._shelved(study)
        self._memory.lost = set(known.difference(shelf.numbers))
        if deadline_s is not None:
            shelf.look_again(list(self._memory.refused))
            self._memory.refused.clear()
        elif self._clock.monotonic_s() < self._retry_at_s:
            return SyncReport(num_behind=self._behind(shelf), error=self._error)
        limit_s = self._spec.sync_s if deadline_s is None else deadline_s
        errors, memory = load_mlflow(), self._memory
        num_before = memory.num_written
        with warnings.catch_warnings(action="ignore"):  # MLflow's own affairs, and the live view would be torn
            error = self._bounded(limit_s, lambda: self._try(study, shelf, limit_s, deadline_s is None, errors))
        self._error = self._no_answer(limit_s) if error is None else error
        if error is None:
            self._start_anew(shelf)
        return SyncReport(memory.num_written - num_before, self._behind(shelf), self._error)

    def attach(self, study: StudyView, files: Mapping[str, bytes], deadline_s: float) -> str:
        """Show files of the whole study (by plain names) with the run that every study has, the baseline's.

        It takes `deadline_s` seconds at most, after a sync. What MLflow said against it, in one line without
        credentials, or "".
        """
        if self._client is None or not self._memory.is_loaded:
            return ""
        calls = Calls(self._client, self._clock, self._clock.monotonic_s() + deadline_s)
        writer, errors = Writer(calls, self._memory, study, None), load_mlflow()

        def attached() -> str:
            try:
                writer.attach(files)
            except OutOfTime:
                return self._no_answer(deadline_s)
            except errors as error:
                return f"{mask(self._spec.uri)}: {one_line(error)}"
            return ""

        said = self._bounded(deadline_s, attached)
        return self._no_answer(deadline_s) if said is None else said

    def _bounded(self, limit_s: float, work: Callable[[], str]) -> str | None:
        """What `work` returns; None when a server holds it up beyond its limit. A file does not."""
        if "://" not in self._spec.uri or self._spec.uri.startswith("sqlite"):
            return work()
        return within(limit_s + GRACE_S, work)

    def _no_answer(self, limit_s: float) -> str:
        return f"{mask(self._spec.uri)}: no answer within {limit_s:.0f} s"

    def view_url(self, base: str) -> str:
        """The address of the study's run list on the MLflow page `base`; the page itself before the first sync."""
        known = self._memory.experiment_id
        return f"{base.rstrip('/')}/{view_fragment(known) if known else ''}"

    def _try(
        self, study: StudyView, shelf: Shelf, limit_s: float, is_brief: bool, errors: tuple[type[Exception], ...]
    ) -> str:
        """Write what has changed, then what may have, of which `is_brief` writes a part. The error, or ""."""
        memory, error = self._memory, ""
        end_s = self._clock.monotonic_s() + limit_s
        try:
            place = place_of(self._spec)
            self._client = self._client or open_client(place)
            writer = Writer(Calls(self._client, self._clock, end_s), memory, study, place.artifact_root)
            writer.open()
            writer.give_up()
            error = writer.write(shelf.changed())
            writer.load(LOAD_S if is_brief else limit_s)
            others = shelf.unsure(memory.shown)
            error = error or writer.write(self._for_a_while(others) if is_brief else others)
            known = (study.objective, study.facts, study.verdict_text())
            writer.write_page(page_tags(*known, shelf.telling, memory.baseline_run))
        except OutOfTime:
            pass
        except errors as caught:
            self._start_anew(shelf)
            error = f"{mask(self._spec.uri)}: {one_line(caught)}"
        return error

    def _start_anew(self, shelf: Shelf) -> None:
        """What we knew may be wrong now (another database, a deleted experiment): look again next time."""
        known = self._memory
        self._memory = Memory(experiment_id=known.experiment_id, refused=known.refused, sent=known.sent)
        shelf.look_again()
        self._retry_at_s = self._clock.monotonic_s() + RETRY_AFTER_S

    def _for_a_while(self, views: Iterator[RunView]) -> Iterator[RunView]:
        """The views, until MAX_LOOKS were looked at or writing runs has taken REFRESH_S."""
        num_written, end_s = self._memory.num_written, float("inf")
        for view in itertools.islice(views, MAX_LOOKS):
            yield view
            if self._memory.num_written != num_written:
                now_s = self._clock.monotonic_s()
                num_written, end_s = self._memory.num_written, min(end_s, now_s + REFRESH_S)
                if now_s >= end_s:
                    return

    def _shelved(self, study: StudyView) -> Shelf:
        """The study's finished trials, as far as they are known."""
        if self._shelf is None:
            self._shelf = Shelf(owner_tags(study.name, study.identity), study.objective)
        self._shelf.put([trial for trial in study.trials() if trial.state is not TrialState.RUNNING])
        return self._shelf

    def _behind(self, shelf: Shelf) -> int:
        return shelf.behind(self._memory.shown, self._memory.refused, DELETED)


def become_ui(spec: TrackingSpec, study: str, host: str, port: int, identity: str = "") -> None:
    """Say where the page of `study` is, and become the MLflow server that shows it (does not return).

    When `spec` names a server, that one shows it and this returns. With the study's `identity` the page is right
    even where another study of that name is shown. Raises ConfigError for a port that is none, PlaceUnusable.
    """
    if not 1 <= port <= 65535:
        raise ConfigError([f"--port: {port} is no port; use 1 to 65535"])
    argv = ui_argv(spec, host, port)
    place = place_of(spec)
    if place.database:
        require_database(place.database)
        require_port(host, port)
    experiment_id = _experiment_id(place, study, identity)
    address = f"{ui_address(spec, host, port)}/{view_fragment(experiment_id) if experiment_id else ''}"
    sys.stdout.write(f"{address}\n")
    sys.stdout.flush()
    if argv:
        sys.stderr.write("It answers in some seconds; Ctrl-C ends it.\n")
        sys.stderr.flush()
        os.execve(argv[0], argv, {**os.environ, **ui_env(spec)})


def _experiment_id(place: Place, study: str, identity: str) -> str:
    """The number of the study's experiment; "" when MLflow does not answer or does not know it."""
    errors = load_mlflow()
    limit_http(HTTP_TIMEOUT_S)
    try:
        opened = open_client(place)
        _, experiment = lookup(lambda: opened, study, identity)
    except errors:
        return ""
    return experiment.experiment_id if experiment else ""
