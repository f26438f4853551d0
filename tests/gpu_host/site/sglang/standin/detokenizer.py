"""The detokenizer process: token ids from rank 0 become text for the parent."""

from __future__ import annotations

from . import settings, titles, tokens
from .launch import Link


def main(source: int, sink: int) -> None:
    """Pass everything on with its text, until either side is gone."""
    settings.end_in_time()
    titles.set_title("sglang::detokenizer")
    titles.die_with_parent()
    incoming, outgoing = Link.of(source), Link.of(sink)
    while True:
        try:
            message = incoming.receive()
        except EOFError:
            return
        if message is not None and not outgoing.send({**message, "text": tokens.decode(message["ids"])}):
            return
