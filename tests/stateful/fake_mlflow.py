"""An MLflow server in memory, as far as the tracker asks it; it can be down, or lose its answers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from sweeper.tracking.view import TAG_TRIAL

if TYPE_CHECKING:
    from mlflow.entities import Metric, Param, RunTag

UP, DOWN, LOSING = "up", "down", "losing answers"


@dataclass
class FakeRun:
    """One run, with what a search shows of it."""

    run_id: str
    tags: dict[str, str]
    params: dict[str, str] = field(default_factory=dict)
    metrics: dict[str, float] = field(default_factory=dict)
    files: set[str] = field(default_factory=set)
    lifecycle_stage: str = "active"

    @property
    def info(self) -> SimpleNamespace:
        info = {"run_id": self.run_id, "lifecycle_stage": self.lifecycle_stage, "run_name": "a run"}
        return SimpleNamespace(**info, artifact_uri="remote:")

    @property
    def data(self) -> SimpleNamespace:
        return SimpleNamespace(tags=dict(self.tags), params=dict(self.params), metrics=dict(self.metrics))


class _Page(list[FakeRun]):
    token = ""


class FakeMlflow:
    """The client and the server in one. `step` is called before and after everything that is written."""

    def __init__(self, step: Callable[[], None]) -> None:
        self.behave = UP
        self.runs: list[FakeRun] = []
        self.experiment: SimpleNamespace | None = None
        self._step = step
        self._losses = 0

    @property
    def active(self) -> list[FakeRun]:
        return [run for run in self.runs if run.lifecycle_stage == "active"]

    @property
    def shown(self) -> list[FakeRun]:
        """Those that say which trial they are of."""
        return [run for run in self.active if TAG_TRIAL in run.tags]

    def get_experiment_by_name(self, name: str) -> SimpleNamespace | None:
        self._ask()
        return self.experiment if self.experiment and self.experiment.name == name else None

    def search_experiments(self, filter_string: str) -> list[SimpleNamespace]:
        self._ask()
        asked = dict(re.findall(r"tags\.`([^`]+)` = '([^']*)'", filter_string))
        assert asked, filter_string
        made = [self.experiment] if self.experiment else []
        return [one for one in made if asked.items() <= one.tags.items()]

    def create_experiment(self, name: str, artifact_location: str | None, tags: Mapping[str, str]) -> str:
        del artifact_location
        made = SimpleNamespace(experiment_id="1", name=name, tags=dict(tags), lifecycle_stage="active")
        self._write(lambda: setattr(self, "experiment", made))
        return "1"

    def set_experiment_tag(self, number: str, name: str, value: str) -> None:
        del number
        assert self.experiment is not None
        self._write(lambda: self.experiment.tags.update({name: value}))  # type: ignore[union-attr]

    def search_runs(self, where: Sequence[str], condition: str, view: int, **paging: object) -> _Page:
        del where, view, paging
        self._ask()
        wanted = dict(re.findall(r"tags\.`([^`]+)` = '([^']*)'", condition))
        return _Page(run for run in self.runs if wanted.items() <= run.tags.items())

    def create_run(self, number: str, start: int, tags: Mapping[str, str], name: str) -> FakeRun:
        del number, start, name
        made = FakeRun(f"r{len(self.runs):04}", dict(tags))
        self._write(lambda: self.runs.append(made))
        return made

    def delete_run(self, run_id: str) -> None:
        self._write(lambda: setattr(self._run(run_id), "lifecycle_stage", "deleted"))

    def delete_tag(self, run_id: str, name: str) -> None:
        self._write(lambda: self._run(run_id).tags.pop(name))

    def log_batch(
        self,
        run_id: str,
        metrics: Sequence[Metric] = (),
        params: Sequence[Param] = (),
        tags: Sequence[RunTag] = (),
        **how: object,
    ) -> None:
        del how

        def change() -> None:
            run = self._run(run_id)
            run.metrics |= {metric.key: metric.value for metric in metrics}
            run.params |= {param.key: param.value for param in params}
            run.tags |= {tag.key: tag.value for tag in tags}

        self._write(change)

    def log_artifact(self, run_id: str, path: str) -> None:
        self._write(lambda: self._run(run_id).files.add(path.rpartition("/")[2]))

    def set_terminated(self, run_id: str, status: str, end: int) -> None:
        del status, end
        self._write(lambda: self._run(run_id))

    def update_run(self, run_id: str, status: str, name: str) -> None:
        del status, name
        self._write(lambda: self._run(run_id))

    def _run(self, run_id: str) -> FakeRun:
        return next(run for run in self.runs if run.run_id == run_id)

    def _ask(self) -> None:
        if self.behave == DOWN:
            raise ConnectionError("nobody answers")

    def _write(self, change: Callable[[], Any]) -> None:
        self._ask()
        self._step()
        change()
        self._step()
        self._losses += 1
        if self.behave == LOSING and self._losses % 3 == 0:
            raise ConnectionError("the answer was lost")
