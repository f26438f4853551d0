"""What a process knows of MLflow's side. Pure data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sweeper.tracking.points import Point

DELETED = "deleted"


@dataclass(frozen=True)
class Found:
    """Of one run: whether it is alive and whole, retired by us, the digest of what it shows, its tags.

    `of`: by these a run of a former trial of the same number is told (RunView.is_of_another).
    """

    run_id: str
    is_active: bool
    is_retired: bool
    is_whole: bool
    synced: str
    of: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Loading:
    """How far the search of all runs has come: the next page, and by trial what was found."""

    token: str | None = None
    found: dict[str, list[Found]] = field(default_factory=dict)


@dataclass
class Memory:
    """What this process knows of MLflow's side.

    `shown`, `refused`: trial number to the digest of what its run shows, of what MLflow would not take.
    `deleted`: trial number to the `of` of its runs that a user deleted.
    `baseline_run`: the id of the baseline's run, empty when there is none yet. `present`: the trials that runs
    which nobody deleted say they are of; `lost`: those of them that the study does not have any more.
    `sent`: files that arrived (run, what they are of, name), so that a slow connection gets on instead of starting
    again; `loading`: likewise for the search of all runs. `logged`: all values of a run that has very many.
    """

    experiment_id: str = ""
    is_loaded: bool = False
    page: str = ""
    shown: dict[int, str] = field(default_factory=dict)
    refused: dict[int, str] = field(default_factory=dict)
    deleted: dict[int, tuple[Mapping[str, str], ...]] = field(default_factory=dict)
    num_written: int = 0
    sent: set[tuple[str, str, str]] = field(default_factory=set)
    logged: dict[str, frozenset[Point]] = field(default_factory=dict)
    baseline_run: str = ""
    present: set[int] = field(default_factory=set)
    lost: set[int] = field(default_factory=set)
    loading: Loading = field(default_factory=Loading)

    def forget(self, number: int) -> None:
        """The study has no such trial any more, and no run says that it is of it."""
        self.present.discard(number)
        self.lost.discard(number)
        self.shown.pop(number, None)
        self.refused.pop(number, None)
        self.deleted.pop(number, None)


def shown_by(runs: Sequence[Found]) -> str:
    """The digest that the only run of a trial shows, or that it was deleted; "" when that needs a look."""
    alive = [run for run in runs if run.is_active]
    if not alive:
        return DELETED if deleted_by_user(runs) else ""
    return alive[0].synced if len(alive) == 1 and alive[0].is_whole else ""


def deleted_by_user(runs: Sequence[Found]) -> tuple[Mapping[str, str], ...]:
    """The `of` of those that are gone, and not because we took them away."""
    return tuple(run.of for run in runs if not run.is_active and not run.is_retired)
