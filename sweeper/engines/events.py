"""Server-sent events, as every engine here streams its answers. All of it is untrusted."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from sweeper.engines.base import StreamedResponse
from sweeper.text import plain


def events(response: StreamedResponse) -> Iterator[tuple[float, str]]:
    """The `data:` payloads of the stream. Blank lines and comments carry nothing."""
    for at_ms, line in response.lines:
        text = line.decode("utf-8").strip()
        if not text or text.startswith(":"):
            continue
        if not text.startswith("data:"):
            raise ValueError(f"not a server-sent event: {plain(text)!r}")
        yield at_ms, text.removeprefix("data:").strip()


def json_object(text: str) -> Mapping[str, Any]:
    """A JSON object. Raises ValueError for anything else, nesting too deep to be read included."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not JSON: {plain(text)!r}") from error
    if not isinstance(value, dict):
        raise ValueError(f"not a JSON object: {plain(text)!r}")
    return value
