"""From `conf/` and the command line to a validated `SweepSpec`; every mistake in one message."""

from sweeper.config.compose import Loaded, load, load_place

__all__ = ["Loaded", "load", "load_place"]
