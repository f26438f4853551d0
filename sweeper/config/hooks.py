"""Hooks whose secret was not kept: a study keeps a run's settings with `***` for a secret, as `resume` gives them.

A sweep goes on without such a hook, and says so: a notification never holds one up.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from launchers.masking import MASK

_LOST = re.compile(r"\*{3}|.*(?:\S|: |(?i:bearer|basic) )\*{3}.*", re.DOTALL)
"""A word whose secret was taken out; `*** done ***`, as in a subject, is none."""

_AGAIN = {
    "webhook": "its URL is a secret, which is not kept. Give it again: notify.webhook=URL; "
    "or for all starts by the name of a variable that holds it: notify.webhook_env=NAME",
    "command": "it held a secret, which is not kept. Give it again: notify.command=[...]; "
    "for all starts with the secret in a file or a variable that the command reads",
}


def take_out_lost(data: dict[str, object]) -> tuple[str, ...]:
    """Take hooks that lack their secret out of a configuration; a line for each that no other one replaces."""
    notify = data.get("notify")
    if not isinstance(notify, Mapping):
        return ()  # the schema complains of that
    lost = [name for name in _AGAIN if _is_lost(notify.get(name))]
    data["notify"] = {name: value for name, value in notify.items() if name not in lost}
    untold = [name for name in lost if name != "webhook" or not notify.get("webhook_env")]
    return tuple(f"notify.{name}: nobody is told by it as before: {_AGAIN[name]}" for name in untold)


def _is_lost(value: object) -> bool:
    if isinstance(value, str):
        return MASK in value
    words = value if isinstance(value, Sequence) else ()
    return any(isinstance(word, str) and _LOST.fullmatch(word) for word in words)
