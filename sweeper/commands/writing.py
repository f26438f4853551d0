"""What a person asked to be written somewhere, and where it cannot be."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sweeper.errors import ConfigError


@contextmanager
def writing(place: str, path: Path) -> Iterator[None]:
    """While open `path` is written, which `place` names: an option or a setting.

    Raises ConfigError where that cannot be done; what is written by then stays.
    """
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise ConfigError(
            [f"{place}: {path} cannot be written: {reason}; mend that, or name another place"]
        ) from None
