"""Overrides on the command line that cannot be meant: why, and what to write instead."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Literal

from sweeper.config.mistakes import one_line, shown, unicode_mistake, valid_names

GROUPS = ("engine", "host", "model", "space", "workload", "study", "study/sampler", "tracking", "preset")
"""The groups of `conf/`: `GROUP=OPTION` chooses a file."""

_LISTS = re.compile(
    r"engine\.command|model\.prepare|study\.warm_start|(more_)?workloads?(\.[^.]+)?\.prompts|host\.(gpus|nodes)|notify\.(command|events)|hosts"
)
_TEXT = re.compile(r"[^\d.,\s-]")
_SWEEPS = ("choice", "range", "interval", "tag")
_HYDRA_FUNCTIONS = frozenset({*_SWEEPS, "bool", "float", "glob", "int", "shuffle", "sort", "str"})
_SEARCHED = re.compile(r"space\.(env\.)?(?!(env|when)$)[^.]+")
_NO_OVERRIDE = "not an override; write NAME=VALUE, in quotes when VALUE has blanks or brackets"
_WORD = re.compile(r"'[A-Za-z0-9][\w.-]*'")
_TYPOGRAPHIC = "\u2018\u2019\u201a\u201c\u201d\u201e\u00ab\u00bb\u2032\u2033"
_WRONG_BRACKET = re.compile(r"\s*(choice|range|interval)(?:\s*[\[{<=:]|\s+[\d.-]|\s+[\w'\".-]+\s*,)")
_FORMS = "write choice(a,b), range(start,stop), range(start,stop,step=n) or interval(low,high)"
_CALL = re.compile(r"\s*([A-Za-z_]\w*)\s*\(")
_KEY = re.compile(r"(\+\+?|~)?[A-Za-z_][\w-]*([./]\w[\w-]*)*")


@dataclass(frozen=True)
class Asked:
    """One override, read. `sweep`: "list" is the bare form `a,b`, "call" stands for `choice(a,b)` and the like."""

    text: str
    key: str
    value: object = None
    delete: bool = False
    add: bool = False
    sweep: Literal["", "list", "call"] = ""
    package: str = ""

    @property
    def value_text(self) -> str:
        """What stands behind the equals sign, as it was written."""
        return self.text.partition("=")[2]


def refusal(asked: Asked) -> str:
    """Why this override is refused before it is applied; empty when it is not."""
    if asked.package or ("/" in asked.key and asked.key not in GROUPS) or asked.key.partition(".")[0] == "hydra":
        return f"{asked.text}: Hydra's own settings and packages cannot be changed here{_with_points(asked)}"
    if not asked.key:
        return f"{asked.text}: a name is missing before the equals sign"
    if asked.key in GROUPS:
        return _group_refusal(asked)
    if asked.delete and "=" in asked.text:
        return f"{asked.text}: a name is removed without a value: ~{asked.key}"
    return _sweep_refusal(asked) if asked.sweep and not _SEARCHED.fullmatch(asked.key) else ""


def _with_points(asked: Asked) -> str:
    """How a setting is written whose names are joined as those of a group's folders."""
    path = asked.text.partition("=")[0].replace("/", ".")
    return f"; a setting is written with points: {path}=VALUE" if "/" in asked.key and not asked.package else ""


def _group_refusal(asked: Asked) -> str:
    if asked.delete:
        return f"{asked.text}: every sweep needs one {asked.key}; choose another: {asked.key}=OPTION"
    if asked.sweep:
        example = f"{asked.key}=OPTION; values of server flags are searched: 'space.NAME=choice(a,b)'"
        return f"{asked.text}: specsweep does not sweep over files; choose one: {example}"
    if isinstance(asked.value, list | dict) or asked.value is None:
        return f"{asked.text}: {asked.key} takes the name of one option: {asked.key}=OPTION"
    return f"{asked.text}: write it without +: {asked.text.lstrip('+')}" if asked.add else ""


def _sweep_refusal(asked: Asked) -> str:
    key, text = asked.key, asked.value_text
    values = text if asked.sweep == "call" else f"choice({text})"
    if _LISTS.fullmatch(key):
        return f"{asked.text}: a list is written '{key}=[{text}]'"
    if key.startswith("space.when."):
        return f"{asked.text}: a condition lists its values: '{key}=[{text}]'"
    line = f"{asked.text}: {key} has one value in a sweep"
    if key.startswith("engine.flags."):
        searched = f"'space.{key.removeprefix('engine.flags.')}={values}'"
        return f"{line}; to search it, write {searched}; for text with a comma: '{key}=\"{text}\"'"
    if asked.sweep == "list" and _TEXT.search(text) and not key.startswith("space."):
        return f"{line}; text with a comma: '{key}=\"{text}\"'"
    return f"{line}; only server flags are searched, below space: 'space.NAME={values}'"


def unreadable(text: str) -> str:
    """Why Hydra cannot read an override, and the form that it can read."""
    key, equals, value = text.partition("=")
    if wrong := unicode_mistake(text):
        return f"{shown(text)}: {wrong}; the shell's encoding is UTF-8 here"
    if text in ("-m", "--multirun"):
        return f"{text}: specsweep sweeps by itself; leave it away, and give values like 'space.NAME=choice(2,4)'"
    if text.startswith("-"):
        return f"{shown(text)}: not an override (NAME=VALUE); options stand before the overrides"
    if not equals and not key.startswith("~"):
        return f"{shown(text)}: {_NO_OVERRIDE}"
    if not _KEY.fullmatch(key):
        reached = "; the quotation marks are a part of it: leave one pair away" if key[:1] in "'\"" else ""
        return f"{shown(text)}: {shown(key)} is not a name; write GROUP=OPTION or GROUP.NAME=VALUE{reached}"
    if found := _CALL.match(value):
        if found[1] in _SWEEPS and value.count("(") > value.count(")"):
            whole = shlex.quote(f"{key}={found[1]}(...)")
            return f"{shown(text)}: a bracket is open: the shell cut it at a blank? Write {whole} in quotes"
        return f"{key}: {shown(value)}: {sweep_mistake(value)}"
    return one_line(f"{shown(text)}: {_unreadable_value(key, value)}")


def _unreadable_value(key: str, value: str) -> str:
    """Why Hydra cannot read a value, and what to write."""
    if sign := next((c for c in value if c in _TYPOGRAPHIC), ""):
        return f"{sign} is a typographic quotation mark, which no shell takes away; type ' or \""
    if found := _WRONG_BRACKET.match(value):
        return f"{found[1]} takes round brackets: {shlex.quote(f'{key}={found[1]}(...)')}"
    if value.count("${") > value.count("}"):
        return "a bracket is open: a reference is written ${NAME}"
    if value[-1:] in (",", ";"):
        return f"cannot be read; leave the {value[-1]!r} at its end away"
    quoted = value.replace("\\", "\\\\").replace('"', '\\"')
    whole = shlex.quote(f'{key}="{quoted}"')
    return f"cannot be read; quote the value twice: {whole}"


def key_of(text: str) -> str:
    """The path that an override is about, as far as it can be told."""
    return text.partition("=")[0].lstrip("+~")


def without_brackets(text: str) -> bool:
    """Whether text names a kind of sweep and has other signs than the round brackets behind it."""
    return _WRONG_BRACKET.match(text) is not None


def sweep_mistake(text: str) -> str:
    """What is wrong with text that looks like a sweep and cannot be read as one; empty for other text."""
    if found := _WRONG_BRACKET.match(text):
        return f"{found[1]} takes round brackets; {_FORMS}"
    found = _CALL.match(text)
    if found is None:
        return ""
    if found[1] not in _HYDRA_FUNCTIONS:
        return f"{found[1]} is not a sweep; {valid_names(found[1], _SWEEPS)}"
    if re.search(r"\bnull\b", text, re.IGNORECASE):
        return "null is no value; to leave a flag away, write false"
    if re.search(r"choice\(\s*\)", text):
        return "a choice needs at least one value"
    return f"cannot be read; {_FORMS}"


def without_groups(mistakes: Iterable[str], unknown: Collection[str]) -> list[str]:
    """The mistakes, without those that may only be there because an option of a group does not exist."""
    groups = set(unknown)
    if "preset" in groups:
        groups |= {"engine", "model", "space", "workload"}
    if "engine" in groups:
        groups.add("space")
    return [line for line in mistakes if re.split("[.:=]", line.lstrip("~+"))[0] not in groups]


def without_lost(mistakes: Iterable[str], lost: Collection[str]) -> list[str]:
    """The mistakes, without what is missing because the override that gives it could not be read."""
    return [line for line in mistakes if not any(line.startswith(f"{path}: is missing") for path in lost)]


def perhaps_a_study(mistake: str) -> str:
    """The mistake; where a word alone stands that may name a study, with how a study is named."""
    word, is_alone, _ = mistake.partition(f": {_NO_OVERRIDE}")
    is_name = bool(is_alone) and _WORD.fullmatch(word) is not None
    return f"{mistake}; a study: study.name={word[1:-1]}" if is_name else mistake
