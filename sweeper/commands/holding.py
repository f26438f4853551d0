"""Holds a sweep's host, and the study that lies in a file; says when this very sweep is at work already."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from launchers.base import Launcher
from launchers.errors import HostBusy
from launchers.shell import LocalShell
from sweeper.errors import AlreadyAtWork, ConfigError, SpecsweepError
from sweeper.spec import SweepSpec
from sweeper.stop_request import StopRequest
from sweeper.storing.addresses import is_shared
from sweeper.storing.losses import STORAGE_ERRORS
from sweeper.storing.storage import StudyStore


@contextmanager
def host_held(launcher: Launcher, spec: SweepSpec) -> Iterator[None]:
    """Own the host while open. Raises AlreadyAtWork if its owner works on this study, HostBusy for any other."""
    with ExitStack() as stack:
        try:
            stack.enter_context(launcher.hold())
        except HostBusy as busy:
            if _is_at_work(spec):
                raise AlreadyAtWork(f"study {spec.study.name} is at work already: {busy}") from busy
            raise
        yield


@contextmanager
def study_held(spec: SweepSpec) -> Iterator[None]:
    """Make the sweep's folder, and own a study that lies in a file: two processes would measure its trials twice.

    Raises HostBusy, ConfigError.
    """
    try:
        Path(spec.study.dir).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError([f"study.dir: {spec.study.dir!r} cannot be made: {error.strerror}"]) from error
    if is_shared(spec.study.storage):
        yield
        return
    with LocalShell(f"study {spec.study.name}").hold(f"{spec.study.dir}/{spec.study.name}.lock"):
        yield


def _is_at_work(spec: SweepSpec) -> bool:
    """Whether a process is known to work on this study on this host; one that has just begun is not yet."""
    try:
        store = StudyStore.of(spec.study) if is_shared(spec.study.storage) else None
        workers = StopRequest(spec.study, store, now=False).at_work()
    except (SpecsweepError, *STORAGE_ERRORS):
        return False
    return any(spec.host.name == (each.worker if each.pid else each.host) for each in workers)
