"""vLLM: the engine, put together from its rules and from what its server says. Read and run as 0.32.0."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from launchers.base import LaunchSpec
from sweeper.engines import server_python
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
from sweeper.engines.draft_counters import parse_counters
from sweeper.engines.help_text import long_flags
from sweeper.engines.openai_stream import completion_request
from sweeper.engines.own_template import AppliesTemplates
from sweeper.engines.serving import Loads, OwnFormats, Serving
from sweeper.engines.vllm import answers, rules
from sweeper.engines.vllm import export as exports
from sweeper.engines.vllm import log as server_log
from sweeper.engines.vllm.diagnosis import diagnose_log
from sweeper.engines.vllm.flags import flag_mistakes
from sweeper.engines.vllm.lossy import lossy_lines
from sweeper.engines.vllm.model import host_files, model_at
from sweeper.engines.vllm.running import bypass, running_mistakes
from sweeper.engines.vllm.table import KNOWN_ENTRIES, METHOD, MODEL
from sweeper.spec import FlagValue, ServerConfig
from sweeper.workload_spec import Prompt, WorkloadSpec

ENV = {"VLLM_SERVER_DEV_MODE": "1"}
"""Opens the endpoints that tell the configuration and empty the prefix cache. They are for nobody else: a server
that is measured listens on its host's loopback address."""

PARTS = {**server_python.PARTS, "flashinfer-python": "flashinfer"}

_RANKS = "tensor_parallel_size"

_VERSION = """
from importlib.metadata import PackageNotFoundError, version
try:
    print("vllm", version("vllm"))
except PackageNotFoundError:
    from vllm._version import __version__
    print("vllm", __version__)
"""
_KEPT_ELSEWHERE = ("kv_transfer_config", "kv_offloading_size", "kv_offloading_backend")


class Vllm(AppliesTemplates):
    """The engine `vllm`: `vllm serve`."""

    name = "vllm"
    on_gpus = True
    spans_hosts = False
    faked_by: tuple[str, ...] = ()
    times_whole_requests = False
    slots_flag = "max_num_seqs"
    health_path = "/health"
    info_path = answers.INFO_PATH
    info_timeout_s = answers.INFO_TIMEOUT_S
    metrics_path = "/metrics"

    def flag_mistakes(self, flags: Mapping[str, Sequence[FlagValue]]) -> list[str]:
        """Names that are misspelt, set here or entries of --speculative-config; values that vLLM refuses."""
        return flag_mistakes(flags)

    def env_mistakes(self, env: Mapping[str, Sequence[str]]) -> list[str]:
        """What every launch sets itself."""
        return [f"{name}: is set for every launch and cannot be configured" for name in env if name in ENV]

    def takes_whole_numbers(self, flag: str) -> bool:
        """Whether the table of flags says so."""
        return rules.takes_whole_numbers(flag)

    def config_mistakes(self, fixed: Mapping[str, FlagValue], searched: Collection[str]) -> list[str]:
        """None: no limit on requests or memory changes its default with the speculation."""
        return []

    def host_files(self, flags: Mapping[str, Sequence[FlagValue]], model_path: str) -> tuple[str, ...]:
        """config.json of the model and of every draft."""
        return host_files(flags, model_path)

    def model_paths(self, flags: Mapping[str, Sequence[FlagValue]]) -> tuple[str, ...]:
        """The draft models."""
        paths = (path for path in flags.get(MODEL, ()) if isinstance(path, str) and path)
        return tuple(dict.fromkeys(paths))

    def canonical(self, config: ServerConfig, facts: HostFacts) -> ServerConfig:
        """Without what changes nothing, defaults left away, both lengths of looked-up n-grams filled in."""
        return ServerConfig(flags=rules.canonical_flags(config.flags), env=dict(sorted(config.env.items())))

    def without_effect(self, config: ServerConfig, facts: HostFacts) -> list[str]:
        """Entries that the method does not read, and a method of which nothing is known."""
        return rules.without_effect(config)

    def violations(self, config: ServerConfig, facts: HostFacts) -> list[str]:
        """Why vLLM would refuse or crash. It serves nothing silently else, as far as is known."""
        return rules.violations(config, facts)

    def reported(self, config: ServerConfig, facts: HostFacts) -> Mapping[str, FlagValue]:
        """What was given, but for what vLLM resolves itself (`auto`) or spells otherwise."""
        spelt = {"half": "float16", "float": "float32"}
        flags = {name: value for name, value in config.flags.items() if value != "auto"}
        return flags | ({"dtype": spelt[str(flags["dtype"])]} if flags.get("dtype") in spelt else {})

    def baseline(self, config: ServerConfig, facts: HostFacts) -> ServerConfig:
        """`config` without speculative decoding, canonical."""
        return self.canonical(config.without(frozenset({METHOD})), facts)

    def is_speculative(self, config: ServerConfig) -> bool:
        """Whether a method is asked for."""
        return bool(rules.method_of(config.flags))

    def speculation(self) -> Speculation | None:
        """Chains of `spec_tokens`; n-grams and suffixes are looked up in the text instead."""
        return rules.SPECULATION

    def all_reduces(self, flags: Mapping[str, Sequence[FlagValue]], facts: HostFacts) -> AllReduces | None:
        """Over the tensor-parallel GPUs, where vLLM does not use a kernel of its own for small messages."""
        target = model_at(facts.model_path, facts)
        return AllReduces(
            num_ranks=max((v for v in flags.get(_RANKS, ()) if type(v) is int), default=1),
            ranks_flag=_RANKS,
            hidden_size=target.hidden_size if target else None,
            num_layers=target.num_layers if target else None,
        )

    def slots(self, flags: Mapping[str, FlagValue]) -> int | None:
        """`max_num_seqs`; without it vLLM chooses by the GPU, never less than is asked here."""
        value = flags.get(self.slots_flag)
        return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None

    def context_tokens(self, flags: Mapping[str, FlagValue], facts: HostFacts) -> int | None:
        """`max_model_len`, else the model's own, which vLLM takes over as far as it fits into memory."""
        given, target = flags.get("max_model_len"), model_at(facts.model_path, facts)
        if isinstance(given, int) and not isinstance(given, bool) and given > 0:
            return given
        return target.context_length if target and given is None else None

    def lossy(self, config: ServerConfig, baseline: ServerConfig) -> list[str]:
        """Synthetic acceptance, other precisions, weights and samplers; not what only rounds in another order."""
        return lossy_lines(config, baseline)

    def remembers(self, config: ServerConfig) -> str:
        """Suffix decoding keeps all answers in a tree of its own, which no endpoint empties."""
        if rules.method_of(config.flags) == "suffix":
            if config.flags.get("spec_suffix_decoding_max_cached_requests") == 0:
                return ""
            return "suffix keeps what it has written; spec_suffix_decoding_max_cached_requests=0 forgets"
        for name in _KEPT_ELSEWHERE:
            if config.flags.get(name):
                return f"{name} keeps prefixes outside of the GPU, which emptying the prefix cache leaves"
        return ""

    def faked(self, environ: Mapping[str, str]) -> str:
        """No variable fakes anything; synthetic acceptance is a flag, and lossy."""
        return ""

    def simplicity(self, config: ServerConfig) -> tuple[float, ...]:
        """No speculation, then without a draft model; fewer draft tokens, fewer other flags."""
        return rules.simplicity(config.flags)

    def version_argv(self, command: Sequence[str]) -> tuple[str, ...]:
        """The package's version, asked of the server's own Python: `vllm --version` imports everything first."""
        return (*server_python.python_of(command, "vllm"), "-c", _VERSION)

    def parse_version(self, output: str) -> str:
        """`0.32.0`, `0.32.0+cpu`. Raises ValueError when there is none."""
        found = re.search(r"^vllm (\d[\w.+-]{0,60})\s*$", output, re.MULTILINE)
        if found is None:
            raise ValueError(f"no line `vllm VERSION` in {output.strip()[-200:]!r}")
        return found[1]

    def build_argv(self, command: Sequence[str]) -> tuple[str, ...]:
        """Commit, torch, CUDA, NCCL and the kernels' packages, asked of the server's own Python."""
        return server_python.build_argv(server_python.python_of(command, "vllm"), "vllm", PARTS)

    def parse_build(self, output: str) -> Mapping[str, str]:
        """Name to version; empty when that Python did not answer."""
        return server_python.build_in(output, PARTS)

    def help_argv(self, command: Sequence[str]) -> tuple[str, ...]:
        """`COMMAND --help=all`: without `all` vLLM lists only the groups of its flags."""
        return (*command, "--help=all")

    def known_flags(self, help_text: str) -> frozenset[str]:
        """Every long flag in the text, and the entries of --speculative-config, which are flags here.

        Empty when --served-model-name is not among them: some other program spoke.
        """
        found = long_flags(help_text, "served_model_name")
        return found | KNOWN_ENTRIES if "speculative_config" in found else found

    def launch_spec(self, config: ServerConfig, placement: Placement) -> LaunchSpec:
        """The command line; the nonce is the served model's name, which /server_info repeats."""
        argv = [*placement.command, *exports.model_words(placement.command, placement.model_path)]
        argv += ["--served-model-name", placement.nonce, "--host", placement.bind, "--port", str(placement.port)]
        argv += [word for words in exports.flag_words(config.flags).values() for word in words]
        unset = tuple(name for name in exports.UNSET_ENV if name not in config.env)
        env = {**ENV, **config.env}
        return LaunchSpec(tuple(argv), placement.port, placement.nonce, env=env, unset_env=unset)

    def placed(self, argv: Sequence[str]) -> Placement:
        """What `launch_spec` was given. Raises ValueError for another command line."""
        return exports.placed(argv)

    def export(self, config: ServerConfig, placement: Placement, facts: HostFacts) -> Serving:
        """As many GPUs as the parallel groups need; the image of the measured version."""
        return exports.export(config, placement, facts.engine_version, self.health_path)

    def own_formats(
        self, serving: Serving, measured: Sequence[Loads], noise_pct: float, facts: HostFacts
    ) -> OwnFormats:
        """The file for `vllm serve --config`."""
        return exports.own_formats(serving)

    def readiness(self, log: str) -> str:
        """The phase of the start. Ready is told by the server's health alone; the log names the way there."""
        return server_log.readiness(log)

    def progress(self, log: str) -> str:
        """How many of the weights' files, or of the graphs, are done."""
        return server_log.progress(log)

    def fatal_sign(self, log: str) -> str:
        """A line after which this server will never answer again, though a process of it may live on."""
        return server_log.fatal_sign(log)

    def identity(self, info: Mapping[str, Any]) -> Identity:
        """Served name and model path. Raises ValueError when one is missing."""
        return answers.parse_identity(info)

    def effective(self, info: Mapping[str, Any]) -> dict[str, FlagValue]:
        """The resolved settings."""
        return answers.parse_effective(info)

    def flush(self) -> HttpRequest | None:
        """Empties the prefix cache."""
        return answers.flush_request()

    def flushed(self, answer: bytes) -> bool:
        """`{"success": false}` comes with status 200 while the last request still holds its blocks."""
        return answers.flushed(answer)

    def request(self, prompt: Prompt, workload: WorkloadSpec, max_tokens: int) -> HttpRequest:
        """A streamed (chat) completion."""
        return completion_request(prompt, workload, max_tokens)

    def parse(self, response: StreamedResponse) -> Generation:
        """The answer, understood. What was drafted is told by the counters alone."""
        return answers.parse_generation(response)

    def counters(self, metrics_text: str) -> Counters:
        """The totals of drafting: exact over any window."""
        return parse_counters(metrics_text, "vllm")

    def bypass(self, config: ServerConfig, metrics: Mapping[str, float]) -> str:
        """Nothing was drafted, or next to nothing of the drafts was ever kept."""
        return bypass(config.flags, metrics)

    def running_mistakes(self, config: ServerConfig, log: str) -> list[str]:
        """CUDA graphs that were given up, and another attention backend than was asked for."""
        return running_mistakes(config.flags, log)

    def diagnose(self, log: str, exit_code: int | None) -> Diagnosis | None:
        """What went wrong; None when the log does not show it."""
        return diagnose_log(log, exit_code)


ENGINE: type[Engine] = Vllm
