"""What a sweep's owner should know before it begins, one line each."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable

from launchers.clock import SystemClock, known_zone
from launchers.masking import MASK, masked_words, secret_words
from sweeper.deadline import read_until
from sweeper.engines.base import Engine, HostFacts
from sweeper.space import samples, to_config
from sweeper.spec import ServerConfig, SweepSpec
from sweeper.storing.addresses import has_password
from sweeper.text import plain

_MAX_SAMPLES = 300


def notes_on(spec: SweepSpec, engine: Engine, facts: HostFacts) -> list[str]:
    """What of the flags and variables of a sweep never has an effect on this host, each told once.

    Looked at in up to _MAX_SAMPLES configurations: what has an effect in one of them is not told.
    """
    base = ServerConfig(flags=spec.engine.flags, env=spec.engine.env)
    notes: Counter[str] = Counter()
    seen: Counter[str] = Counter()
    for values in samples(spec.space, _MAX_SAMPLES):
        config = to_config(base, values, spec.space)
        seen.update([*config.flags, *config.env])
        notes.update(set(engine.without_effect(config, facts)))
    return [note for note, times in notes.items() if times >= seen[note.partition(":")[0]]]


def remembering(spec: SweepSpec, engine: Engine) -> str:
    """Why some server of this sweep writes faster what it has written before; empty when none does.

    Looked at in up to _MAX_SAMPLES configurations.
    """
    base = ServerConfig(flags=spec.engine.flags, env=spec.engine.env)
    configs = (to_config(base, values, spec.space) for values in samples(spec.space, _MAX_SAMPLES))
    return next(filter(None, map(engine.remembers, configs)), "")


def storage_notes(spec: SweepSpec) -> list[str]:
    """A line when the address of the study's database holds a password: what is on a command line can be seen."""
    if not has_password(spec.study.storage):
        return []
    seen = "study.storage holds a password, which process lists and the shell's history show"
    return [f"{seen}; ~/.pgpass, PGPASSWORD or a service file keep it out of them"]


def zone_notes(spec: SweepSpec) -> list[str]:
    """A line when the night's end is a time of day in a zone that this machine does not know."""
    until = spec.budget.until
    if until is None or read_until(until).zone is not None or known_zone() is not None:
        return []
    offset = SystemClock().now().astimezone().strftime("%z")
    told = f"TZ={plain(os.environ.get('TZ', ''), 60)} is no zone that this machine knows by its rules"
    right = "should it be another one, name it: budget.until='07:00 Europe/Berlin'"
    return [f"budget.until: {told}; {until} is taken at {offset[:3]}:{offset[3:]} from UTC; {right}"]


def shown_secrets_notes(words: Iterable[str]) -> list[str]:
    """A line for each word of specsweep's own command line that shows a secret in this machine's process list."""
    return [
        f"{masked_words([word])[0]}: every user of this machine can read it in the process list; write "
        "NAME=${oc.env:VARIABLE}, or put it into a file for --config-dir"
        for word in words
        if any(secret != MASK for secret in secret_words([word]))
    ]


def arrival_notes(spec: SweepSpec) -> list[str]:
    """A line for each workload whose throughput is ranked on although its arrivals decide it."""
    ranked = {term.workload for term in spec.objective.terms}
    return [
        f"workload {workload.name}: {workload.request_rate:g} requests arrive per second whatever it does; "
        "a throughput tells configurations apart only where they cannot keep up"
        for workload in spec.workloads
        if workload.request_rate is not None and workload.name in ranked
    ]
