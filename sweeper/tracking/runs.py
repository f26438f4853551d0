"""Makes MLflow's runs equal to the views of a study, whatever an earlier sync left. Only for tracking.py."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from sweeper.tracking.client import Calls, OutOfTime, given
from sweeper.tracking.experiment import is_ours, open_experiment
from sweeper.tracking.files import in_files, version_of
from sweeper.tracking.page import TAG_PAGE
from sweeper.tracking.place import is_missing_below, one_line
from sweeper.tracking.points import Point
from sweeper.tracking.view import FAILURE_TAGS, TAG_FAILURE, TAG_STUDY, TAG_TRIAL, RunView, owner_tags

if TYPE_CHECKING:
    from mlflow.entities import Run

TAG_SYNCED = "specsweep.synced"
TAG_FILES = "specsweep.files"
TAG_RETIRED = "specsweep.retired"

DELETED = "deleted"
PAGE = 100
"""Runs that are searched at once: a sixth of a second in SQLite. Larger pages take no less for each run."""

BATCH = 800
"""Values that are logged at once."""

_ALL = 3  # ViewType.ALL: also what a user deleted
_REFUSALS = frozenset({"INVALID_PARAMETER_VALUE", "RESOURCE_ALREADY_EXISTS", "BAD_REQUEST"})


@dataclass(frozen=True)
class Found:
    """Of one run: whether it is alive and whole, retired by us, and the digest of what it shows."""

    run_id: str
    is_active: bool
    is_retired: bool
    is_whole: bool
    synced: str


@dataclass
class Loading:
    """How far the search of all runs has come: the next page, and by trial what was found."""

    token: str | None = None
    found: dict[str, list[Found]] = field(default_factory=dict)


@dataclass
class Memory:
    """What this process knows of MLflow's side.

    `shown`, `refused`: trial number to the digest of what its run shows, of what MLflow would not take.
    `baseline_run`: the id of the baseline's run, empty when there is none yet.
    `sent`: files that arrived (run, what they are of, name), so that a slow connection gets on instead of starting
    again; `loading`: likewise for the search of all runs. `logged`: all values of a run that has very many.
    """

    experiment_id: str = ""
    is_loaded: bool = False
    page: str = ""
    shown: dict[int, str] = field(default_factory=dict)
    refused: dict[int, str] = field(default_factory=dict)
    num_written: int = 0
    sent: set[tuple[str, str, str]] = field(default_factory=set)
    logged: dict[str, frozenset[Point]] = field(default_factory=dict)
    baseline_run: str = ""
    loading: Loading = field(default_factory=Loading)


class Source(Protocol):
    """What a writer needs of a study: who it is, and its trials' artifacts."""

    @property
    def name(self) -> str:
        """The study's name."""

    @property
    def identity(self) -> str:
        """What tells the study from another of its name."""

    def artifact(self, trial_number: int, name: str) -> bytes:
        """The bytes of an artifact. Raises KeyError when it is gone."""


@dataclass
class Writer:
    """One sync of one study. Its methods raise OutOfTime and whatever MLflow raises; all may be called again.

    `artifact_root`: where a new experiment keeps its files; None leaves that to the server.
    """

    calls: Calls
    memory: Memory
    study: Source
    artifact_root: str | None

    def open(self) -> None:
        """Find or make the experiment, until `load` has ended. Raises PlaceUnusable when a user deleted it."""
        if self.memory.is_loaded:
            return
        number, tags = open_experiment(self.calls, self.study.name, self.study.identity, self.artifact_root)
        self.memory.experiment_id = number
        self.memory.page = tags.get(TAG_PAGE, "")

    def load(self, limit_s: float) -> None:
        """Learn from one search what the experiment's runs show. Once per process.

        After `limit_s` seconds it raises OutOfTime, and goes on when it is called again: to find thousands of
        runs takes long, and a launch is waiting.
        """
        if self.memory.is_loaded:
            return
        loading, clock = self.memory.loading, self.calls.clock
        end_s = clock.monotonic_s() + limit_s
        for runs, token in self._pages("", loading.token):
            for run in runs:
                loading.found.setdefault(run.data.tags.get(TAG_TRIAL, ""), []).append(self._seen(run))
            loading.token = token
            if token and clock.monotonic_s() >= end_s:
                raise OutOfTime
        shown = {trial: _shown(found) for trial, found in loading.found.items() if trial.isdecimal()}
        bases = (run.run_id for run in loading.found.get("0", ()) if run.is_active)
        self.memory.baseline_run = self.memory.baseline_run or next(bases, "")
        written = self.memory.shown  # meanwhile, and later than what was found
        self.memory.shown = {int(trial): what for trial, what in shown.items() if what} | written
        self.memory.loading = Loading()
        self.memory.is_loaded = True

    def write(self, views: Iterable[RunView]) -> str:
        """Bring every stale run up to date; what MLflow refused first, in one line, or "".

        A refusal is remembered and does not hold up the other trials.
        """
        from mlflow.exceptions import MlflowException

        refusal = ""
        for view in views:
            number = view.trial.number
            if (
                self.memory.shown.get(number) in (view.digest, DELETED)
                or self.memory.refused.get(number) == view.digest
            ):
                continue
            try:
                self.memory.shown[number] = self._write_run(view)
                self.memory.num_written += 1
            except (MlflowException, ImportError) as error:
                if isinstance(error, MlflowException) and error.error_code not in _REFUSALS:
                    raise
                self.memory.refused[number] = view.digest
                refusal = refusal or f"trial {number} was refused: {one_line(error)}"
        return refusal

    def write_page(self, tags: Mapping[str, str]) -> None:
        """Describe the experiment, when that differs from what was last written there."""
        if self.memory.page != tags[TAG_PAGE]:
            for name, value in tags.items():
                self.calls.client().set_experiment_tag(self.memory.experiment_id, name, value)
            self.memory.page = tags[TAG_PAGE]

    def attach(self, files: Mapping[str, bytes]) -> None:
        """Put `files` beside those of the baseline's run, in the place of older ones; nothing without that run."""
        with tempfile.TemporaryDirectory(prefix="specsweep-") as folder:
            for name, content in files.items() if self.memory.baseline_run else ():
                path = Path(folder, name)
                path.write_bytes(content)
                self.calls.client().log_artifact(self.memory.baseline_run, str(path))

    def _search(self, condition: str) -> list[Run]:
        """The study's runs that meet `condition`, also those that a user deleted."""
        return [run for runs, _ in self._pages(condition) for run in runs]

    def _pages(self, condition: str, token: str | None = None) -> Iterator[tuple[list[Run], str | None]]:
        """The same page by page, from that of `token` on; with each the token of the next one, if there is one."""
        where, ours = [self.memory.experiment_id], f"tags.`{TAG_STUDY}` = '{self.study.name}'{condition}"
        while True:
            page = self.calls.client().search_runs(where, ours, _ALL, max_results=PAGE, page_token=token)
            token = page.token or None
            yield [run for run in page if is_ours(run.data.tags, self.study.identity)], token
            if token is None:
                return

    def _write_run(self, view: RunView) -> str:
        """What the run shows in the end: the view's digest, or that a user deleted it."""
        run = self._find(view)
        if run is None:
            owner = owner_tags(self.study.name, self.study.identity)
            tags = {**owner, TAG_TRIAL: str(view.trial.number)}
            run = self.calls.client().create_run(self.memory.experiment_id, view.start_ms, tags, view.name)
        elif run.info.lifecycle_stage != "active":
            return DELETED
        run_id = given(run.info.run_id)
        if view.trial.is_baseline:
            self.memory.baseline_run = run_id
        for name in FAILURE_TAGS if TAG_FAILURE in run.data.tags else ():
            if name in run.data.tags and name not in view.tags:
                self.calls.client().delete_tag(run_id, name)
        self._log(run_id, view)
        is_gone = self._files_are_gone(run)
        if is_gone or run.data.tags.get(TAG_FILES) != view.files_digest:
            self._upload(run_id, view, anew=is_gone)
        self.calls.client().set_terminated(run_id, view.status, view.end_ms)
        self._tag(run_id, {TAG_FILES: view.files_digest, TAG_SYNCED: view.digest})
        return view.digest

    def _find(self, view: RunView) -> Run | None:
        """The trial's one run, if it has one. All others of the trial, and one that cannot become the view, go.

        Two arise when "create run" reached a server that answered too late.
        """
        runs = self._search(f" AND tags.`{TAG_TRIAL}` = '{view.trial.number}'")
        active = [run for run in runs if run.info.lifecycle_stage == "active"]
        kept = min((run for run in active if _is_usable(run, view)), key=_age, default=None)
        for run in active:
            if run is not kept:
                self._tag(run.info.run_id, {TAG_RETIRED: "duplicate" if kept else "superseded"})
                self.calls.client().delete_run(run.info.run_id)
        deleted_by_user = [run for run in runs if run not in active and TAG_RETIRED not in run.data.tags]
        return kept if active or not deleted_by_user else deleted_by_user[0]

    def _log(self, run_id: str, view: RunView) -> None:
        """In batches: MLflow takes 1,000 metrics, 100 parameters and 100 tags at once, 1,000 things in all.

        The values of a baseline that was launched a thousand times are not all sent again after each launch.
        """
        from mlflow.entities import Metric, Param, RunTag

        logged = self.memory.logged.get(run_id, frozenset())
        metrics = [Metric(p.name, p.value, p.timestamp_ms, p.step) for p in view.points if p not in logged]
        params = [Param(name, value) for name, value in view.params.items()]
        tags = [RunTag(name, value) for name, value in view.tags.items()]
        while metrics or params or tags:
            self.calls.client().log_batch(run_id, metrics[:BATCH], params[:90], tags[:90], synchronous=True)
            metrics, params, tags = metrics[BATCH:], params[90:], tags[90:]
        if len(view.points) > BATCH:
            self.memory.logged[run_id] = frozenset(view.points)

    def _tag(self, run_id: str, tags: Mapping[str, str]) -> None:
        from mlflow.entities import RunTag

        self.calls.client().log_batch(run_id, tags=[RunTag(k, v) for k, v in tags.items()], synchronous=True)

    def _upload(self, run_id: str, view: RunView, *, anew: bool) -> None:
        trial, sent = in_files(view.trial), self.memory.sent
        marks = {name: (run_id, version, name) for name in trial.artifacts if (version := version_of(trial, name))}
        unchanged = frozenset() if anew else frozenset(name for name, mark in marks.items() if mark in sent)
        files = view.files(lambda name: self.study.artifact(trial.number, name), unchanged)
        with tempfile.TemporaryDirectory(prefix="specsweep-") as folder:
            for name, content in files.items():
                mark = marks.get(name, (run_id, view.files_digest, name))
                if mark in sent and not anew:
                    continue
                path = Path(folder, name)
                path.write_bytes(content)
                self.calls.client().log_artifact(run_id, str(path))
                sent.add(mark)

    def _seen(self, run: Run) -> Found:
        tags = run.data.tags
        is_active = run.info.lifecycle_stage == "active"
        is_whole = is_active and TAG_RETIRED not in tags and not self._files_are_gone(run)
        return Found(given(run.info.run_id), is_active, TAG_RETIRED in tags, is_whole, tags.get(TAG_SYNCED, ""))

    def _files_are_gone(self, run: Run) -> bool:
        """Whether somebody deleted the folder of a run's files; every complete run has some."""
        return is_missing_below(self.artifact_root, run.info.artifact_uri)


def _shown(runs: Sequence[Found]) -> str:
    """The digest that the only run of a trial shows, or that it was deleted; "" when that needs a look."""
    alive = [run for run in runs if run.is_active]
    if not alive:
        return DELETED if any(not run.is_retired for run in runs) else ""
    return alive[0].synced if len(alive) == 1 and alive[0].is_whole else ""


def _is_usable(run: Run, view: RunView) -> bool:
    return TAG_RETIRED not in run.data.tags and not view.contradicts(run.data.params, run.data.metrics)


def _age(run: Run) -> tuple[bool, str]:
    """Sort key: the run that was completed first, as far as can be told (all start when the trial did)."""
    return (TAG_SYNCED not in run.data.tags, run.info.run_id)
