"""What must not change between the launches of one study, and how to say what did."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import PurePosixPath

from launchers.masking import MASK, is_secret_name, masked_words
from sweeper.engines.base import HostFacts
from sweeper.errors import StudyMismatch
from sweeper.known_secrets import KNOWN
from sweeper.provenance import prompts_digest
from sweeper.spec import Choice, Domain, FlagValue, IntRange, Parameter, SweepSpec, digest
from sweeper.workload_spec import WorkloadSpec

Fingerprint = Mapping[str, str]

IMPORTED = "imported"
"""The path under which an imported study says whose results it holds; no sweep has it."""

_PLAIN_WORD = re.compile(r"(?!(true|false|null|nan|inf)$)[A-Za-z][\w./-]*", re.IGNORECASE | re.ASCII)


FACTS = (
    "engine.build.",
    "engine.command",
    "host.driver",
    "host.gpu_indices",
    "host.gpu_policy",
    "host.gpus",
    "model.draft ",
)
"""Beginnings of what a study need not know: mostly what is read from the host rather than set. Where one of two
starts could not read it, or did not know to, it is not compared: a study of an older specsweep goes on."""

_SECRET_PLACES = ("engine.flags.", "engine.env.", "space.")

_WORKLOAD = (
    # What decides which work is measured. Each other setting decides only how long or how well, so it may change
    # within a study: name, max_repeats, precision_pct, max_measure_s, stop_hopeless (what is estimated says so in
    # its record), warmup_max_requests, warmup_max_s (a plateau is a plateau), request_timeout_s.
    "chat",
    "concurrency",
    "fresh_prefixes",
    "ignore_eos",
    "max_tokens",
    "repeats",  # passes after the first have prefixes of their own: with another number the texts are others
    "request_rate",
    "seed",
    "temperature",
)


def fingerprint(spec: SweepSpec, facts: HostFacts) -> dict[str, str]:
    """Dotted path to value, for everything that a measured number depends on.

    Budget, limits, verdict and tracking are left out: they may change at any time. So may specsweep's own version,
    which each record has. Secrets are hidden, so another token is no other setting.
    """
    settings = {
        "engine.name": spec.engine.name,
        "engine.version": facts.engine_version,
        "engine.command": _command(spec.engine.command),
        **{f"engine.flags.{name}": repr(value) for name, value in spec.engine.flags.items()},
        **{f"engine.env.{name}": repr(value) for name, value in spec.engine.env.items()},
        "host.name": spec.host.name,
        "host.gpu_indices": ", ".join(map(str, sorted(spec.host.gpus))) or "all",
        "model.name": spec.model.name,
        "model.content": facts.model_fingerprint,
        **{f"host.files.{path}": digest(text)[:16] for path, text in sorted(facts.files.items())},
        **({"host.gpus": ", ".join(facts.gpu_names)} if facts.gpu_names else {}),
        **{_fact(name): value for name, value in facts.build.items() if name not in _SAME_CONTENT},
        "objective": spec.objective.text(spec.workload.name),
        **{f"space.{_name(p)}": _domain(p) for p in spec.space.parameters},
        **_workload("workload", spec.workload),
    }
    for workload in spec.more_workloads:
        settings |= _workload(f"more_workloads.{workload.name}", workload)
    return _hidden(settings)


def _hidden(settings: Fingerprint) -> dict[str, str]:
    """The same without secrets, which earlier versions wrote down."""
    return {
        path: MASK if is_secret_name(path) and path.startswith(_SECRET_PLACES) else KNOWN.hide(value)
        for path, value in settings.items()
    }


_SAME_CONTENT = frozenset({"model_revision"})
"""What is compared is the model's files (names and sizes, or both ends of a single one), not where they lie."""


def _command(words: tuple[str, ...]) -> str:
    """How the server is called. Not where its program lies: an environment may move, and its version is known."""
    program = re.sub(r"^python[0-9.]+$", "python", PurePosixPath(words[0]).name)
    return shlex.join(masked_words((program, *words[1:])))


def _fact(name: str) -> str:
    """The dotted path of a fact in HostFacts.build."""
    if name in ("driver", "gpu_policy"):
        return f"host.{name}"
    return f"model.{name}" if name.startswith("draft ") else f"engine.build.{name}"


def _workload(path: str, workload: WorkloadSpec) -> dict[str, str]:
    settings = {f"{path}.{name}": repr(getattr(workload, name)) for name in _WORKLOAD}
    return {f"{path}.prompts": prompts_digest(workload), **settings}


def require_same(study_name: str, stored: Fingerprint, current: Fingerprint) -> None:
    """Raises StudyMismatch that lists every difference and says what to do."""
    if IMPORTED in stored:
        raise StudyMismatch(
            f"study {study_name!r} was imported ({stored[IMPORTED]}): nobody knows that new launches would be "
            f"measured "
            f"as those were, so no sweep continues it.\nA new study can learn from it: study.name=ANOTHER_NAME "
            f"study.warm_start=[{study_name}]"
        )
    stored = _hidden(stored)
    lines = [
        f"  {path}: {stored.get(path, '(absent)')} then, {current.get(path, '(absent)')} now"
        for path in sorted({*stored, *current})
        if stored.get(path) != current.get(path)
        and not (path.startswith(FACTS) and (path not in stored or path not in current))
    ]
    if lines:
        raise StudyMismatch(
            "\n".join(
                [
                    f"study {study_name!r} was measured with other settings; new numbers would not compare:",
                    *lines,
                    "Either put these back, or start a new study beside it: study.name=ANOTHER_NAME",
                ]
            )
        )


def with_new_facts(stored: Fingerprint, current: Fingerprint) -> dict[str, str]:
    """What a study that was found the same should keep from now on: its own, and facts that it did not know."""
    return {**{path: value for path, value in current.items() if path.startswith(FACTS)}, **_hidden(stored)}


_OF_A_HOST = ("engine.command", "host.name", "host.driver", "host.gpu_indices", "host.gpu_policy")
"""What the hosts of a shared study may differ in: their own baselines show what it does to their speed."""


def of_all_hosts(current: Fingerprint) -> tuple[dict[str, str], dict[str, str]]:
    """A fingerprint in two: what all hosts of a shared study must have in common, and what each has of its own."""
    own = {path: value for path, value in current.items() if path in _OF_A_HOST}
    return {path: value for path, value in current.items() if path not in own}, own


def _name(parameter: Parameter) -> str:
    return f"env.{parameter.name}" if parameter.is_env else parameter.name


def _domain(parameter: Parameter) -> str:
    """The values and the condition in the words in which `space` is written."""
    conditions = [f"{name} is {' or '.join(map(_value, values))}" for name, values in parameter.when.items()]
    return _sweep(parameter.domain) + (f" when {' and '.join(conditions)}" if conditions else "")


def _sweep(domain: Domain) -> str:
    if isinstance(domain, Choice):
        return f"choice({', '.join(map(_value, domain.values))})"
    if isinstance(domain, IntRange):
        step = f", step={domain.step}" if domain.step > 1 else ""
        return f"range({domain.low}, {domain.high + 1}{step})"
    interval = f"interval({domain.low!r}, {domain.high!r})"
    return f"tag(log, {interval})" if domain.log else interval


def _value(value: FlagValue) -> str:
    """Text in quotes only where it would otherwise be read as something else: '4' is not 4."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) and _PLAIN_WORD.fullmatch(value) else repr(value)
