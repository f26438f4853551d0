"""Makes MLflow's runs equal to the views of a study, whatever an earlier sync left. Only for tracking.py."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from sweeper.tracking.client import Calls, OutOfTime, given
from sweeper.tracking.experiment import is_ours, open_experiment
from sweeper.tracking.files import in_files, version_of
from sweeper.tracking.lost import LOST, LOST_STATUS, lost_tags
from sweeper.tracking.memory import DELETED, Found, Loading, Memory, deleted_by_user, shown_by
from sweeper.tracking.page import TAG_PAGE
from sweeper.tracking.place import is_missing_below, one_line
from sweeper.tracking.same_trial import TAG_RETIRED, TAG_SYNCED, age, is_lost, is_usable, marks_of
from sweeper.tracking.view import (
    FAILURE_TAGS,
    TAG_FAILURE,
    TAG_STUDY,
    TAG_TRIAL,
    RunView,
    owner_tags,
)

if TYPE_CHECKING:
    from mlflow.entities import Run

TAG_FILES = "specsweep.files"

PAGE = 100
"""Runs that are searched at once: a sixth of a second in SQLite. Larger pages take no less for each run."""

BATCH = 800
"""Values that are logged at once."""

_NUMBER = re.compile("[0-9]{1,9}")
_ALL = 3  # ViewType.ALL: also what a user deleted
_REFUSALS = frozenset({"INVALID_PARAMETER_VALUE", "RESOURCE_ALREADY_EXISTS", "BAD_REQUEST"})


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
        alive = {trial for trial, found in loading.found.items() if any(run.is_active for run in found)}
        self.memory.present |= {int(trial) for trial in alive if _NUMBER.fullmatch(trial)}
        shown = {trial: shown_by(found) for trial, found in loading.found.items() if _NUMBER.fullmatch(trial)}
        gone = {trial: deleted_by_user(found) for trial, found in loading.found.items() if trial in shown}
        self.memory.deleted = {int(trial): tags for trial, tags in gone.items() if tags} | self.memory.deleted
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
            if self._is_settled(view) or self.memory.refused.get(number) == view.digest:
                continue
            try:
                self.memory.shown[number] = self._write_run(view)
                self.memory.present.add(number)
                self.memory.num_written += 1
            except (MlflowException, ImportError) as error:
                if isinstance(error, MlflowException) and error.error_code not in _REFUSALS:
                    raise
                self.memory.refused[number] = view.digest
                refusal = refusal or f"trial {number} was refused: {one_line(error)}"
        return refusal

    def _is_settled(self, view: RunView) -> bool:
        """Whether the run shows the view, or a user deleted it (this trial's, not that of a lost one)."""
        number = view.trial.number
        if self.memory.shown.get(number) != DELETED:
            return self.memory.shown.get(number) == view.digest
        return any(not view.is_of_another(tags) for tags in self.memory.deleted.get(number, ()))

    def give_up(self) -> None:
        """Mark the runs of trials that the study does not have any more: a database may lose the newest of all.

        They stay where they are, and with what they show; they only say no longer that they are of a trial.
        """
        for number in sorted(self.memory.lost):
            for run in self._search(f" AND tags.`{TAG_TRIAL}` = '{number}'"):
                if run.info.lifecycle_stage == "active":
                    self._mark_lost(run)
            self.memory.forget(number)

    def _mark_lost(self, run: Run) -> None:
        """All but the last step may be done again."""
        run_id, tags = run.info.run_id, run.data.tags
        was, name = tags.get(TAG_TRIAL, ""), run.info.run_name or ""
        self._tag(run_id, {**lost_tags(was), TAG_RETIRED: LOST})
        lost_name = name if name.startswith(LOST) else f"{LOST}: {name}"
        self.calls.client().update_run(run_id, LOST_STATUS, lost_name)
        self.calls.client().delete_tag(run_id, TAG_TRIAL)

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
            known = self.memory.deleted.get(view.trial.number, ())
            self.memory.deleted[view.trial.number] = (*known, marks_of(run))
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

        One of a former trial of this number, or of launches that the study has lost, stays and is marked as that.
        Two arise when "create run" reached a server that answered too late.
        """
        runs = self._search(f" AND tags.`{TAG_TRIAL}` = '{view.trial.number}'")
        active = [run for run in runs if run.info.lifecycle_stage == "active"]
        for run in [run for run in active if is_lost(run, view)]:
            self._mark_lost(run)
            active.remove(run)
            runs.remove(run)
        kept = min((run for run in active if is_usable(run, view)), key=age, default=None)
        for run in active:
            if run is not kept:
                self._tag(run.info.run_id, {TAG_RETIRED: "duplicate" if kept else "superseded"})
                self.calls.client().delete_run(run.info.run_id)
        gone = [run for run in runs if run not in active and not is_lost(run, view)]
        by_user = next((run for run in gone if TAG_RETIRED not in run.data.tags), None)
        return kept if active else by_user

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
        return Found(
            given(run.info.run_id),
            is_active,
            TAG_RETIRED in tags,
            is_whole,
            tags.get(TAG_SYNCED, ""),
            marks_of(run),
        )

    def _files_are_gone(self, run: Run) -> bool:
        """Whether somebody deleted the folder of a run's files; every complete run has some."""
        return is_missing_below(self.artifact_root, run.info.artifact_uri)
