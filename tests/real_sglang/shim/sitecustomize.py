"""Lets SGLang 0.5.23 serve on a plain CPU: Python imports this by itself when this folder is on PYTHONPATH.

Two facts are corrected as their modules are imported; everything else is what `sgl_kernel` beside this file
stands in for. Nothing here changes what SGLang logs, reports or refuses.
"""

from __future__ import annotations

import importlib.abc
import importlib.util
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType


def torchvision_is_absent(transformers_imports: ModuleType) -> None:
    """SGLang imports torchvision for image models; transformers must not take our placeholder for the real one."""
    transformers_imports.is_torchvision_available = lambda: False  # type: ignore[attr-defined]


def amx_attention_is_usable(runtime_context: ModuleType) -> None:
    """SGLang falls back from its CPU attention, the only one that can speculate, unless the CPU has AMX tiles.

    Ours needs none. The layers ask the CPU themselves, so their AMX kernels stay off.
    """
    runtime_context._PLATFORM_PROBES["has_amx"] = "is_cpu"


CORRECTIONS: dict[str, Callable[[ModuleType], None]] = {
    "transformers.utils.import_utils": torchvision_is_absent,
    "sglang.srt.runtime_context": amx_attention_is_usable,
}


class Correcting(importlib.abc.MetaPathFinder):
    """Finds the modules of CORRECTIONS where Python would, and corrects each after it was executed."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The module's own spec with a longer `exec_module`; None for every other module."""
        if fullname not in CORRECTIONS:
            return None
        spec = self._real_spec(fullname)
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            CORRECTIONS[fullname](module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec

    def _real_spec(self, fullname: str) -> ModuleSpec | None:
        sys.meta_path.remove(self)
        try:
            return importlib.util.find_spec(fullname)
        finally:
            sys.meta_path.insert(0, self)


sys.meta_path.insert(0, Correcting())
