"""A placeholder: SGLang imports torchvision for image models, which no test serves."""

from __future__ import annotations


class Placeholder:
    """Anything of torchvision's: it may be imported and written into annotations, and says so when it is used."""

    def __init__(self, *_: object, **__: object) -> None:
        raise NotImplementedError("torchvision is only a placeholder here: no image models")


def __getattr__(name: str) -> type[Placeholder]:
    if name.startswith("__"):
        raise AttributeError(name)
    return Placeholder
