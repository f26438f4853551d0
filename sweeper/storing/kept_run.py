"""What a study keeps of its last run on each host: the settings, to go on with, and how it ended."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from pydantic import AwareDatetime, ValidationError

from launchers.clock import Clock
from launchers.masking import MASK, masked_words
from sweeper.deciding.verdict_record import Verdict
from sweeper.errors import SpecsweepError
from sweeper.request_record import Record
from sweeper.spec import SweepSpec
from sweeper.storing.losses import STORAGE_ERRORS
from sweeper.storing.storage import StudyStore
from sweeper.text import plain

COMPLETE = "complete"
INTERRUPTED = "interrupted"
NIGHT_OVER = "night over"
STOPPED = "stopped"

_FACT = "run:"


class KeptRun(Record):
    """One start of `specsweep run`. `overrides`: as given, secrets as `***`; `folder`: where it was given.

    `ended`: complete, interrupted, night over or stopped (then `why` says what had to be mended); empty while it
    runs, or after it was killed.
    """

    host: str
    overrides: tuple[str, ...]
    config_dir: str = ""
    folder: str
    machine: str
    began_at: AwareDatetime
    trials_total: int
    ended: str = ""
    why: str = ""

    @classmethod
    def of(cls, spec: SweepSpec, overrides: Sequence[str], config_dir: Path | None, clock: Clock) -> KeptRun:
        """This process's run."""
        return cls(
            host=spec.host.name,
            overrides=masked_words(overrides),
            config_dir="" if config_dir is None else str(config_dir.absolute()),
            folder=str(Path.cwd()),
            machine=platform.node(),
            began_at=clock.now(),
            trials_total=spec.budget.trials,
        )

    @property
    def masked(self) -> tuple[str, ...]:
        """The overrides that held a secret, which is not kept."""
        return tuple(word for word in self.overrides if MASK in word)

    def keep(self, store: StudyStore) -> None:
        """Write it down, in the place of the host's last one."""
        store.set_fact(f"{_FACT}{self.host}", self.model_dump(mode="json"))


@contextmanager
def kept_run(store: StudyStore, run: KeptRun) -> Iterator[Callable[[str], None]]:
    """Write a run down while open; what it gives is told how the run ended. One that raises was stopped."""
    run.keep(store)

    def ended(how: str, why: str = "") -> None:
        run.model_copy(update={"ended": how, "why": why}).keep(store)

    try:
        yield ended
    except SpecsweepError as error:
        with suppress(*STORAGE_ERRORS):
            ended(STOPPED, plain(str(error)))
        raise


def how_it_ended(verdict: Verdict, launches_left: int) -> str:
    """The word for a run that ended in good order."""
    if verdict.cut_short:
        return NIGHT_OVER
    return INTERRUPTED if launches_left else COMPLETE


def kept_runs(store: StudyStore) -> tuple[KeptRun, ...]:
    """The last run on each host, the newest first; none in a study of an older specsweep, or an imported one."""
    found = []
    for name in store.fact_names(_FACT):
        with suppress(ValidationError):
            found.append(KeptRun.model_validate(store.fact(name)))
    return tuple(sorted(found, key=lambda run: run.began_at, reverse=True))
