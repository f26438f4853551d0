"""Simulated speculative-decoding servers: `surface(seed).evaluate(config)` is one restart and its benchmark.

Not the sampler's own formulas: drafts are accepted token by token, and a step's time has the kinks of a machine.
"""

from tests.bench.search.simulator.surface import Outcome, Surface, surface

__all__ = ["Outcome", "Surface", "surface"]
