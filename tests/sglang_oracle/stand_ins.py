"""What lets a real SGLang parse and resolve arguments on a machine without a GPU. Nothing of SGLang is replaced.

Three things are played, and only these:
- packages that SGLang imports on the way to its argument handling and that are not installed (kernels, image and
  notebook libraries) become empty modules: `Missing`;
- the GPU: `pretend_gpus` makes torch.cuda answer as a host with GPUs of one kind would;
- `nvidia-smi`, which older versions ask for the memory of a GPU.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import os
import sys
import types
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

MAY_BE_MISSING = frozenset(
    [
        "IPython",
        "compressed_tensors",
        "cuda",
        "cutlass",
        "deep_gemm",
        "dill",
        "flash_attn",
        "flashinfer",
        "gguf",
        "grpc",
        "interegular",
        "kernels",
        "llguidance",
        "outlines",
        "pynvml",
        "quack",
        "sentencepiece",
        "sgl_kernel",
        "soundfile",
        "tilelang",
        "timm",
        "torchao",
        "torchaudio",
        "torchcodec",
        "torchvision",
        "tvm_ffi",
        "xgrammar",
    ]
)

CAPABILITIES = {"sm80": (8, 0), "sm90": (9, 0), "sm100": (10, 0), "sm120": (12, 0)}
GPU_BYTES = 96 * 2**30
NUM_GPUS = 8


class Anything:
    """Whatever is asked of a missing package: callable, subclassable, usable as a type, empty when iterated."""

    def __init__(self, *_: object, **__: object) -> None:
        pass

    def __call__(self, *args: object, **named: object) -> object:
        """A decorator gives back what it decorates."""
        return args[0] if len(args) == 1 and callable(args[0]) and not named else Anything()

    def __getattr__(self, name: str) -> object:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return Anything()

    def __getitem__(self, _: object) -> object:
        return Anything()

    def __or__(self, _: object) -> object:
        return Anything()

    __ror__ = __or__

    def __iter__(self) -> Iterator[object]:
        return iter(())

    def __mro_entries__(self, _: object) -> tuple[type, ...]:
        return (object,)

    @classmethod
    def __get_pydantic_core_schema__(cls, *_: object) -> object:
        schema: Any = importlib.import_module("pydantic_core.core_schema")
        return schema.any_schema()


class MissingModule(types.ModuleType):
    """An empty module in which every name is found."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__path__ = []

    def __getattr__(self, name: str) -> object:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return Anything()


class Missing(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds what nothing else found, if it is one of MAY_BE_MISSING; `used` is the list of those."""

    def __init__(self) -> None:
        self.used: set[str] = set()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        root = fullname.partition(".")[0]
        if root not in MAY_BE_MISSING:
            return None
        self.used.add(root)
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return MissingModule(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        pass


def dummy_attribute(dummy: type, name: str) -> object:
    """transformers' classes that need torchvision: SGLang registers processors with them and uses none here."""
    return type.__getattribute__(dummy, name) if name.startswith("_") else Anything()


def pretend_nvidia_smi(folder: Path) -> None:
    """A nvidia-smi that knows one thing, the memory of each GPU in MiB; SGLang 0.5.8 and 0.5.10 ask it."""
    program = folder / "nvidia-smi"
    program.write_text("#!/bin/sh\n" + f"echo {GPU_BYTES // 2**20}\n" * NUM_GPUS)
    program.chmod(0o755)
    os.environ["PATH"] = f"{folder}:{os.environ['PATH']}"


def pretend_gpus(kind: str) -> Missing:
    """Play a host with eight GPUs of `kind` (sm80, sm90, sm100, sm120). To be called before SGLang is imported."""
    torch: Any = importlib.import_module("torch")
    transformers: Any = importlib.import_module("transformers")
    for name in ("AutoConfig", "AutoProcessor", "AutoTokenizer", "AutoModelForCausalLM"):
        getattr(transformers, name)  # loaded before anything is played: it looks for optional packages itself
    lazy: Any = importlib.import_module("transformers.utils.import_utils")
    lazy.DummyObject.__getattribute__ = dummy_attribute
    missing = Missing()
    sys.meta_path.append(missing)
    properties = types.SimpleNamespace(
        name=f"pretended {kind}",
        major=CAPABILITIES[kind][0],
        minor=CAPABILITIES[kind][1],
        total_memory=GPU_BYTES,
        multi_processor_count=132,
    )
    register_fake = torch.library.register_fake
    torch.library.register_fake = lambda name, *more, **named: (  # shapes of kernels that are not there
        (lambda function: function) if "sgl_kernel" in str(name) else register_fake(name, *more, **named)
    )
    torch.version.cuda = "13.0"
    torch.cuda.is_available = lambda: True
    torch.cuda.is_initialized = lambda: True
    torch.cuda.device_count = lambda: NUM_GPUS
    torch.cuda.current_device = lambda: 0
    torch.cuda.get_device_capability = lambda *_: CAPABILITIES[kind]
    torch.cuda.get_device_name = lambda *_: properties.name
    torch.cuda.get_device_properties = lambda *_: properties
    torch.cuda.mem_get_info = lambda *_: (GPU_BYTES, GPU_BYTES)
    torch.cuda.is_bf16_supported = lambda *_, **__: True
    torch.cuda.set_device = lambda *_: None
    return missing
