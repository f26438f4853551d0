"""From `conf/` and the command line to a validated `SweepSpec`; every mistake in one message."""

from sweeper.config.compose import Loaded, load, load_place
from sweeper.config.overrides import GROUPS

__all__ = ["GROUPS", "Loaded", "load", "load_place"]
