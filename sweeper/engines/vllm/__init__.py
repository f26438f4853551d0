"""vLLM: its rules, what its server and its log say, its exports. Put together in engine.py."""

from sweeper.engines.vllm.engine import ENGINE, Vllm

__all__ = ["ENGINE", "Vllm"]
