"""SGLang 0.5.8 and later: the engine, put together from its rules and from what its server says."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from launchers.base import LaunchSpec
from sweeper.engines.all_reduces import AllReduces
from sweeper.engines.base import (
    Counters,
    Diagnosis,
    Engine,
    Generation,
    HostFacts,
    HttpRequest,
    Identity,
    Placement,
    Speculation,
    StreamedResponse,
)
from sweeper.engines.help_text import long_flags
from sweeper.engines.serving import Loads, OwnFormats, Serving, placed_by
from sweeper.engines.sglang import answers, programs, reports
from sweeper.engines.sglang import spec as rules
from sweeper.engines.sglang.adaptive import adaptive
from sweeper.engines.sglang.all_reduce import all_reduces
from sweeper.engines.sglang.case import case_of
from sweeper.engines.sglang.decode import running_mistakes
from sweeper.engines.sglang.diagnosis import diagnose_log
from sweeper.engines.sglang.env import env_mistakes
from sweeper.engines.sglang.export import export, flag_words, own_formats, rank_words
from sweeper.engines.sglang.flags import config_mistakes, flag_mistakes, takes_whole_numbers
from sweeper.engines.sglang.host_env import FAKERS, UNSET_ENV, faked
from sweeper.engines.sglang.log import fatal_sign, progress, readiness
from sweeper.engines.sglang.lossy import lossy_lines
from sweeper.engines.sglang.model import host_files
from sweeper.engines.sglang.version import version_notice
from sweeper.spec import FlagValue, ServerConfig
from sweeper.workload_spec import Prompt, WorkloadSpec

BYPASS_ACCEPT_LENGTH = 1.05
BYPASS_STEPS = 200
"""A drafter of which so little is kept over so many verify steps is not in force: `EAGLE` instead of `EAGLE3`
gives 1.00 with no error and no warning in any sampled version, and a draft of random weights 1.004."""


DRAFTING_PATHS = (
    "speculative_draft_model_path",
    "speculative_token_map",
    "speculative_adaptive_config",
    "speculative_ngram_external_corpus_path",
    "uno_lora_path",
)


class SGLang:
    """The engine `sglang`: `python -m sglang.launch_server` or `sglang serve`."""

    name = "sglang"
    on_gpus = True
    spans_hosts = True
    faked_by = FAKERS
    times_whole_requests = True
    slots_flag = "max_running_requests"
    health_path = "/health"
    info_path = "/server_info"
    info_timeout_s = 25.0
    metrics_path = "/metrics"

    def flag_mistakes(self, flags: Mapping[str, Sequence[FlagValue]]) -> list[str]:
        """Names that no version has or that are set here, and values that the server refuses."""
        return flag_mistakes(flags)

    def env_mistakes(self, env: Mapping[str, Sequence[str]]) -> list[str]:
        """NCCL's legal values, and variables that would fake what is measured."""
        return env_mistakes(env)

    def takes_whole_numbers(self, flag: str) -> bool:
        """Whether the table of flags says so."""
        return takes_whole_numbers(flag)

    def config_mistakes(self, fixed: Mapping[str, FlagValue], searched: Collection[str]) -> list[str]:
        """Settings whose default changes with the speculation must be given: the baseline's would be others."""
        return config_mistakes(fixed, searched)

    def host_files(self, flags: Mapping[str, Sequence[FlagValue]], model_path: str) -> tuple[str, ...]:
        """config.json of the model and of every draft."""
        return host_files(flags, model_path)

    def canonical(self, config: ServerConfig, facts: HostFacts) -> ServerConfig:
        """After SGLang's own silent rewrites, in the spelling of /server_info."""
        return rules.canonical_config(config, facts)

    def without_effect(self, config: ServerConfig, facts: HostFacts) -> list[str]:
        """Dead knobs, and what this host makes of others."""
        notice = version_notice(facts.engine_version) if facts.engine_version else ""
        return [*([notice] if notice else []), *rules.without_effect(config, facts)]

    def violations(self, config: ServerConfig, facts: HostFacts) -> list[str]:
        """Why SGLang would refuse, crash on, or silently serve something else or something wrong."""
        return rules.rule_violations(config, facts)

    def reported(self, config: ServerConfig, facts: HostFacts) -> Mapping[str, FlagValue]:
        """Data-parallel attention divides two of the values that it reports."""
        return rules.reported_flags(config, facts)

    def baseline(self, config: ServerConfig, facts: HostFacts) -> ServerConfig:
        """`config` without speculative decoding, canonical."""
        return rules.baseline_config(config, facts)

    def is_speculative(self, config: ServerConfig) -> bool:
        """Whether a speculative algorithm is asked for."""
        return rules.is_speculative(config.flags)

    def speculation(self) -> Speculation | None:
        """The EAGLE family drafts a tree in steps; NGRAM, DFLASH and the rest draft otherwise."""
        return rules.SPECULATION

    def all_reduces(self, flags: Mapping[str, Sequence[FlagValue]], facts: HostFacts) -> AllReduces | None:
        """Over the GPUs of a tensor-parallel group, where SGLang does not use kernels of its own for them."""
        return all_reduces(flags, facts)

    def simplicity(self, config: ServerConfig) -> tuple[float, ...]:
        """No speculation, then n-grams, chains, trees; fewer steps, fewer draft tokens, fewer other flags."""
        return rules.simplicity(config.flags)

    def version_argv(self, command: Sequence[str]) -> tuple[str, ...]:
        """The package's version, asked of the server's own Python: the server itself takes 20 s to tell."""
        return programs.version_argv(command)

    def parse_version(self, output: str) -> str:
        """`0.5.15.post1`. Raises ValueError when there is none, or one too old."""
        return programs.version_in(output)

    def help_argv(self, command: Sequence[str]) -> tuple[str, ...]:
        """`COMMAND --help`."""
        return (*command, "--help")

    def known_flags(self, help_text: str) -> frozenset[str]:
        """Every long flag in the text; empty when --model-path is not among them: some other program spoke."""
        return long_flags(help_text, "model_path")

    def launch_spec(self, config: ServerConfig, placement: Placement) -> LaunchSpec:
        """The command line; the nonce is the served model's name, which /server_info repeats.

        A server that spans several hosts has one such line per rank, alike but for the rank.
        """
        argv = [*placement.command, "--model-path", placement.model_path, "--served-model-name", placement.nonce]
        argv += ["--host", placement.bind, "--port", str(placement.port), "--enable-metrics"]
        argv += [word for words in flag_words(config.flags).values() for word in words]
        unset = tuple(name for name in UNSET_ENV if name not in config.env)
        spec = LaunchSpec(tuple(argv), placement.port, placement.nonce, env=config.env, unset_env=unset)
        if placement.num_nodes == 1:
            return spec
        ranks = [
            replace(spec, argv=(*spec.argv, *words), nonce=f"{spec.nonce}-{rank}" if rank else spec.nonce)
            for rank, words in enumerate(rank_words(placement.num_nodes, placement.node_address))
        ]
        return replace(ranks[0], others=tuple(ranks[1:]))

    def placed(self, argv: Sequence[str]) -> Placement:
        """What `launch_spec` was given. Raises ValueError for another command line."""
        return placed_by(argv, "--model-path", "--served-model-name")

    def export(self, config: ServerConfig, placement: Placement, facts: HostFacts) -> Serving:
        """On each host as many GPUs as the parallel groups need; the image of the measured version."""
        return export(config, placement, facts.engine_version, self.health_path)

    def own_formats(
        self, serving: Serving, measured: Sequence[Loads], noise_pct: float, facts: HostFacts
    ) -> OwnFormats:
        """The file for `--config`, and steps by batch size where several concurrencies were measured."""
        return own_formats(serving, adaptive(measured, noise_pct, facts))

    def readiness(self, log: str) -> str:
        """The phase of the start. Ready is told by the server's health alone; the log names the way there."""
        return readiness(log)

    def progress(self, log: str) -> str:
        """How many of the weights' files, or of the graphs, are done."""
        return progress(log)

    def fatal_sign(self, log: str) -> str:
        """A line after which this server will never answer again, though its main process may live on."""
        return fatal_sign(log)

    def identity(self, info: Mapping[str, Any]) -> Identity:
        """Served name and model path from /server_info. Raises ValueError when one is missing."""
        return reports.parse_identity(info)

    def effective(self, info: Mapping[str, Any]) -> dict[str, FlagValue]:
        """The resolved arguments, as /server_info has them."""
        return reports.parse_effective(info)

    def slots(self, flags: Mapping[str, FlagValue]) -> int | None:
        """`max_running_requests`; without it the memory decides."""
        value = flags.get(self.slots_flag)
        return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None

    def context_tokens(self, flags: Mapping[str, FlagValue], facts: HostFacts) -> int | None:
        """`context_length`, else the model's own."""
        given, target = flags.get("context_length"), case_of({}, {}, facts).target
        own = target.context_length if target is not None and not target.error else None
        return given if isinstance(given, int) and not isinstance(given, bool) and given > 0 else own

    def lossy(self, config: ServerConfig, baseline: ServerConfig) -> list[str]:
        """Accept thresholds, other precisions and weights; not what only rounds in another order."""
        return lossy_lines(config, baseline)

    def remembers(self, config: ServerConfig) -> str:
        """A prefix cache outside of the server. NGRAM forgets: a flush empties its trie (clear_cache_pool)."""
        storage = config.flags.get("hicache_storage_backend")
        if storage and config.flags.get("enable_hierarchical_cache") is True:
            return f"hicache_storage_backend {storage} keeps prefixes outside of the server, which a flush leaves"
        return ""

    def faked(self, environ: Mapping[str, str]) -> str:
        """SGLANG_SIMULATE_ACC_LEN and its like, under all of their names."""
        return faked(environ)

    def model_paths(self, flags: Mapping[str, Sequence[FlagValue]]) -> tuple[str, ...]:
        """Drafts, and the files that shape what is drafted."""
        found = (value for name in DRAFTING_PATHS for value in flags.get(name, ()))
        return tuple(dict.fromkeys(path for path in found if isinstance(path, str) and path))

    def build_argv(self, command: Sequence[str]) -> tuple[str, ...]:
        """Commit, torch, CUDA, NCCL and the kernels' packages, asked of the server's own Python."""
        return programs.build_argv(command)

    def parse_build(self, output: str) -> Mapping[str, str]:
        """Name to version; empty when that Python did not answer."""
        return programs.build_in(output)

    def flush(self) -> HttpRequest | None:
        """Empties the prefix cache; refused while a request runs."""
        return answers.flush_request()

    def flushed(self, answer: bytes) -> bool:
        """Its status says it."""
        return True

    def template_argv(
        self, command: Sequence[str], config: ServerConfig, model_path: str, texts: Sequence[str]
    ) -> tuple[str, ...]:
        """The model's chat template, applied by the Python that the server runs under."""
        tokenizer = str(config.flags.get("tokenizer_path", model_path))
        trust = config.flags.get("trust_remote_code") is True
        return programs.template_argv(command, tokenizer, trust, texts)

    def parse_template(self, output: str) -> list[tuple[int, ...]]:
        """The token ids of each text. Raises ValueError."""
        return programs.token_ids_in(output)

    def request(self, prompt: Prompt, workload: WorkloadSpec, max_tokens: int) -> HttpRequest:
        """A streamed /generate: the only endpoint whose answers count verify steps and accepted drafts."""
        return HttpRequest("POST", "/generate", answers.request_body(prompt, workload, max_tokens))

    def parse(self, response: StreamedResponse) -> Generation:
        """The answer, understood. Raises ValueError when it is not a complete, sensible one."""
        return answers.parse_generate(response)

    def counters(self, metrics_text: str) -> Counters:
        """The totals on /metrics, where this version has any; gauges are not counters."""
        return reports.parse_counters(metrics_text)

    def bypass(self, config: ServerConfig, metrics: Mapping[str, float]) -> str:
        """Next to nothing of the drafts was ever kept: the wrong algorithm, or no draft of this model."""
        steps, length = metrics.get("num_verify_steps", 0), metrics.get("accept_length")
        if not self.is_speculative(config) or length is None or length >= BYPASS_ACCEPT_LENGTH:
            return ""
        if steps < BYPASS_STEPS or config.flags.get("speculative_algorithm") == "NGRAM":
            return ""  # n-grams may truly find nothing in new text
        return (
            f"accept_length {length:.3f} over {steps:.0f} verify steps: the drafts are never kept. Is the draft "
            f"model made for this target, and for {config.flags.get('speculative_algorithm')}? (each is counted)"
        )

    def running_mistakes(self, config: ServerConfig, log: str) -> list[str]:
        """CUDA graphs that were asked for and not used, and other things that only the log shows."""
        return running_mistakes(config, log)

    def diagnose(self, log: str, exit_code: int | None) -> Diagnosis | None:
        """What went wrong; None when the log does not show it (137 is SGLang's ordinary exit code)."""
        return diagnose_log(log, exit_code)


ENGINE: type[Engine] = SGLang
