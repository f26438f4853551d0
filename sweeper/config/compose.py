"""The configuration: `conf/` and the user's own files, composed by Hydra, overridden, checked by the schema.

The only door to Hydra and OmegaConf. Hydra composes the groups; overrides of single values are applied here, one
by one, so that wrong names reach the schema too and all mistakes are reported together.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, TypeVar

from hydra import initialize_config_module
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra.core.config_loader import ConfigLoader
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import ChoiceSweep, IntervalSweep, QuotedString, RangeSweep, ValueType
from hydra.errors import HydraException
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

from sweeper.config.files import YamlError, misplaced, not_utf8, places_that_choose, trap_mistakes, yaml_mistake
from sweeper.config.hooks import take_out_lost
from sweeper.config.lacking import named_by_file
from sweeper.config.mistakes import one_line, shown, valid_names
from sweeper.config.overrides import (
    GROUPS,
    Asked,
    key_of,
    perhaps_a_study,
    refusal,
    sweep_mistake,
    unreadable,
    without_brackets,
    without_groups,
    without_lost,
)
from sweeper.config.own_file import named_in, own_file
from sweeper.config.places import to_place
from sweeper.config.prompt_files import PromptReader
from sweeper.config.secret_values import learn_secrets
from sweeper.config.sweeps import Sweep
from sweeper.config.values import LIBRARY_ERRORS, apply, echoes, expand_home, resolved, without_echoes
from sweeper.errors import ConfigError, Together
from sweeper.spec import StudyPlace, SweepSpec

Built = TypeVar("Built")

_COMBINING_HINTS = {
    "@preset.": "the first line of a preset is: # @package _global_",
    "Could not load '": "its `defaults` name a file that is not there",
    "Could not find 'preset/": "a preset chooses by: - override /GROUP: OPTION",
    "Could not override": f"a preset chooses by: - override /GROUP: OPTION, with one of {', '.join(GROUPS[:-1])}",
    "defaults must be a list": "write defaults: [NAME]",
    "recursion depth": "do `defaults` name one another in a circle, or do values lie too deep in one another?",
    "Incompatible key type": "a name is missing before a colon, or null is one: write it in quotes",
    "input '${": "${ begins a reference to another value: ${NAME}",
}
"""What is probably meant, by Hydra's own words."""


@dataclass(frozen=True)
class Loaded:
    """A checked configuration, the option that was chosen of each group, and lines that its user should read.

    `untold`: likewise, about whom it no longer tells (hooks.py).
    """

    spec: SweepSpec
    groups: Mapping[str, str]
    notes: tuple[str, ...] = ()
    untold: tuple[str, ...] = ()


def load(overrides: Sequence[str], config_dir: Path | None = None) -> Loaded:
    """Compose, override and check. Files in `config_dir` go before the packaged ones of the same name.

    What `specsweep.yaml` in the working directory says holds unless it is given here (own_file.py).
    Raises ConfigError with every mistake that was found. Writes nothing and logs nothing.
    """
    (spec, notes, untold), groups = _load(overrides, config_dir, _spec)
    return Loaded(spec, groups, notes, untold)


def load_place(overrides: Sequence[str], config_dir: Path | None = None) -> StudyPlace:
    """Only where the study and MLflow's view of it are: nothing that a launch needs has to be given.

    Raises ConfigError with every mistake in that.
    """
    try:
        return _load(overrides, config_dir, _place)[0]
    except ConfigError as error:
        raise ConfigError([*map(perhaps_a_study, error.mistakes)]) from None


def _load(
    overrides: Sequence[str],
    config_dir: Path | None,
    build: Callable[[DictConfig, Sequence[Asked], Path | None], Built],
) -> tuple[Built, Mapping[str, str]]:
    """What `build` makes of the composed configuration, and the option that was chosen of each group."""
    typed, mistakes = _parsed(overrides)
    together = Together()
    if config_dir is not None and not config_dir.is_dir():
        together.mistakes.append(f"--config-dir: {shown(str(config_dir))} is not a directory")
    with together:
        own = own_file(Path())
    if together.mistakes:  # what the files say is not known, so nothing more can be judged
        raise ConfigError([*together.mistakes, *mistakes])
    folder = config_dir or own.config_dir
    _register_resolvers()
    loader = _loader(folder)
    asked = [*own.without(typed), *typed]
    unknown = _unknown_options(asked, loader, folder)
    mistakes += unknown.values()
    groups = dict[str, str]()
    try:
        config = _composed(loader, [a.text for a in asked if a.key in GROUPS and a.key not in unknown], folder)
        groups = {name: str(option) for name, option in config.hydra.runtime.choices.items() if name in GROUPS}
        built = build(config, [a for a in asked if a.key not in GROUPS], folder)
    except ConfigError as error:
        lost = {key_of(text) for text in overrides} - {one.key for one in typed}
        mistakes += without_lost(without_groups(error.mistakes, unknown), lost)
    if mistakes:
        raise ConfigError(named_in(named_by_file(mistakes, folder, groups), own.without(typed)))
    return built, groups


def _parsed(overrides: Sequence[str]) -> tuple[list[Asked], list[str]]:
    """The overrides, read, and a line for each that cannot be meant."""
    asked, mistakes = list[Asked](), list[str]()
    for text in overrides:
        try:
            override = _parser().parse_override(text)
        except HydraException:
            mistakes.append(unreadable(text))
            continue
        sweep: Literal["", "list", "call"] = "call" if override.is_sweep_override() else ""
        one = Asked(
            text=text,
            key=override.key_or_group,
            value=override.get_value_string() if sweep else override.value(),
            delete=override.is_delete(),
            add=override.is_add() or override.is_force_add(),
            sweep="list" if override.value_type is ValueType.SIMPLE_CHOICE_SWEEP else sweep,
            package=override.package or "",
        )
        if reason := refusal(one):
            mistakes.append(reason)
        else:
            asked.append(one)
    return asked, mistakes


def read_sweep(text: str) -> Sweep | str:
    """Text in Hydra's syntax: a sweep, or plain text. Raises ValueError for a sweep that is written wrongly."""
    if without_brackets(text):
        raise ValueError(sweep_mistake(text))
    try:
        override = _parser().parse_override(f"x={text}")
    except HydraException:
        if reason := sweep_mistake(text):
            raise ValueError(reason) from None
        return text
    value = override.value()
    if isinstance(value, ChoiceSweep):
        values = (item.text if isinstance(item, QuotedString) else item for item in value.list)
        return Sweep("choice", tuple(values), frozenset(value.tags))
    if isinstance(value, RangeSweep):
        return Sweep("range", (value.start, value.stop, value.step), frozenset(value.tags))
    if isinstance(value, IntervalSweep):
        return Sweep("interval", (value.start, value.end), frozenset(value.tags))
    if override.is_sweep_override():
        raise ValueError(sweep_mistake(text))
    return value if isinstance(value, str) else text


@cache
def _parser() -> OverridesParser:
    return OverridesParser.create()


def _register_resolvers() -> None:
    OmegaConf.register_new_resolver("specsweep.python", lambda: sys.executable, replace=True)
    OmegaConf.register_new_resolver("specsweep.state_dir", _state_dir, replace=True)


def _state_dir() -> str:
    """Where programs keep state that should survive (XDG base directories 0.8: a relative path is ignored)."""
    base = Path(os.environ.get("XDG_STATE_HOME", ""))
    return str((base if base.is_absolute() else Path.home() / ".local" / "state") / "specsweep")


def _loader(config_dir: Path | None) -> ConfigLoader:
    """Hydra's loader for `conf`, with `config_dir` before it (hydra.searchpath could only add it behind)."""
    with initialize_config_module("conf", version_base="1.3"):
        search_path = GlobalHydra.instance().config_loader().get_search_path()
    if config_dir is not None:
        search_path.prepend(provider="--config-dir", path=f"file://{config_dir.resolve()}", anchor="main")
    return ConfigLoaderImpl(search_path)


def _unknown_options(asked: Sequence[Asked], loader: ConfigLoader, folder: Path | None) -> dict[str, str]:
    """A line for each group of which an option was chosen that does not exist."""
    unknown: dict[str, str] = {}
    for one in asked:
        if one.key in GROUPS:
            options = loader.get_group_options(one.key)
            if str(one.value) not in options:
                there = misplaced(folder, one.key, str(one.value)) if folder else ""
                right = there or valid_names(one.value, options)
                unknown[one.key] = f"{one.key}: {shown(one.value)} is no option; {right}"
    return unknown


def _composed(loader: ConfigLoader, groups: list[str], config_dir: Path | None) -> DictConfig:
    """The chosen files, merged. Raises ConfigError for what is wrong in them as files."""
    traps: list[str] = []
    try:
        if config_dir is not None:
            defaults = loader.compute_defaults_list("config", groups, RunMode.RUN).defaults
            files = [config_dir / f"{default.config_path}.yaml" for default in defaults]
            traps = [line for file in files if file.is_file() for line in trap_mistakes(file)]
        config = loader.load_configuration("config", groups, RunMode.RUN, from_shell=False)
    except YamlError as error:
        raise ConfigError([*traps, yaml_mistake(error)]) from None
    except UnicodeDecodeError as error:
        raise ConfigError(not_utf8(config_dir) if config_dir else [one_line(str(error))]) from None
    except LIBRARY_ERRORS as error:
        where = f" (in {config_dir})" if config_dir else ""
        text = one_line(re.split(r"Config search path|object_type=", str(error))[0].replace("full_key:", "at"))
        hint = next((f"; {told}" for words, told in _COMBINING_HINTS.items() if words in text), "")
        lines = traps or (_missing_option(text, loader, config_dir) if config_dir else [])
        raise ConfigError(lines or [f"the files cannot be combined{where}: {text}{hint}"]) from None
    if traps:
        raise ConfigError(traps)
    OmegaConf.set_struct(config, False)
    return config


def _missing_option(text: str, loader: ConfigLoader, folder: Path) -> list[str]:
    """Where `defaults` name an option that has no file, and which there are; nothing for any other mistake."""
    found = re.search(r"Could not find '(\w+)/([^']+)'", text)
    if found is None or found[1] not in GROUPS:
        return []
    group, option = found.groups()
    right = valid_names(option, loader.get_group_options(group))
    missing = f"`defaults` name {option} here, but there is no {group}/{option}.yaml; {right}"
    return [f"{place}: {missing}" for place in places_that_choose(option, folder)]


def _spec(
    config: DictConfig, asked: Sequence[Asked], config_dir: Path | None
) -> tuple[SweepSpec, tuple[str, ...], tuple[str, ...]]:
    """The composed configuration, checked, its notes, and who is untold. Raises ConfigError with all mistakes."""
    before = resolved(config, "", {}).get("space")
    told = {line: line for one in asked for line in apply(config, one)}
    expand_home(config)
    # It brings all engines and samplers along, which commands on a study do without.
    from sweeper.config.schema import to_spec

    data = resolved(config, "", told)
    learn_secrets(data)
    untold = take_out_lost(data)
    if "preset" in data:
        told["preset"] = "preset: the file of the chosen preset must begin with `# @package _global_`"
    space = data.get("space")
    for one in asked:
        flag = one.key.removeprefix("engine.flags.")
        if not one.delete and flag != one.key and isinstance(space, dict) and flag in space:
            instead = f"space.{flag}={one.value_text}"
            told[one.text] = f"{one.text}: has no effect: the space decides on {flag}; to fix it, write {instead}"
    read_prompts = PromptReader(config_dir)
    try:
        spec = to_spec(data, before if isinstance(before, dict) else {}, read_sweep, told, read_prompts)
    except ConfigError as error:
        raise ConfigError(without_echoes(error.mistakes, echoes(config))) from None
    return spec, tuple(read_prompts.notes), untold


def _place(config: DictConfig, asked: Sequence[Asked], _: Path | None) -> StudyPlace:
    """The study's and the view's part of the configuration. Raises ConfigError with all mistakes in it."""
    told = {
        line: line
        for one in asked
        if one.key.startswith(("study", "tracking", "notify"))
        for line in apply(config, one)
    }
    expand_home(config)
    data = resolved(config, "", told)
    learn_secrets(data)
    take_out_lost(data)
    return to_place(data, told)
