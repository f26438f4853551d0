"""No secret leaves the process inside a record: what stands under a secret's name becomes `***`."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from launchers.masking import MASK as MASK
from launchers.masking import is_secret_name as is_secret_name
from launchers.masking import masked_words, secret_words
from sweeper.known_secrets import KNOWN
from sweeper.records import LaunchRecord, TrialRecord, WorkloadResult
from sweeper.spec import FlagValue, ServerConfig


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


def sealed(record: LaunchRecord) -> LaunchRecord:
    """The record as it may be written down: every text in it without secrets."""
    KNOWN.learn_words(record.argv)
    configs = {name: masked_config(getattr(record, name)).model_dump() for name in ("requested", "canonical")}
    rest = json.loads(record.model_dump_json(exclude=set(configs)))
    hidden = {name: KNOWN.hide_json(value) for name, value in rest.items()}
    argv = [KNOWN.hide(word) for word in masked_words(record.argv)]
    return LaunchRecord.model_validate_json(json.dumps({**hidden, **configs, "argv": argv}))


def masked_config(config: ServerConfig) -> ServerConfig:
    """The configuration as it may be written down. Its key is the same; `with_secrets_of` undoes it.

    The values that it hides are known as secrets from now on.
    """
    KNOWN.learn_settings({**config.flags, **config.env})

    def masked(name: str, value: FlagValue) -> FlagValue:
        if is_secret_name(name) and not isinstance(value, bool):
            return MASK
        return KNOWN.hide(value) if isinstance(value, str) else value

    return ServerConfig(
        flags={name: masked(name, value) for name, value in config.flags.items()},
        env={name: str(masked(name, value)) for name, value in config.env.items()},
    )


def shows_secrets(config: ServerConfig) -> bool:
    """Whether an earlier version wrote it down, which kept secrets and counted them into a trial's key."""
    return any(value != MASK for value in _in_config(config))


def secrets_of(trials: Iterable[TrialRecord]) -> Secrets:
    """The secret values in the trials' configurations and command lines, and those that this process knows."""
    found: set[str] = set(KNOWN.values)
    for trial in trials:
        found.update(_in_config(trial.requested), _in_config(trial.canonical))
        for launch in trial.launches:
            found.update(_in_config(launch.requested), _in_config(launch.canonical), secret_words(launch.argv))
    return Secrets(frozenset(value for value in found if len(value) > 3))


def _in_config(config: ServerConfig) -> list[str]:
    settings = [*config.flags.items(), *config.env.items()]
    return [value for name, value in settings if isinstance(value, str) and is_secret_name(name)]
