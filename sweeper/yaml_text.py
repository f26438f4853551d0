"""YAML for people and for other programs: text that any reader of YAML 1.1 or 1.2 takes for the same text."""

from __future__ import annotations

import re

import yaml

_PLAIN = re.compile(r"[A-Za-z_/][A-Za-z0-9_/-]{2,}(?:\.[A-Za-z0-9_/-]+)*")
_WORDS = frozenset({"true", "false", "yes", "off", "null", "nan", "inf"})
"""What some reader takes for something else than text (`y` and `on` are too short to stand without quotes)."""


class _Dumper(yaml.SafeDumper):
    """Quotes all text that is not plainly a word; repeats what occurs twice instead of pointing back."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    is_plain = _PLAIN.fullmatch(text) and text.lower() not in _WORDS
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if is_plain else '"')


_Dumper.add_representer(str, _text)


def yaml_text(data: object) -> str:
    """Plain data (mappings, lists, text, numbers, booleans) as YAML, in the order of its keys."""
    return yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1_000_000)
