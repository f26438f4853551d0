"""From the plain, resolved configuration to the schema, with every mistake that can be seen without a server."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence

from pydantic import ValidationError

from launchers.replies import MARKER
from sweeper.config.conditions import NOTHING_TO_SEARCH, BuiltSpace, build_space
from sweeper.config.mistakes import schema_mistakes, shown, valid_names
from sweeper.config.objectives import build_objective
from sweeper.config.places import mapping, place_mistakes
from sweeper.config.prompt_files import ReadPrompts
from sweeper.config.sweeps import Reader
from sweeper.config.workloads import BuiltWorkloads, build_workloads
from sweeper.engines.registry import ENGINE_NAMES, engine_for
from sweeper.errors import ConfigError
from sweeper.probing.settings import probe_mistakes
from sweeper.searching.choice import sampler_mistakes
from sweeper.space import domain_values
from sweeper.spec import Domain, FlagValue, Interval, SweepSpec

_MAX_LISTED = 1000
_PLACEHOLDER = {"parameters": [{"name": "x", "domain": {"kind": "choice", "values": [1]}}]}
_OBJECTIVE = "output_throughput"
"""Stands in for a missing one, which the schema complains of."""

_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def to_spec(
    data: Mapping[str, object],
    space_before: Mapping[str, object],
    read: Reader,
    told: Mapping[str, str],
    read_prompts: ReadPrompts,
) -> SweepSpec:
    """The whole configuration, checked. Raises ConfigError with all mistakes.

    `space_before` is `space` before the command line changed it; `told` holds mistakes that were found
    already, each under the path that is therefore missing from `data`.
    """
    engine = mapping(data.get("engine"))
    flags = {
        name: value for name, value in mapping(engine.get("flags")).items() if isinstance(value, str | int | float)
    }
    built = build_space(mapping(data.get("space")), space_before, flags, read)
    missing = {path.removeprefix("space.") for path in told if path.startswith("space.")}
    about = tuple(f"space.when.{name}:" for name in missing)  # a condition for what is missing is no mistake
    is_read = isinstance(data.get("space"), Mapping)
    space = [line for line in built.mistakes if is_read and not line.startswith(about)]
    mistakes = [*filter(None, told.values()), *space, *_engine_mistakes(engine.get("name"), flags, built)]
    mistakes += _env_value_mistakes(engine.get("name"), mapping(engine.get("env")), built)
    mistakes = _without_empty_space(mistakes)
    loads = build_workloads(data, read_prompts, tuple(told))
    objective, wrong = build_objective(data.get("objective", _OBJECTIVE), loads.names)
    mistakes += [*loads.mistakes, *wrong, *_env_mistakes(data)]
    mistakes += place_mistakes(mapping(data.get("study")), mapping(data.get("tracking")))
    try:
        assembled = _assembled(data, built, loads)
        if "objective" in data:
            assembled["objective"] = objective
        spec = SweepSpec.model_validate_json(json.dumps(assembled, default=str))
    except ValidationError as error:
        lines = [*mistakes, *schema_mistakes(error, loads.told)]
        raise ConfigError(list(dict.fromkeys(lines))) from None
    mistakes += [
        *_node_mistakes(spec),
        *_slot_mistakes(spec),
        *_budget_mistakes(spec),
        *_finish_mistakes(spec),
        *_search_mistakes(spec, built),
    ]
    if mistakes:
        raise ConfigError(list(dict.fromkeys(mistakes)))
    return spec


def _without_empty_space(mistakes: Sequence[str]) -> list[str]:
    """The mistakes; that nothing is searched is none beside a wrong value of the space, which may be why."""
    wrong = any(line.startswith("space.") for line in mistakes)
    return [line for line in mistakes if line != NOTHING_TO_SEARCH or not wrong]


def _node_mistakes(spec: SweepSpec) -> list[str]:
    """Further hosts for an engine that is started on one: they would idle beside it, watched and paid for."""
    if not spec.host.nodes or spec.engine.name not in ENGINE_NAMES or engine_for(spec.engine.name).spans_hosts:
        return []
    able = ", ".join(name for name in ENGINE_NAMES if engine_for(name).spans_hosts)
    nodes, name = ", ".join(spec.host.nodes), spec.engine.name
    instead = f"a server that spans several is started with {able}"
    return [f"host.nodes: {nodes}, but specsweep starts {name} on one host; {instead}"]


def _slot_mistakes(spec: SweepSpec) -> list[str]:
    """Workloads with more requests under way than the server works on: the rest would only wait in its queue."""
    if spec.engine.name not in ENGINE_NAMES:
        return []
    engine = engine_for(spec.engine.name)
    slots = engine.slots(spec.engine.flags)
    searched = engine.slots_flag in {parameter.name for parameter in spec.space.parameters}
    paths = ["workload", *(f"more_workloads.{workload.name}" for workload in spec.more_workloads)]
    return [
        f"{path}.concurrency: {workload.concurrency}, but the server works on {slots} at once, the rest waits; "
        f"engine.flags.{engine.slots_flag}={workload.concurrency} gives it more places"
        for path, workload in zip(paths, spec.workloads, strict=True)
        if slots is not None and not searched and workload.request_rate is None and workload.concurrency > slots
    ]


def _search_mistakes(spec: SweepSpec, built: BuiltSpace) -> list[str]:
    """Why the sampler, or the probe, has no use for this space. One with mistakes of its own is not looked at."""
    if spec.engine.name not in ENGINE_NAMES or built.mistakes:
        return []
    engine = engine_for(spec.engine.name)
    return [*sampler_mistakes(spec, engine), *probe_mistakes(spec, engine)]


def _budget_mistakes(spec: SweepSpec) -> list[str]:
    if spec.budget.confirm_launches != 1:
        return []
    return ["budget.confirm_launches: 1 launch each tells nothing from noise: 0, or at least 2"]


def _finish_mistakes(spec: SweepSpec) -> list[str]:
    """How a host cannot be left."""
    lines = []
    if spec.on_finish == "restore" and spec.host.replace_server is None:
        lines.append(
            "on_finish: restore needs host.replace_server=PORT: the server to stop now and start again then"
        )
    if spec.host.nodes and (spec.on_finish != "stop" or spec.host.replace_server is not None):
        what = "host.replace_server" if spec.on_finish == "stop" else f"on_finish: {spec.on_finish}"
        lines.append(f"{what}: is for a server on one host, not for one that spans several (host.nodes)")
    if spec.on_finish_port is not None and spec.on_finish != "serve_best":
        lines.append(f"on_finish_port: {spec.on_finish_port} has no meaning without on_finish=serve_best")
    return lines


def _assembled(data: Mapping[str, object], built: BuiltSpace, loads: BuiltWorkloads) -> dict[str, object]:
    """The configuration in the schema's shape: what the space fixes belongs to the engine.

    A space with mistakes is replaced, so that the rest is still checked.
    """
    result = {**data, "more_workloads": loads.more}
    if "workload" in data:
        result["workload"] = loads.first
    if isinstance(data.get("space"), Mapping):
        parameters = [parameter.model_dump(mode="json") for parameter in built.parameters.values()]
        result["space"] = _PLACEHOLDER if built.mistakes else {"parameters": parameters}
    engine = data.get("engine")
    if isinstance(engine, Mapping):
        result["engine"] = {
            **engine,
            "flags": _merged(engine.get("flags", {}), built.fixed),
            "env": _texts(_merged(engine.get("env", {}), built.fixed_env)),
        }
    return result


def _merged(raw: object, fixed: Mapping[str, FlagValue]) -> object:
    return {**raw, **fixed} if isinstance(raw, Mapping) else raw


def _texts(raw: object) -> object:
    """Numbers become text: `OMP_NUM_THREADS: 1` means what it says. Booleans do not: 1 or true?"""
    if not isinstance(raw, Mapping):
        return raw
    return {
        name: str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value
        for name, value in raw.items()
    }


def _engine_mistakes(name: object, flags: Mapping[str, FlagValue], built: BuiltSpace) -> list[str]:
    if not isinstance(name, str):
        return []
    if name not in ENGINE_NAMES:
        return [f"engine.name: {shown(name)} is not an engine; {valid_names(name, ENGINE_NAMES)}"]
    engine = engine_for(name)
    check = engine.flag_mistakes
    searched = {flag: parameter.domain for flag, parameter in built.parameters.items() if not parameter.is_env}
    reals = {
        flag: domain
        for flag, domain in searched.items()
        if isinstance(domain, Interval) and engine.takes_whole_numbers(flag)
    }
    in_space: dict[str, Sequence[FlagValue]] = {
        flag: _samples(domain) for flag, domain in searched.items() if flag not in reals
    }
    in_space |= {flag: (value,) for flag, value in built.fixed.items()}
    for flag, asked in built.asked.items():
        if flag in flags or flag in built.fixed:
            in_space[flag] = (*in_space.get(flag, ()), *asked)
    fixed = check({flag: (value,) for flag, value in flags.items()})
    lines = [*(f"engine.flags.{line}" for line in fixed), *(f"space.{line}" for line in check(in_space))]
    lines += engine.config_mistakes({**flags, **built.fixed}, searched)
    return lines + [_real_mistake(flag, domain) for flag, domain in reals.items()]


def _env_value_mistakes(name: object, engine_env: Mapping[str, object], built: BuiltSpace) -> list[str]:
    """Values of environment variables that the engine knows to be wrong."""
    if not isinstance(name, str) or name not in ENGINE_NAMES:
        return []
    check = engine_for(name).env_mistakes
    searched = {p.name: tuple(map(str, _samples(p.domain))) for p in built.parameters.values() if p.is_env}
    in_space = {**{name: (str(value),) for name, value in built.fixed_env.items()}, **searched}
    fixed = check({name: (str(value),) for name, value in engine_env.items()})
    return [*(f"engine.env.{line}" for line in fixed), *(f"space.env.{line}" for line in check(in_space))]


def _real_mistake(flag: str, domain: Interval) -> str:
    low, high = math.ceil(domain.low), math.floor(domain.high)
    given = f"space.{flag}: interval({domain.low:g}, {domain.high:g}) gives real numbers"
    whole = f"int(interval({low},{high})) or range({low},{high + 1})"
    return f"{given}, but this flag takes whole ones" + (f"; write {whole}" if low <= high else "")


def _samples(domain: Domain) -> Sequence[FlagValue]:
    """The values to check: all, or the two ends where there are too many."""
    if isinstance(domain, Interval):
        return (domain.low, domain.high)
    values = domain_values(domain) or ()
    return values if len(values) <= _MAX_LISTED else (values[0], values[-1])


def _env_mistakes(data: Mapping[str, object]) -> list[str]:
    """Names that no shell could set, and the one by which a server's processes are found again."""
    lines = []
    for group in ("engine", "space"):
        for name in mapping(mapping(data.get(group)).get("env")):
            if name == MARKER:
                lines.append(f"{group}.env.{name}: is set by specsweep itself: it finds its servers by it")
            elif not _ENV_NAME.fullmatch(name):
                lines.append(f"{group}.env: {shown(name)} is not a variable's name: letters, digits and _ only")
    return lines
