"""What the sweep needs to know of an inference server. Every method is pure; the sweep does the talking."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from launchers.base import LaunchSpec
from sweeper.engines.all_reduces import AllReduces
from sweeper.engines.exchanges import Counters as Counters
from sweeper.engines.exchanges import Generation as Generation
from sweeper.engines.exchanges import HttpRequest as HttpRequest
from sweeper.engines.exchanges import Identity as Identity
from sweeper.engines.exchanges import StreamedResponse as StreamedResponse
from sweeper.engines.serving import Loads, OwnFormats, Serving
from sweeper.engines.serving import Placement as Placement
from sweeper.errors import FailureKind
from sweeper.spec import FlagValue, ServerConfig
from sweeper.workload_spec import Prompt, WorkloadSpec


@dataclass(frozen=True)
class HostFacts:
    """What was read from the host before the first launch.

    `files`: path to the text of each file that the engine asked for (`Engine.host_files`); None: there is none.
    `known_flags`: the flags that the server's own help lists, with underscores; empty when unknown.
    `build`: what else a number depends on, by name: the engine's `commit`, `cuda`, `nccl`, ..., the host's
    `driver` and `gpu_policy`, `model_revision`, and `draft PATH` with its fingerprint. Absent: not known.
    """

    engine_version: str = ""
    model_path: str = ""
    model_fingerprint: str = ""
    files: Mapping[str, str | None] = field(default_factory=dict)
    known_flags: frozenset[str] = frozenset()
    gpu_names: tuple[str, ...] = ()
    build: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Diagnosis:
    """What a log and an exit code show: the kind of failure and the lines that prove it."""

    kind: FailureKind
    message: str
    evidence: tuple[str, ...] = field(default=())


@dataclass(frozen=True)
class Speculation:
    """Which flags of an engine shape what its drafts are worth, for a search that models it.

    `algorithm` and the rest of `drafter` tell one drafter from another. `num_steps`: draft forwards per verify
    step; `topk`: branches; `draft_tokens`: tokens verified per step. They mean that under `algorithms`, in upper
    case, unless one of `changing` is set. Whatever begins with `prefix` is of drafting alone. `no_graphs`: the
    bare flag that switches CUDA graphs off. `link` of a configuration's GPUs: none, pcie, nvlink, or empty.
    """

    algorithm: str
    drafter: tuple[str, ...]
    num_steps: str
    topk: str
    draft_tokens: str
    algorithms: tuple[str, ...]
    changing: tuple[str, ...] = ()
    prefix: str = ""
    no_graphs: str = ""
    link: Callable[[ServerConfig, HostFacts], str] = lambda config, facts: ""

    @property
    def names(self) -> tuple[str, ...]:
        """All flags that play a role."""
        return (*self.drafter, *self.numbers)

    @property
    def numbers(self) -> tuple[str, ...]:
        """The flags that shape a draft; an engine that only drafts chains has no `topk` and no `draft_tokens`."""
        return tuple(filter(None, (self.num_steps, self.topk, self.draft_tokens)))

    def is_drafting(self, name: str) -> bool:
        """Whether a flag belongs to drafting: a server without speculation has none of these."""
        return name in self.names or (bool(self.prefix) and name.startswith(self.prefix))


class Engine(Protocol):
    """One inference server's rules, command line and answers.

    `info_timeout_s`: how long the page at `info_path` may take when it is asked for first.
    `spans_hosts`: whether one server may span several hosts (`host.nodes`).
    `slots_flag`: the flag that says how many requests are worked on at once.
    `times_whole_requests`: the server's own time of a request has its wait for other requests in it.
    `faked_by`: beginnings of the variables that `faked` needs to see; empty when there are none.
    """

    name: str
    on_gpus: bool
    spans_hosts: bool
    faked_by: tuple[str, ...]
    times_whole_requests: bool
    slots_flag: str
    health_path: str
    info_path: str
    info_timeout_s: float
    metrics_path: str

    def flag_mistakes(self, flags: Mapping[str, Sequence[FlagValue]]) -> list[str]:
        """Mistakes in single values (`flags` has all of each): the flag's name, the value, what is right."""

    def env_mistakes(self, env: Mapping[str, Sequence[str]]) -> list[str]:
        """The same for environment variables: `env` maps each to all values it may take."""

    def takes_whole_numbers(self, flag: str) -> bool:
        """Whether `flag` is known to take whole numbers only: an interval of real ones makes no sense for it."""

    def config_mistakes(self, fixed: Mapping[str, FlagValue], searched: Collection[str]) -> list[str]:
        """What is wrong with the flags of a sweep, fixed and searched, or missing for a fair comparison.

        Each line starts with the dotted path.
        """

    def host_files(self, flags: Mapping[str, Sequence[FlagValue]], model_path: str) -> tuple[str, ...]:
        """Absolute paths of small text files on the host that `canonical` and `violations` need to read.

        `flags` maps a flag to all values it may take.
        """

    def model_paths(self, flags: Mapping[str, Sequence[FlagValue]]) -> tuple[str, ...]:
        """What else is loaded on the host and shapes the numbers, by path or hub name. `flags`: all values."""

    def canonical(self, config: ServerConfig, facts: HostFacts) -> ServerConfig:
        """The same configuration after the engine's known rewrites and without flags that have no effect."""

    def without_effect(self, config: ServerConfig, facts: HostFacts) -> list[str]:
        """Flags and variables of `config` that change nothing on this host, one line each: the name, then why."""

    def violations(self, config: ServerConfig, facts: HostFacts) -> list[str]:
        """Why the server would refuse, crash on or silently ignore `config`; empty when it is legal."""

    def reported(self, config: ServerConfig, facts: HostFacts) -> Mapping[str, FlagValue]:
        """The flags that a server launched with a canonical `config` should report of itself."""

    def baseline(self, config: ServerConfig, facts: HostFacts) -> ServerConfig:
        """`config` without speculative decoding, canonical."""

    def is_speculative(self, config: ServerConfig) -> bool:
        """Whether `config` asks for speculative decoding."""

    def speculation(self) -> Speculation | None:
        """Which flag plays which role in drafting; None when its drafts are not made of steps and branches."""

    def all_reduces(self, flags: Mapping[str, Sequence[FlagValue]], facts: HostFacts) -> AllReduces | None:
        """What a server's GPUs add up by NCCL; None for an engine without it. `flags`: all values of each."""

    def slots(self, flags: Mapping[str, FlagValue]) -> int | None:
        """How many requests a server with these flags works on at once; None: it takes what comes."""

    def context_tokens(self, flags: Mapping[str, FlagValue], facts: HostFacts) -> int | None:
        """The most tokens of one request, prompt and answer together; None where that is not known."""

    def lossy(self, config: ServerConfig, baseline: ServerConfig) -> list[str]:
        """Flags and variables by which `config` may write other text than `baseline` even without any fault.

        One line each: the name, its value, then why. Speculation that verifies exactly is not lossy.
        """

    def remembers(self, config: ServerConfig) -> str:
        """Why a server under `config` writes faster what it has written before, even after `flush`; else empty.

        Such a server is measured with each text once.
        """

    def faked(self, environ: Mapping[str, str]) -> str:
        """Why nothing that a server with this environment reports means anything; empty when nothing is faked."""

    def simplicity(self, config: ServerConfig) -> tuple[float, ...]:
        """Sort key among configurations that are equally fast: the smallest is the simplest."""

    def version_argv(self, command: Sequence[str]) -> tuple[str, ...]:
        """The command line that prints the engine's version."""

    def parse_version(self, output: str) -> str:
        """The version in that output. Raises ValueError when there is none."""

    def build_argv(self, command: Sequence[str]) -> tuple[str, ...]:
        """The command line that prints what the server is built of; empty when there is none."""

    def parse_build(self, output: str) -> Mapping[str, str]:
        """`commit`, `cuda`, `nccl`, ... from that output, as far as they are known; else empty."""

    def help_argv(self, command: Sequence[str]) -> tuple[str, ...]:
        """The command line that prints the flags of the server."""

    def known_flags(self, help_text: str) -> frozenset[str]:
        """The flags that this output lists, with underscores; empty when it is not the server's own help."""

    def launch_spec(self, config: ServerConfig, placement: Placement) -> LaunchSpec:
        """The command line and environment of one launch."""

    def placed(self, argv: Sequence[str]) -> Placement:
        """What `launch_spec` was given besides the configuration. Raises ValueError for another command line."""

    def export(self, config: ServerConfig, placement: Placement, facts: HostFacts) -> Serving:
        """The same server without what only measuring needs."""

    def own_formats(
        self, serving: Serving, measured: Sequence[Loads], noise_pct: float, facts: HostFacts
    ) -> OwnFormats:
        """`serving` in its own formats. `measured`: all configurations of the study, the served one first.

        They differ from start to start by `noise_pct` percent.
        """

    def readiness(self, log: str) -> str:
        """The phase of the start that the log shows (`starting`, `loading weights`, `ready`, ...)."""

    def progress(self, log: str) -> str:
        """How far the newest phase of the start has come (`45 % (28 of 62)`); empty when the log does not say."""

    def fatal_sign(self, log: str) -> str:
        """A line after which the server will never answer again, though its process may live on; else empty."""

    def identity(self, info: Mapping[str, Any]) -> Identity:
        """Who answers, from the JSON at `info_path`. Raises ValueError when it cannot be told."""

    def effective(self, info: Mapping[str, Any]) -> dict[str, FlagValue]:
        """What the running server reports of its own configuration, under flag names."""

    def flush(self) -> HttpRequest | None:
        """The request that empties the server's caches when it is idle; None when it has none."""

    def flushed(self, answer: bytes) -> bool:
        """Whether that request did it, from the body of its answer. A refusal by its status is none."""

    def template_argv(
        self, command: Sequence[str], config: ServerConfig, model_path: str, texts: Sequence[str]
    ) -> tuple[str, ...]:
        """The command that applies the model's chat template to `texts` on the host; empty: the server does."""

    def parse_template(self, output: str) -> list[tuple[int, ...]]:
        """The token ids of each text, from what that command printed. Raises ValueError."""

    def request(self, prompt: Prompt, workload: WorkloadSpec, max_tokens: int) -> HttpRequest:
        """The streamed generation request for one prompt."""

    def parse(self, response: StreamedResponse) -> Generation:
        """The answer, understood. Raises ValueError when it is not a complete, sensible one."""

    def counters(self, metrics_text: str) -> Counters:
        """The totals on the page at `metrics_path`; empty when the page cannot be read."""

    def bypass(self, config: ServerConfig, metrics: Mapping[str, float]) -> str:
        """Why the speculation that `config` asks for is not in force, from what was measured; empty when it is."""

    def running_mistakes(self, config: ServerConfig, log: str) -> list[str]:
        """What the log of a measured server shows to be otherwise than `config` asks, one line each."""

    def diagnose(self, log: str, exit_code: int | None) -> Diagnosis | None:
        """What went wrong, from the log and the exit code; None when they show nothing."""
