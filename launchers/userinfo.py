"""Where user and password stand in the addresses of a text, also with signs that should have been %-encoded. Pure.

`SCHEME://USER:PASSWORD@HOST:PORT/PATH`: a password that holds an @ or a slash makes it ambiguous where the host
begins. In doubt more is taken for the password, but a port and a host that can be told as such are none of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_BEGIN = re.compile("://")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,40}\Z")
_ADDRESS = re.compile(r"[^\s'\"<>`]{1,1000}")
_HOST = r"(?:\[[0-9A-Fa-f:.%]{2,60}\]|[\w.~%-]{0,255})(?::\d{1,5})?"
_HOSTS = re.compile(rf"{_HOST}(?:,{_HOST}){{0,20}}")
_HOST_BEHIND = re.compile(rf"@(?={_HOST}(?![\w.~%@-]|:\S))")
_WITH_PORT = re.compile(r"(?:\[[^\]]*\]|[^:/@]*):\d{1,5}")
_OPTION = re.compile(r"[?&;][\w.-]{1,60}=")
_STORE = re.compile("(?i)postgres|mysql|maria|redis|mongo|amqp|mssql|oracle|cockroach|clickhouse|ldap|smtp|socks")
"""Schemes of which nobody writes an @ behind the host: that of a database is encoded, and there are no paths."""


def userinfos(text: str) -> Iterator[tuple[int, int]]:
    """Begin and end of what stands between `://` and `@`, for each address that has it."""
    if "@" not in text:
        return
    marks = [(_scheme(text, found.start()), found.start(), found.end()) for found in _BEGIN.finditer(text)]
    nexts = [*(at - len(scheme) for scheme, at, _ in marks[1:]), len(text)]
    for (scheme, _, begin), last in zip(marks, nexts, strict=False):
        found = _ADDRESS.match(text, begin, max(begin, last))
        if found is not None and "@" in found[0] and (end := _end_of_userinfo(scheme, found[0])):
            yield begin, begin + end


def _scheme(text: str, end: int) -> str:
    found = _SCHEME.search(text, max(0, end - 41), end)
    return found[0] if found else ""


def hide_userinfos(text: str, mask: str) -> str:
    """`text` with `mask` in the place of each."""
    shown, at = [], 0
    for begin, end in userinfos(text):
        shown += [text[at:begin], mask]
        at = end
    return "".join([*shown, text[at:]])


def _end_of_userinfo(scheme: str, rest: str) -> int:
    """Where the user and the password end in what follows `://`; 0 without any."""
    slash = rest.find("/") if "/" in rest else len(rest)
    near = [end for end, sign in enumerate(rest[:slash]) if sign == "@"]
    far = [found.start() for found in _HOST_BEHIND.finditer(rest, slash)]
    before_options = [end for end in far if not _OPTION.search(rest, slash, end)]
    is_store = _STORE.match(scheme) is not None
    if near:
        goes_on = before_options and (is_store or _goes_on(rest[: near[-1]], rest[near[-1] + 1 : slash]))
        return before_options[-1] if goes_on else near[-1]
    if ":" not in rest[:slash] or not far:
        return 0
    if _WITH_PORT.fullmatch(rest[:slash]):
        takes = before_options and (is_store or _is_word(rest[:slash], rest[before_options[-1] - 1]))
        return before_options[-1] if takes else 0
    return (before_options or far)[-1]


def _goes_on(userinfo: str, host: str) -> bool:
    """Whether what looks like a host, before the first slash, may still be a password with an @ in it."""
    if not _HOSTS.fullmatch(host):
        return True
    return ":" in userinfo and not (set(".:[") & set(host) or host == "localhost")


def _is_word(place: str, before: str) -> bool:
    """Whether `NAME:12345` is rather a user and a password of digits; `before`: what stands before the @."""
    name = place.partition(":")[0]
    return bool(name) and not set(".[") & set(name) and name != "localhost" and before != "/"
