"""What earlier launches tell of a host that is not asked: its facts, and how long a launch takes there."""

from __future__ import annotations

import re
import statistics
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sweeper.deciding.durations import FIRST_MARGIN, Learned, launch_s, learn
from sweeper.engines.base import Engine, HostFacts
from sweeper.errors import ConfigError
from sweeper.facts import all_values
from sweeper.fingerprint import Fingerprint
from sweeper.kept_search import KeptSearch
from sweeper.nights.purses import longest_launch_s
from sweeper.planning.model import LaunchTime
from sweeper.records import TrialRecord
from sweeper.spec import SweepSpec
from sweeper.storing.storage import StudyStore
from sweeper.storing.study_place import study_names

MAX_STUDIES = 40
"""So many other studies of the storage are looked into, the newest first."""

MODEL_UNKNOWN = "MODEL_PATH"
_MAX_FILE_BYTES = 1024 * 1024
_SAME = ("host.name", "engine.name", "model.name")
_BILLIONS = re.compile(r"(?<![\w.])(\d{1,4}(?:\.\d+)?)\s?[bB](?![a-zA-Z])")
_GUESS_BASE_S, _GUESS_S_PER_BILLION, _GUESS_FACTOR = 90.0, 4.0, 2.5


@dataclass(frozen=True)
class Known:
    """Facts of the host and from where, and the trials of which study tell how long a launch takes."""

    facts: HostFacts
    source: str
    timed_by: str
    trials: tuple[TrialRecord, ...]
    is_own: bool


def known_of(spec: SweepSpec, engine: Engine, store: StudyStore | None) -> Known:
    """What is known of the host: from the sweep's own study, from others beside it, from this machine's files."""
    others = _others(spec)
    timed = [s for s in filter(None, [store, *others]) if any(t.measured for t in s.readable())]
    first = timed[0] if timed else None
    trials = first.readable() if first is not None else ()
    for one in filter(None, [store, *others]):
        with suppress(ConfigError):
            facts = KeptSearch.of(one).facts
            source = f"as study {one.name} saw the host at its last start"
            return Known(facts, source, first.name if first else "", trials, is_own=one is store)
    path = MODEL_UNKNOWN if spec.model.prepare or not spec.model.path else spec.model.path
    files = _local_files(spec, engine, path)
    source = "no study has seen this host yet: the newest engine version that specsweep knows is assumed"
    facts = HostFacts(model_path=path, files=files)
    return Known(facts, source, first.name if first else "", trials, is_own=False)


def fingerprint_of(store: StudyStore, host: str) -> Fingerprint:
    """A study's own fingerprint, with what it keeps of this host; empty when it has none."""
    return {**store.texts("fingerprint"), **store.texts(f"fingerprint of {host}")}


def learned_of(spec: SweepSpec, known: Known) -> Learned:
    """What launches take, by kind."""
    return learn(known.trials, launch_s, longest_launch_s(spec))


def launch_time(spec: SweepSpec, known: Known) -> LaunchTime:
    """Seconds that a launch takes on average, and between what the average may lie.

    From what was measured; else by a rule of thumb from the size that the model's name tells; else unknown.
    """
    times = [value for values in learned_of(spec, known).by_kind.values() for value in values]
    if not times:
        return _guess(spec)
    mean = statistics.fmean(times)
    if len(times) > 1:
        error = 1.645 * statistics.stdev(times) / len(times) ** 0.5
        low, high = max(min(times), mean - error), min(max(times), mean + error)
    else:
        low, high = mean / FIRST_MARGIN, mean * FIRST_MARGIN
    of = "this study" if known.timed_by == spec.study.name else f"study {known.timed_by}, same host and model"
    launches = f"{len(times)} launch{'es' if len(times) != 1 else ''}"
    return LaunchTime(
        mean_s=mean, low_s=low, high_s=high, num_timed=len(times), source=f"measured in {launches} of {of}"
    )


def _guess(spec: SweepSpec) -> LaunchTime:
    """90 s and 4 s for each billion parameters, within a factor of 2.5 either way: a guess, and called one.

    The weights are 2 bytes a parameter or less and come from a disk at about 1 GB/s, half of that time again goes
    to graphs and warm-up, and what is measured takes about as long.
    """
    found = _BILLIONS.search(spec.model.name) or _BILLIONS.search(spec.model.path)
    if found is None:
        return LaunchTime(source="unknown until a launch has been measured on this host with this model")
    seconds = _GUESS_BASE_S + _GUESS_S_PER_BILLION * float(found[1])
    return LaunchTime(
        mean_s=seconds,
        low_s=seconds / _GUESS_FACTOR,
        high_s=seconds * _GUESS_FACTOR,
        is_guess=True,
        source=f"a guess from the {found[1]}B in the model's name, not a measurement",
    )


def _others(spec: SweepSpec) -> list[StudyStore]:
    """The other studies of this storage that were measured on this host with this engine and model."""
    wanted = dict(zip(_SAME, (spec.host.name, spec.engine.name, spec.model.name), strict=True))
    found = []
    names = [name for name in study_names(spec.study.storage) if name != spec.study.name]
    for name in names[-MAX_STUDIES:][::-1]:
        with suppress(ConfigError):
            store = StudyStore.of(spec.study, name=name)
            told = fingerprint_of(store, spec.host.name)
            if all(told.get(path) == value for path, value in wanted.items()):
                found.append(store)
    return found


def _local_files(spec: SweepSpec, engine: Engine, model_path: str) -> Mapping[str, str | None]:
    """The small files that the rules need, where the host is this machine. What is not there is left out."""
    if spec.host.kind != "local":
        return {}
    paths: Sequence[str] = engine.host_files(all_values(spec), model_path)
    return {path: text for path in paths if (text := _text_of(Path(path))) is not None}


def _text_of(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            return file.read(_MAX_FILE_BYTES).decode("utf-8", "replace")
    except OSError:
        return None
