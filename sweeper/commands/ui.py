"""`specsweep ui`."""

from __future__ import annotations

import argparse

from sweeper import config, tracking
from sweeper.errors import ConfigError, ExitCode, StorageUnusable
from sweeper.spec import StudyPlace
from sweeper.storing.storage import StudyStore


def ui(arguments: argparse.Namespace) -> ExitCode:
    """Become MLflow's web server on the sweep's database (does not return), or say where it already runs."""
    place = config.load_place(arguments.overrides, arguments.config_dir)
    tracking.become_ui(place.tracking, place.study.name, arguments.host, arguments.port, _identity(place))
    return ExitCode.OK


def _identity(place: StudyPlace) -> str:
    """The study's identity, by which MLflow tells it from a namesake; empty when there is no study (yet)."""
    try:
        store = StudyStore.of(place.study)
    except (ConfigError, StorageUnusable):
        return ""
    return str(store.fact("identity") or "")
