"""Secrets stay out of MLflow and of reports: values of settings whose name says that they are one become `***`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import zip_longest

from sweeper.records import LaunchRecord, TrialRecord, WorkloadResult
from sweeper.spec import FlagValue, ServerConfig

MASK = "***"
_WORDS = frozenset({"token", "key", "secret", "password", "passwd", "passphrase", "credential", "credentials"})


@dataclass(frozen=True)
class Secrets:
    """Values that must not be shown; nor are they in a repr. Shorter than four characters cannot be told apart."""

    values: frozenset[str]

    def __repr__(self) -> str:
        return f"Secrets({len(self.values)} values)"

    def hide(self, text: str) -> str:
        """`text` with every secret value replaced by `***`."""
        for value in sorted(self.values, key=len, reverse=True):
            text = text.replace(value, MASK)
        return text

    def masked(self, trial: TrialRecord) -> TrialRecord:
        """The trial with every secret in what a report shows replaced by `***`."""
        launches = tuple(map(self._masked_launch, trial.launches)) if self.values else trial.launches
        configs = {
            "requested": self._masked_config(trial.requested),
            "canonical": self._masked_config(trial.canonical),
        }
        return trial.model_copy(update={**configs, "launches": launches})

    def _masked_launch(self, launch: LaunchRecord) -> LaunchRecord:
        texts = ("argv", "surprises", "doubts", "lossy")
        update: dict[str, object] = {name: self._all(getattr(launch, name)) for name in texts}
        update |= {
            "estimated": self.hide(launch.estimated),
            "provenance": {name: self.hide(value) for name, value in launch.provenance.items()},
            "gpu": launch.gpu.model_copy(
                update={"others": self._all(launch.gpu.others), "notes": self._all(launch.gpu.notes)}
            ),
            "others": {name: self._masked_result(result) for name, result in launch.others.items()},
        }
        update |= {
            "requested": self._masked_config(launch.requested),
            "canonical": self._masked_config(launch.canonical),
        }
        if (failure := launch.failure) is not None:
            shown = {"message": self.hide(failure.message), "evidence": self._all(failure.evidence)}
            update["failure"] = failure.model_copy(update=shown)
        return launch.model_copy(update=update)

    def _masked_result(self, result: WorkloadResult) -> WorkloadResult:
        return result.model_copy(update={"doubts": self._all(result.doubts)})

    def _masked_config(self, config: ServerConfig) -> ServerConfig:
        def masked(value: FlagValue) -> FlagValue:
            return self.hide(value) if isinstance(value, str) else value

        return ServerConfig(
            flags={name: masked(value) for name, value in config.flags.items()},
            env={name: self.hide(value) for name, value in config.env.items()},
        )

    def _all(self, texts: Iterable[str]) -> tuple[str, ...]:
        return tuple(self.hide(text) for text in texts)


def is_secret_name(name: str) -> bool:
    """Whether a flag or variable of this name holds a secret: its last word says so (`HF_TOKEN`, `api-key`).

    Flags that count tokens (`num_draft_tokens`) end with another word.
    """
    return re.split(r"[_.-]", name.lower())[-1] in _WORDS


def secrets_of(trials: Iterable[TrialRecord]) -> Secrets:
    """The secret values in the trials' configurations and command lines."""
    found: set[str] = set()
    for trial in trials:
        found.update(_in_config(trial.requested), _in_config(trial.canonical))
        for launch in trial.launches:
            found.update(_in_config(launch.requested), _in_config(launch.canonical), _in_argv(launch))
    return Secrets(frozenset(value for value in found if len(value) > 3))


def _in_config(config: ServerConfig) -> list[str]:
    settings = [*config.flags.items(), *config.env.items()]
    return [value for name, value in settings if isinstance(value, str) and is_secret_name(name)]


def _in_argv(launch: LaunchRecord) -> Iterator[str]:
    for word, following in zip_longest(launch.argv, launch.argv[1:], fillvalue=""):
        name, equals, value = word.partition("=")
        if word.startswith("-") and is_secret_name(name) and not (following.startswith("-") and not equals):
            yield value if equals else following
