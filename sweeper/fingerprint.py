"""What must not change between the launches of one study, and how to say what did."""

from __future__ import annotations

import re
from collections.abc import Mapping

from sweeper.engines.base import HostFacts
from sweeper.errors import StudyMismatch
from sweeper.spec import Choice, Domain, FlagValue, IntRange, Parameter, SweepSpec, digest

Fingerprint = Mapping[str, str]

_PLAIN_WORD = re.compile(r"(?!(true|false|null|nan|inf)$)[A-Za-z][\w./-]*", re.IGNORECASE | re.ASCII)


def fingerprint(spec: SweepSpec, facts: HostFacts) -> dict[str, str]:
    """Dotted path to value, for everything that a measured number depends on.

    Budget, limits and tracking are left out: they may change at any time.
    """
    workload = spec.workload
    prompts = digest([prompt.model_dump() for prompt in workload.prompts])
    settings = {
        "engine.name": spec.engine.name,
        "engine.version": facts.engine_version,
        **{f"engine.flags.{name}": repr(value) for name, value in spec.engine.flags.items()},
        **{f"engine.env.{name}": repr(value) for name, value in spec.engine.env.items()},
        "host.name": spec.host.name,
        "model.name": spec.model.name,
        "model.content": facts.model_fingerprint,
        **{f"host.files.{path}": digest(text)[:16] for path, text in sorted(facts.files.items())},
        **({"host.gpus": ", ".join(facts.gpu_names)} if facts.gpu_names else {}),
        "objective": spec.objective_metric,
        **{f"space.{_name(p)}": _domain(p) for p in spec.space.parameters},
        "workload.prompts": f"{len(workload.prompts)} prompts, sha256 {prompts[:12]}",
    }
    fixed = workload.model_dump(exclude={"name", "prompts", "request_timeout_s"})
    return {**settings, **{f"workload.{name}": repr(value) for name, value in fixed.items()}}


def require_same(study_name: str, stored: Fingerprint, current: Fingerprint) -> None:
    """Raises StudyMismatch that lists every difference and says what to do."""
    lines = [
        f"  {path}: {stored.get(path, '(absent)')} then, {current.get(path, '(absent)')} now"
        for path in sorted({*stored, *current})
        if stored.get(path) != current.get(path)
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
