"""When Python looks for garbage in cycles: not while thousands of records are read, or modules are loaded."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_MANY = 1000
"""What is made of so many trials at once is worth it."""


def stays(num_trials: int) -> None:
    """Something was made of so many trials, and stays: garbage is not looked for in it, or anything there is now.

    Of 10,000 trials that is a tenth of a second, or a whole one, after every other launch.
    """
    if num_trials >= _MANY:
        gc.freeze()


@contextmanager
def no_search_for_garbage() -> Iterator[None]:
    """While open nothing looks for garbage in cycles. Where hardly any arises all is gone through in vain.

    That is an eighth of the time that loading a command takes, and a third of that in which records are read.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
