"""A folder for `specsweep run --config-dir`: the configuration as a search space of one, beside its baseline.

Text is escaped for OmegaConf, in which `${` begins an interpolation.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from sweeper.errors import ConfigError
from sweeper.exporting.comments import comments
from sweeper.exporting.handover import Handover
from sweeper.secrets import is_secret_name
from sweeper.spec import FlagValue
from sweeper.yaml_text import yaml_text

FOLDER = "hydra"
_START_S = 120.0
_INTERPOLATION = re.compile(r"(\\*)\$\{")
LOCAL = "local"


def preset(handover: Handover) -> dict[str, str]:
    """File name to text. Raises ConfigError for a value that Hydra cannot hold, or that is a secret."""
    _require_holdable(handover)
    name = f"{handover.name}-tuned" if not handover.is_baseline else f"{handover.name}-baseline"
    groups = {"engine": _engine(handover), "model": _model(handover)}
    if not handover.is_baseline:
        groups["space"] = _space(handover)
    files = {f"{FOLDER}/{group}/{name}.yaml": yaml_text(data) for group, data in groups.items()}
    return {**files, f"{FOLDER}/preset/{name}.yaml": _preset(handover, name, sorted(groups))}


def _preset(handover: Handover, name: str, groups: list[str]) -> str:
    usage = [f"specsweep run --config-dir {FOLDER} preset={name}"]
    if handover.is_baseline:
        usage.append("searches the packaged space around this baseline.")
    else:
        usage.append("measures this one configuration again, against the baseline.")
    usage.append("The workload is the default one unless you choose one: workload=NAME.")
    defaults: list[object] = [{f"override /{group}": name} for group in groups]
    if handover.host and handover.host != LOCAL:
        defaults.append({"override /host": "ssh"})
        usage.append(f"It was measured on {handover.host}, over SSH.")
    data: dict[str, object] = {"defaults": defaults, "study": {"name": name}}
    if handover.host and handover.host != LOCAL:
        data["host"] = {"ssh": {"destination": _text(handover.host)}}
    if handover.num_ranks > 1:
        usage.append("Name the further hosts: host.nodes=[...], and host.node_address.")
    if not handover.is_baseline:
        data["budget"] = {"trials": 2}
    if (start_s := 3 * (handover.start_s or 0.0)) > _START_S:
        data["limits"] = {"start_s": math.ceil(start_s)}
    return "# @package _global_\n" + comments([*handover.about, "", *usage]) + yaml_text(data)


def _engine(handover: Handover) -> Mapping[str, object]:
    """The engine as the baseline and every trial got it; what the trial has otherwise is in the space."""
    base = handover.config if handover.is_baseline else handover.base
    return {
        "name": handover.engine,
        "command": [_text(word) for word in handover.serving.command],
        "flags": {_text(name): _value(value) for name, value in base.flags.items()},
        "env": {name: _text(value) for name, value in base.env.items()},
    }


def _model(handover: Handover) -> Mapping[str, object]:
    path = handover.serving.model[-1]
    return {"name": _text(handover.model_name or path), "path": _text(path)}


def _space(handover: Handover) -> Mapping[str, object]:
    """Each flag that differs from the base as a choice of its one value; a list needs no Hydra quotes."""
    config, base = handover.config, handover.base
    space: dict[str, object] = {
        _text(name): [_value(value)]
        for name, value in config.flags.items()
        if _differs(base.flags.get(name), value)
    }
    env = {name: [_text(value)] for name, value in config.env.items() if base.env.get(name) != value}
    return {**space, **({"env": env} if env else {})}


def _differs(base: FlagValue | None, value: FlagValue) -> bool:
    """Whether two values are launched differently; 1 and True are equal to Python alone."""
    return type(base) is not type(value) or base != value


def _require_holdable(handover: Handover) -> None:
    configs = (handover.config, handover.base)
    values = [pair for config in configs for pair in (*config.flags.items(), *config.env.items())]
    hidden = [secret.holds for secret in handover.secrets]
    secret = dict.fromkeys([*hidden, *(name for name, _ in values if is_secret_name(name))])
    mistakes = [
        f"--format: hydra: {name} is secret, and a preset holds values; give it with the sweep" for name in secret
    ]
    texts = [*values, *(("engine.command", word) for word in handover.serving.command)]
    mistakes += [
        f"--format: hydra: {name} is '???', which Hydra takes for missing" for name, v in texts if v == "???"
    ]
    if mistakes:
        raise ConfigError(mistakes)


def _value(value: FlagValue) -> FlagValue:
    return _text(value) if isinstance(value, str) else value


def _text(text: str) -> str:
    """`text`, so that OmegaConf reads it back as it is."""
    return _INTERPOLATION.sub(r"\1\1\\${", text)
