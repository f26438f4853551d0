"""What a trial looks like in MLflow: its run's name, tags and parameters. Pure data and functions."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from sweeper.naming import difference_text
from sweeper.records import LaunchRecord, Purpose, TrialRecord, TrialState
from sweeper.secrets import Secrets, secrets_of
from sweeper.spec import ServerConfig, digest
from sweeper.tracking.files import TABLE_TAG, ArtifactReader, has_table, in_files, run_files
from sweeper.tracking.notes import color, note
from sweeper.tracking.points import Point, foreign_metrics, milliseconds, run_points

LAYOUT = 3
"""Part of every digest: raise it when this file changes what a run holds, and old runs are brought up to date."""

TAG_STUDY = "specsweep.study"
TAG_STUDY_ID = "specsweep.study_id"
TAG_TRIAL = "specsweep.trial"
TAG_LOST = "specsweep.lost_trial"
TAG_STATE = "specsweep.state"
TAG_LAUNCHES = "specsweep.launches"
TAG_PURPOSE = "specsweep.purpose"
TAG_KEY = "specsweep.key"
TAG_FAILURE = "specsweep.failure"
TAG_WHY = "specsweep.why"
TAG_ESTIMATED = "specsweep.estimated"
TAG_DOUBTS = "specsweep.doubts"
TAG_LOSSY = "specsweep.lossy"
TAG_CHOSEN = "specsweep.chosen_because"
TAG_NOTE = "mlflow.note.content"
TAG_COLOR = "mlflow.runColor"
FINISHED = "FINISHED"
FAILURE_TAGS = (TAG_FAILURE, TAG_WHY, TAG_NOTE)

MAX_VALUE_LENGTH = 500
MAX_NAME_LENGTH = 120
MAX_TAG_LENGTH = 4000
MAX_MARKS = 100
"""Of a trial's newest launches, as far as a tag holds them. What a standby has not received is the newest."""


@dataclass(frozen=True)
class RunView:
    """Everything a run shows, apart from the artifacts' bytes.

    `digest` is equal for equal content; `files_digest` likewise, for the run's files alone. Without a
    launch there are no times: `start_ms` and `end_ms` are None.
    """

    trial: TrialRecord
    name: str
    start_ms: int | None
    end_ms: int | None
    status: str
    tags: Mapping[str, str]
    params: Mapping[str, str]
    points: tuple[Point, ...]
    digest: str
    files_digest: str

    def files(self, read: ArtifactReader, unchanged: Collection[str] = ()) -> dict[str, bytes]:
        """The run's files by name, but those of `unchanged` artifacts; `read` gives one or raises KeyError."""
        return run_files(self.trial, read, unchanged)

    def is_of_another(self, tags: Mapping[str, str]) -> bool:
        """Whether a run of these tags shows another configuration, or launches that the trial does not have."""
        marks = set(tags.get(TAG_LAUNCHES, "").split())
        return tags.get(TAG_KEY, self.trial.key) != self.trial.key or not marks <= set(launch_marks(self.trial))

    def contradicts(self, params: Mapping[str, str], metrics: Mapping[str, float]) -> bool:
        """Whether a run that holds these can never become this one: MLflow forgets no parameter and no metric.

        What a user added under other names is no contradiction.
        """
        strange = foreign_metrics(metrics, self.points)
        return bool(strange) or any(self.params.get(name, value) != value for name, value in params.items())


def owner_tags(study: str, identity: str) -> dict[str, str]:
    """Whose a run is: two studies of one name differ in their identity."""
    return {TAG_STUDY: study, TAG_STUDY_ID: identity}


def run_view(
    owner: Mapping[str, str], trial: TrialRecord, baseline: TrialRecord | None, objective: str, files: str = ""
) -> RunView:
    """The run of one finished trial; its speedup is that of `objective` over `baseline`. `owner`: `owner_tags`.

    `files`: the `files_digest` of an earlier view of this very record, if there was one: it takes longest.
    """
    launches = trial.launches
    secrets = secrets_of([trial])
    tags = {
        **run_tags(owner, trial),
        TAG_COLOR: color(trial, baseline, objective),
        **({} if trial.failure else {TAG_NOTE: cut(secrets.hide(note(trial, baseline, objective)), 5000)}),
    }
    params = run_params(_as_asked(trial), secrets)
    points = run_points(trial, baseline, objective)
    start, end = (launches[0].started_at, launches[-1].ended_at) if launches else (None, None)
    files_digest = files or digest([LAYOUT, in_files(trial).model_dump(mode="json")])[:16]
    content = [LAYOUT, files_digest, tags, params, [vars(point) for point in points]]
    return RunView(
        trial=trial,
        name=run_name(trial, baseline),
        start_ms=milliseconds(start) if start else None,
        end_ms=milliseconds(end) if end else None,
        status=FINISHED if trial.state is TrialState.COMPLETE else "FAILED",
        tags=tags,
        params=params,
        points=points,
        digest=digest(content)[:16],
        files_digest=files_digest,
    )


def run_name(trial: TrialRecord, baseline: TrialRecord | None) -> str:
    """`trial 7 · ngram-simple n3 m4`: what differs from the baseline."""
    if trial.is_baseline:
        return "trial 0 · baseline"
    base = baseline.canonical if baseline else ServerConfig()
    return cut(f"trial {trial.number} · {difference_text(trial.canonical, base)}", MAX_NAME_LENGTH)


def run_tags(owner: Mapping[str, str], trial: TrialRecord) -> dict[str, str]:
    """Who the run is, how it ended, what is to be known of its numbers and, if it failed, why.

    The evidence of a failure is in the run's description.
    """
    secrets = secrets_of([trial])
    purposes: Sequence[Purpose] = list(dict.fromkeys(launch.purpose for launch in trial.launches))
    tags = {
        **owner,
        TAG_TRIAL: str(trial.number),
        TAG_STATE: trial.state.value,
        TAG_PURPOSE: ", ".join(purpose.value for purpose in purposes),
        TAG_KEY: trial.key,
        TAG_LAUNCHES: " ".join(launch_marks(trial)[-MAX_MARKS:]),
        TAG_ESTIMATED: _joined(launch.estimated for launch in trial.measured),
        TAG_DOUBTS: _joined(text for launch in trial.measured for text in _doubts(launch)),
        TAG_LOSSY: secrets.hide(_joined(text for launch in trial.launches for text in launch.lossy)),
        TAG_CHOSEN: trial.forecast.reason if trial.forecast else "",
        "mlflow.source.name": "specsweep",
        "mlflow.loggedArtifacts": TABLE_TAG if has_table(trial) else "",
    }
    if failure := trial.failure:
        evidence = "\n".join(cut(secrets.hide(line), MAX_VALUE_LENGTH) for line in failure.evidence)
        tags[TAG_FAILURE] = failure.kind.value
        tags[TAG_WHY] = cut(secrets.hide(failure.message), MAX_VALUE_LENGTH)
        tags[TAG_NOTE] = cut(f"**{failure.kind.value}**: {tags[TAG_WHY]}\n\n{_code_block(evidence)}", 5000)
    return {name: value for name, value in tags.items() if value}


def launch_marks(trial: TrialRecord) -> list[str]:
    """A word for each launch, by which it is known: another one under its number has another."""
    return [digest([n.launch_number, n.host, n.started_at.isoformat()])[:8] for n in trial.launches]


def _doubts(launch: LaunchRecord) -> Iterator[str]:
    """Why to look twice at a launch; a further workload's doubts under its name."""
    yield from launch.doubts
    for workload, result in launch.others.items():
        yield from (f"{workload}: {text}" for text in result.doubts)


def _joined(texts: Iterable[str]) -> str:
    """The distinct texts, one per line, as far as a tag holds them."""
    return cut("\n".join(dict.fromkeys(text for text in texts if text)), MAX_TAG_LENGTH)


def _code_block(text: str) -> str:
    return "".join(f"    {line}\n" for line in text.splitlines())


def _as_asked(trial: TrialRecord) -> ServerConfig:
    """The canonical configuration, with the flags that were asked to be off: a chart needs a value in each run."""
    off = {name: False for name, value in trial.requested.flags.items() if value is False}
    return ServerConfig(flags={**off, **trial.canonical.flags}, env=trial.canonical.env)


def run_params(config: ServerConfig, hidden: Secrets) -> dict[str, str]:
    """The configuration under names MLflow accepts: flags under their own, environment variables as `env.NAME`.

    Values longer than 500 characters are cut, and end with an ellipsis (MLflow would cut at 6,000, silently).
    """
    named = [*sorted(config.flags.items()), *((f"env.{k}", v) for k, v in sorted(config.env.items()))]
    params: dict[str, str] = {}
    for name, value in named:
        text = str(value).lower() if isinstance(value, bool) else str(value)
        legal = legal_name(name)
        if legal in params:
            legal = f"{legal}_{digest(name)[:6]}"
        params[legal] = cut(hidden.hide(text), MAX_VALUE_LENGTH)
    return params


@lru_cache(maxsize=4096)  # the same few names in thousands of trials
def legal_name(name: str) -> str:
    """`name` with what MLflow refuses in names replaced by `_`, at most 200 characters."""
    return re.sub(r"[^A-Za-z0-9_.-]", "_", name).lstrip(".")[:200] or "_"


def cut(text: str, length: int) -> str:
    """`text`, at most `length` characters long; an ellipsis shows that something is missing."""
    return text if len(text) <= length else f"{text[: length - 1]}…"
