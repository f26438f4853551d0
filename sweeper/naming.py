"""How a configuration is called in tables and logs: by what distinguishes it from the baseline."""

from __future__ import annotations

from collections.abc import Sequence

from sweeper.spec import ServerConfig


def difference_text(config: ServerConfig, base: ServerConfig) -> str:
    """What distinguishes `config` from `base`, in as few words as tell it: `ngram-simple n3 m4`.

    A word is a text value by itself, a number behind the last word of its flag's name (behind the last two where
    one would be ambiguous), a bare flag's name, `no NAME` for what only `base` has, and NAME=VALUE for
    environment variables; "baseline" when nothing differs.
    """
    changed = {name: value for name, value in config.flags.items() if base.flags.get(name) != value}
    lasts = [_last_words(name, 1) for name in changed]
    words = [_file_name(value) for value in changed.values() if isinstance(value, str)]
    for name, value in changed.items():
        if isinstance(value, bool):
            words.append(name if value else f"no {name}")
        elif not isinstance(value, str):
            unique = lasts.count(_last_words(name, 1)) == 1
            words.append(f"{_last_words(name, 1 if unique else 2)}{value}")
    words += [f"no {name}" for name in base.flags if name not in config.flags]
    words += [f"{name}={value}" for name, value in config.env.items() if base.env.get(name) != value]
    words += [f"no {name}" for name in base.env if name not in config.env]
    return " ".join(words) or "baseline"


def _file_name(value: str) -> str:
    return value.rpartition("/")[2] or value if value.startswith(("/", "./", "~/")) else value


def _last_words(name: str, count: int) -> str:
    return "_".join(name.replace("-", "_").split("_")[-count:])


def without_common_words(names: Sequence[str]) -> list[str]:
    """The names without the words that all of them have; one that would be left empty is kept as it is."""
    split = [name.split() for name in names]
    common = set.intersection(*map(set, split)) if len(split) > 1 else set()
    return [" ".join(word for word in words if word not in common) or " ".join(words) for words in split]
