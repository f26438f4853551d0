"""From `conf/` and the command line to a validated `SweepSpec`; every mistake in one message."""

from sweeper.config.compose import Loaded, load

__all__ = ["Loaded", "load"]
