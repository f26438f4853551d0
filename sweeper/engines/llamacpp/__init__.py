"""llama.cpp: its rules, what its server says, its exports. Put together in engine.py."""

from sweeper.engines.llamacpp.engine import ENGINE, LlamaCpp

__all__ = ["ENGINE", "LlamaCpp"]
