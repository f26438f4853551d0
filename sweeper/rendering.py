"""The prompts as they are sent: under the model's chat template, where the server does not apply it itself."""

from __future__ import annotations

from collections.abc import Iterator

from launchers.base import Launcher
from sweeper.engines.base import Engine, HostFacts
from sweeper.errors import ConfigError
from sweeper.load import Load, load_of
from sweeper.spec import ServerConfig, SweepSpec
from sweeper.workload_spec import Prompt, WorkloadSpec

TEMPLATE_TIMEOUT_S = 300.0


def rendered_loads(spec: SweepSpec, engine: Engine, launcher: Launcher, facts: HostFacts) -> tuple[Load, ...]:
    """The load of each workload, in the order of `spec.workloads`, its prompts as they are sent.

    Raises ConfigError when the host cannot apply the model's chat template.
    """
    return tuple(_rendered(workload, spec, engine, launcher, facts) for workload in spec.workloads)


def _rendered(
    workload: WorkloadSpec, spec: SweepSpec, engine: Engine, launcher: Launcher, facts: HostFacts
) -> Load:
    load = load_of(workload)
    prompts = [load.warmup, *(prompt for prompts in load.passes for prompt in prompts)]
    texts = [prompt.text for prompt in prompts]
    base = ServerConfig(flags=spec.engine.flags, env=spec.engine.env)
    argv = engine.template_argv(spec.engine.command, base, facts.model_path, texts) if workload.chat else ()
    if not argv:
        return load
    result = launcher.run(argv, TEMPLATE_TIMEOUT_S, spec.engine.env)
    hint = "workload.chat: the chat template cannot be applied (workload.chat=false sends the bare texts)"
    if result.exit_code != 0:
        lines = (result.stderr or result.stdout).decode("utf-8", "replace").strip().splitlines()
        last = lines[-1][:300] if lines else "it printed nothing"
        raise ConfigError([f"{hint}: {last} (exit code {result.exit_code}, host {launcher.host})"])
    try:
        token_ids = engine.parse_template(result.stdout.decode("utf-8", "replace"))
    except ValueError as error:
        raise ConfigError([f"{hint}: {error}"]) from error
    if len(token_ids) != len(texts):
        raise ConfigError([f"{hint}: {len(token_ids)} answers to {len(texts)} prompts"])
    sent = iter(
        [prompt.model_copy(update={"token_ids": ids}) for prompt, ids in zip(prompts, token_ids, strict=True)]
    )
    return Load(workload, next(sent), tuple(tuple(_take(sent, len(prompts))) for prompts in load.passes))


def _take(prompts: Iterator[Prompt], count: int) -> Iterator[Prompt]:
    return (next(prompts) for _ in range(count))
