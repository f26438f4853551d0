"""Secrets stay out of reports: the values of settings whose name says that they hold one become `***`."""

from __future__ import annotations

import re

from sweeper.records import LaunchRecord, TrialRecord
from sweeper.spec import FlagValue, ServerConfig

_SECRET_WORDS = frozenset({"token", "key", "secret", "password", "passwd", "credential", "credentials"})


def is_secret_name(name: str) -> bool:
    """Whether a setting of this name holds a secret: its last word says so (`HF_TOKEN`, `--api-key`)."""
    return re.split(r"[_.-]", name.lower())[-1] in _SECRET_WORDS


def secrets_of(trials: tuple[TrialRecord, ...]) -> tuple[str, ...]:
    """Secret values in the trials' settings, longest first; shorter than four characters cannot be told apart."""
    configs = [config for trial in trials for config in (trial.requested, trial.canonical)]
    found = {v for c in configs for n, v in [*c.flags.items(), *c.env.items()] if is_secret_name(n)}
    for argv in {launch.argv for trial in trials for launch in trial.launches}:
        for word, following in zip(argv, (*argv[1:], ""), strict=True):
            name, equals, value = word.partition("=")
            if word.startswith("-") and is_secret_name(name):
                found.add(value if equals else following)
    texts = (value for value in found if isinstance(value, str) and len(value) > 3 and value[0] != "-")
    return tuple(sorted(texts, key=len, reverse=True))


def hide(text: str, secrets: tuple[str, ...]) -> str:
    """`text` with every secret replaced by `***`."""
    for secret in secrets:
        text = text.replace(secret, "***")
    return text


def without_secrets(trial: TrialRecord, secrets: tuple[str, ...]) -> TrialRecord:
    """The trial with every secret in what a report shows replaced by `***`."""

    def value(setting: FlagValue) -> FlagValue:
        return hide(setting, secrets) if isinstance(setting, str) else setting

    def config(given: ServerConfig) -> ServerConfig:
        flags = {name: value(setting) for name, setting in given.flags.items()}
        return ServerConfig(flags=flags, env={name: hide(text, secrets) for name, text in given.env.items()})

    def texts(given: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(hide(text, secrets) for text in given)

    def launch(given: LaunchRecord) -> LaunchRecord:
        update: dict[str, object] = {"argv": texts(given.argv), "surprises": texts(given.surprises)}
        update |= {"requested": config(given.requested), "canonical": config(given.canonical)}
        if (failure := given.failure) is not None:
            shown = {"message": hide(failure.message, secrets), "evidence": texts(failure.evidence)}
            update["failure"] = failure.model_copy(update=shown)
        return given.model_copy(update=update)

    return trial.model_copy(
        update={
            "requested": config(trial.requested),
            "canonical": config(trial.canonical),
            "launches": tuple(map(launch, trial.launches)),
        }
    )
