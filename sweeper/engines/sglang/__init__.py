"""SGLang: its rules, what its server and its log say, its exports. Put together in engine.py."""

from sweeper.engines.sglang.engine import ENGINE, SGLang

__all__ = ["ENGINE", "SGLang"]
