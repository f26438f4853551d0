"""What a study keeps about itself as a whole: who it is, how it is measured and how it was searched."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib.metadata import version

from pydantic import ValidationError

from sweeper.deciding.verdict_record import Verdict
from sweeper.fingerprint import Fingerprint, of_all_hosts, require_same, with_new_facts
from sweeper.storing.storage import StudyStore


def require_same_settings(store: StudyStore, current: Fingerprint) -> None:
    """Keep the fingerprint in a new study; raises StudyMismatch when an old one has another.

    What the hosts of a shared study may differ in is kept for each of them.
    """

    def compare() -> None:
        for name, now in _parts(store, current).items():
            stored = store.fact(name)
            if stored is not None:
                require_same(store.name, stored, now)
            store.set_fact(name, with_new_facts(stored or now, now))

    store.database.exclusively(compare)


def require_known_settings(store: StudyStore, current: Fingerprint) -> None:
    """The same, but nothing is kept. Raises StudyMismatch."""
    for name, now in _parts(store, current).items():
        if (stored := store.fact(name)) is not None:
            require_same(store.name, stored, now)


def _parts(store: StudyStore, current: Fingerprint) -> dict[str, Fingerprint]:
    """What the fingerprint is kept as: in one, or what all hosts have in common and what is this host's own."""
    if not store.database.is_shared:
        return {"fingerprint": current}
    common, own = of_all_hosts(current)
    return {"fingerprint": common, _of_host(current["host.name"]): own}


def own_settings(store: StudyStore, host: str) -> Fingerprint:
    """What a shared study keeps of one of its hosts alone; empty for a host that had no part in it."""
    return store.fact(_of_host(host)) or {}


def _of_host(host: str) -> str:
    return f"fingerprint of {host}"


def searched_otherwise(store: StudyStore, sampler: str, seed: int) -> str:
    """In words, how the last start searched if that was otherwise; else empty. Keeps how this one does."""
    last, now = store.fact("search"), [sampler, seed]
    store.set_fact("search", now)
    if last in (None, now):
        return ""
    said = [f"{name} with seed {number}" for name, number in (last, now)]
    return f"the search was {said[0]} and is now {said[1]}; what has been measured stays and counts"


def identity_of(store: StudyStore) -> str:
    """A random word of this very study, to tell it from another one of the same name."""

    def known_or_new() -> str:
        if (known := store.fact("identity")) is None:
            store.set_fact("identity", known := secrets.token_hex(8))
        return str(known)

    known = store.fact("identity")
    return str(known) if known is not None else store.database.exclusively(known_or_new)


def kept_verdict(store: StudyStore, drawn_from: Sequence[object], draw: Callable[[], Verdict]) -> Verdict:
    """The verdict that is kept, if it was drawn from the same by this version; else a new one, which is kept."""
    origin = [*drawn_from, version("specsweep")]
    if store.fact("verdict_drawn_from") == origin:
        with suppress(ValidationError):
            return Verdict.model_validate(store.fact("verdict"))
    verdict = draw()
    store.set_fact("verdict", verdict.model_dump(mode="json"))
    store.set_fact("verdict_drawn_from", origin)
    return verdict
