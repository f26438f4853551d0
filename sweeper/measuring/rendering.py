"""The prompts as they are sent: under the model's chat template, where the server does not apply it itself."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from launchers.base import Launcher
from sweeper.engines.base import Engine, HostFacts
from sweeper.errors import ConfigError
from sweeper.measuring.load import Load, loads_of
from sweeper.spec import ServerConfig, SweepSpec
from sweeper.workload_spec import Prompt

TEMPLATE_TIMEOUT_S = 300.0

_MAX_BYTES = 120_000
"""Of the texts of one call, as JSON: Linux takes 128 KiB in one argument (MAX_ARG_STRLEN, 131,072 bytes)."""

_MAX_TEXTS = 500
"""Of one call. Its answer may have 8 MiB: about 8 bytes per token, and a template of its own for each text."""

_HINT = "workload.chat: the chat template cannot be applied (workload.chat=false sends the bare texts)"


def rendered_loads(spec: SweepSpec, engine: Engine, launcher: Launcher, facts: HostFacts) -> tuple[Load, ...]:
    """The load of each workload, in the order of `spec.workloads`, its prompts as they are sent.

    Each text is put under the template once, as many as possible in one call, which takes seconds. Raises
    ConfigError when the host cannot apply the model's chat template, HostLost.
    """
    loads = loads_of(spec.workloads)
    texts = list(dict.fromkeys(prompt.text for load in loads if load.workload.chat for prompt in _prompts(load)))
    template = _Template(spec, engine, launcher, facts)
    token_ids: dict[str, tuple[int, ...]] = {}
    for batch in list(_batches(texts)) if texts and template.argv(texts[:1]) else ():
        token_ids |= zip(batch, template.apply(batch), strict=True)
    return tuple(_with_ids(load, token_ids) if load.workload.chat else load for load in loads)


@dataclass(frozen=True)
class _Template:
    """The model's chat template on the host."""

    spec: SweepSpec
    engine: Engine
    launcher: Launcher
    facts: HostFacts

    def argv(self, texts: Sequence[str]) -> tuple[str, ...]:
        """The command that applies it; empty when the server does."""
        asked = self.spec.engine
        base = ServerConfig(flags=asked.flags, env=asked.env)
        return self.engine.template_argv(asked.command, base, self.facts.model_path, texts)

    def apply(self, texts: Sequence[str]) -> list[tuple[int, ...]]:
        """The token ids of each text. Raises ConfigError, HostLost."""
        result = self.launcher.run(self.argv(texts), TEMPLATE_TIMEOUT_S, self.spec.engine.env)
        if result.exit_code != 0:
            lines = (result.stderr or result.stdout).decode("utf-8", "replace").strip().splitlines()
            last = lines[-1][:300] if lines else "it printed nothing"
            raise ConfigError([f"{_HINT}: {last} (exit code {result.exit_code}, host {self.launcher.host})"])
        try:
            token_ids = self.engine.parse_template(result.stdout.decode("utf-8", "replace"))
        except ValueError as error:
            raise ConfigError([f"{_HINT}: {error}"]) from error
        if len(token_ids) != len(texts):
            raise ConfigError([f"{_HINT}: {len(token_ids)} answers to {len(texts)} prompts"])
        return token_ids


def _batches(texts: Sequence[str]) -> Iterator[list[str]]:
    """The texts, in order, in lists that one call can take. Raises ConfigError for a text that none can."""
    batch: list[str] = []
    size = 0
    for text in texts:
        length = len(json.dumps(text)) + 2  # ASCII: other characters are escaped
        if length > _MAX_BYTES:
            start = f"the text that begins {text[:40]!r} has {length:,} bytes as JSON"
            raise ConfigError([f"{_HINT}: {start}; the command that applies it takes {_MAX_BYTES:,}"])
        if batch and (size + length > _MAX_BYTES or len(batch) == _MAX_TEXTS):
            yield batch
            batch, size = [], 0
        batch.append(text)
        size += length
    yield batch


def _prompts(load: Load) -> Iterator[Prompt]:
    yield load.warmup
    for prompts in load.passes:
        yield from prompts


def _with_ids(load: Load, token_ids: Mapping[str, tuple[int, ...]]) -> Load:
    def sent(prompt: Prompt) -> Prompt:
        ids = token_ids.get(prompt.text)
        return prompt if ids is None else prompt.model_copy(update={"token_ids": ids})

    passes = tuple(tuple(map(sent, prompts)) for prompts in load.passes)
    return replace(load, warmup=sent(load.warmup), passes=passes)
