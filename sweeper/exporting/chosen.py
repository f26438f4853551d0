"""Which configuration of a study is handed over, and what it rests on: read from the study alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sweeper.deciding.comparable import comparable
from sweeper.deciding.lossless import Gate
from sweeper.deciding.sharing import CLOSING_HOST, scale_host
from sweeper.deciding.verdict import Verdict, decide
from sweeper.engines.registry import engine_for
from sweeper.engines.serving import Loads
from sweeper.errors import ConfigError
from sweeper.exporting.evidence import evidence
from sweeper.exporting.handover import Handover, plain_name, require_writable, without_secrets
from sweeper.kept_search import KeptSearch
from sweeper.records import LaunchRecord, TrialRecord, TrialState
from sweeper.secrets import MASK, secrets_of
from sweeper.storing.storage import StudyStore

ADVISED, BEST, BASELINE = "advised", "best", "baseline"
_THROUGHPUT = "output_throughput"


@dataclass(frozen=True)
class Choice:
    """The trial that was asked for, the launch that shows how it runs, and the whole study beside it."""

    trial: TrialRecord
    launch: LaunchRecord
    trials: tuple[TrialRecord, ...]
    verdict: Verdict
    kept: KeptSearch
    study: str


def choose(store: StudyStore, asked: str) -> Choice:
    """The trial `asked` for: its number, or what the verdict advises, the best, the baseline.

    Raises ConfigError when there is no such trial, or nothing shows how it was run.
    """
    kept = KeptSearch.of(store)
    recorded = store.readable()
    trials, _ = comparable(recorded)
    gate = Gate(allow_lossy=store.fact("allow_lossy") is True)
    host = scale_host(recorded, kept.objective, str(store.fact(CLOSING_HOST) or ""))
    verdict = decide(trials, kept.objective, engine_for(kept.engine).simplicity, gate, host)
    number = _number(asked, trials, verdict, kept.objective)
    trial = next((found for found in (*trials, *recorded) if found.number == number), None)
    if trial is None:
        known = ", ".join(str(found.number) for found in recorded if found.measured) or "none yet"
        raise ConfigError([f"trial={number}: the study {store.name!r} has no such trial; measured: {known}"])
    return Choice(trial, _launch(trial), trials, verdict, kept, store.name)


def _number(asked: str, trials: Sequence[TrialRecord], verdict: Verdict, objective: str) -> int:
    if asked == BASELINE:
        return 0
    if asked == ADVISED:
        if verdict.advised is None:
            raise ConfigError(["trial: nothing is advised before the baseline was measured"])
        return verdict.advised
    if asked == BEST:
        scored = [(value, -t.number) for t in trials if _ranked(t) and (value := t.mean(objective)) is not None]
        if not scored:
            raise ConfigError(["best: nothing was measured yet"])
        return -max(scored)[1]
    return int(asked)


def _ranked(trial: TrialRecord) -> bool:
    return trial.is_baseline or trial.state is TrialState.COMPLETE


def _launch(trial: TrialRecord) -> LaunchRecord:
    """The newest measured launch. Raises ConfigError."""
    launch = next((found for found in reversed(trial.measured) if found.argv), None)
    if launch is None:
        failure = trial.failure
        why = f"it ended in {failure.kind.value}" if failure else "no launch of it was measured by specsweep"
        raise ConfigError([f"trial={trial.number}: nothing to hand over: {why}"])
    return launch


def handover_of(choice: Choice) -> Handover:
    """The chosen configuration, ready for every format. Raises ConfigError."""
    kept, launch, trial = choice.kept, choice.launch, choice.trial
    engine = engine_for(kept.engine)
    facts = replace(kept.facts, engine_version=launch.provenance.get("engine_version", kept.facts.engine_version))
    try:
        serving = engine.export(launch.canonical, engine.placed(launch.argv), facts)
    except ValueError as error:
        raise ConfigError([f"trial={trial.number}: how it was started cannot be read: {error}"]) from None
    if not serving.num_gpus:
        serving = replace(serving, num_gpus=len(launch.gpu.gpus))
    is_part = 0 < len(launch.gpu.gpus) < len(kept.facts.gpu_names)
    secrets = secrets_of(choice.trials)
    flags, env = without_secrets(serving.flags, serving.env, secrets)
    told = evidence(choice.study, trial, launch, choice.verdict, kept.objective)
    handover = Handover(
        name=f"{plain_name(choice.study)}-server",
        about=tuple(map(secrets.hide, told)),
        serving=serving,
        config=launch.canonical,
        base=kept.base,
        flags=flags,
        env=env,
        gpus=launch.gpu.gpus if is_part else (),
        start_s=launch.metrics.get("start_s"),
        engine=kept.engine,
        model_name=launch.provenance.get("model", ""),
        is_baseline=trial.is_baseline,
        host=launch.host,
    )
    require_writable(handover)
    if any(MASK in word or secrets.hide(word) != word for word in (*serving.command, *serving.model)):
        raise ConfigError(
            ["engine.command: a secret stands in it or in model.path; give it to the server otherwise"]
        )
    return handover


def loads_of(choice: Choice, fingerprint: Mapping[str, object]) -> list[Loads]:
    """Every measured configuration under its loads, the chosen one first; loads that arrive by themselves not."""
    concurrencies = _concurrencies(fingerprint)
    others = [trial for trial in choice.trials if trial.number != choice.trial.number]
    return [
        Loads(trial.canonical, _throughputs(trial, concurrencies))
        for trial in (choice.trial, *others)
        if trial.measured
    ]


def _concurrencies(fingerprint: Mapping[str, object]) -> dict[str, int]:
    """Workload to the requests under way at once; the first workload's name is empty."""
    found: dict[str, int] = {}
    for path, value in fingerprint.items():
        prefix, _, last = path.rpartition(".")
        if last == "concurrency" and fingerprint.get(f"{prefix}.request_rate", "None") == "None":
            name = "" if prefix == "workload" else prefix.removeprefix("more_workloads.")
            if str(value).isdecimal():
                found[name] = int(str(value))
    return found


def _throughputs(trial: TrialRecord, concurrencies: Mapping[str, int]) -> dict[int, float]:
    found: dict[int, float] = {}
    for name, concurrency in concurrencies.items():
        results = [launch.others.get(name) if name else launch for launch in trial.measured]
        values = [r.metrics[_THROUGHPUT] for r in results if r is not None and _THROUGHPUT in r.metrics]
        if values:
            found[concurrency] = max(found.get(concurrency, 0.0), sum(values) / len(values))
    return found
