"""The secret values that this process was given, so that nothing it writes down or shows holds one.

They are learned from the environment when the command line starts and from the configuration when it is read.
Whatever leaves the process (study, artifacts, MLflow, screen, log, report, error messages) is passed through
`KNOWN.hide`: one place to learn and one to hide, since whoever words an error knows no configuration.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from urllib.parse import quote, unquote

from launchers.masking import MASK, hide_shapes, is_secret_name, secret_words, shaped_secrets

SHORTEST = 4
"""Shorter values cannot be told from other text; settings of a secret's name are hidden whatever their length."""

_SHORTEST_INHERITED = 8
"""Of the environment at large, which has many variables that are no secret in spite of their names."""


class KnownSecrets:
    """Values that must not be shown; nor are they in a repr."""

    def __init__(self) -> None:
        self._values: list[str] = []

    def __repr__(self) -> str:
        return f"KnownSecrets({len(self._values)} values)"

    @property
    def values(self) -> frozenset[str]:
        """What is hidden."""
        return frozenset(self._values)

    def learn(self, values: Iterable[str], shortest: int = SHORTEST) -> None:
        """From now on hide these, also as they are spelt in an address."""
        spelt = {form for value in values for form in (value, quote(value, safe=""), unquote(value))}
        found = {form for form in spelt if len(form) >= shortest and form != MASK}
        self._values = sorted(found | set(self._values), key=lambda value: (-len(value), value))

    def learn_environment(self, environment: Mapping[str, str]) -> None:
        """Variables whose names say that they hold a secret, and passwords in addresses (a proxy's)."""
        self.learn((v for k, v in environment.items() if is_secret_name(k)), _SHORTEST_INHERITED)
        self.learn((s for v in environment.values() if "://" in v for s in shaped_secrets(v)), _SHORTEST_INHERITED)

    def learn_settings(self, settings: Mapping[str, object]) -> None:
        """Flags or variables: the values under a secret's name, and what is spelt as a secret inside another."""
        texts = {name: str(value) for name, value in settings.items() if not isinstance(value, bool)}
        self.learn(value for name, value in texts.items() if is_secret_name(name))
        self.learn(secret for value in texts.values() for secret in shaped_secrets(value))

    def learn_words(self, words: Iterable[str]) -> None:
        """A command line: `NAME=VALUE` and `--name VALUE` under a secret's name, and what is spelt as a secret."""
        self.learn(form for secret in secret_words(words) for form in (secret, secret.strip("'\"")))

    def learn_tree(self, name: str, value: object) -> None:
        """A configuration as it was read, below the setting `name`."""
        if isinstance(value, Mapping):
            for below, entry in value.items():
                self.learn_tree(str(below), entry)
        elif isinstance(value, list | tuple):
            self.learn_words(str(entry) for entry in value)
            for entry in value:
                self.learn_tree(name, entry)
        elif value is not None:
            self.learn_settings({name: value})

    def hide(self, text: str) -> str:
        """`text` with every known value as `***`, and with whatever else looks like a secret."""
        return hide_shapes(self.hide_values(text))

    def hide_values(self, text: str) -> str:
        """`text` with every known value as `***`."""
        for value in self._values:
            text = text.replace(value, MASK)
        return text

    def hide_bytes(self, content: bytes) -> bytes:
        """Likewise for bytes, of which those that are no UTF-8 stay as they are."""
        return self.hide(content.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")

    def hide_json(self, value: object) -> object:
        """JSON-ready data with every text in it hidden; what stands under a secret's name is hidden whole."""
        if isinstance(value, str):
            return self.hide(value)
        if isinstance(value, Mapping):
            return {name: self._entry(str(name), entry) for name, entry in value.items()}
        return [self.hide_json(each) for each in value] if isinstance(value, list | tuple) else value

    def forget(self) -> None:
        """Know none any more."""
        self._values = []

    def _entry(self, name: str, value: object) -> object:
        return MASK if value and isinstance(value, str) and is_secret_name(name) else self.hide_json(value)


KNOWN = KnownSecrets()
