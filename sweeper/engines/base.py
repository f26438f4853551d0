"""What the sweep needs to know of an inference server. Every method is pure; the sweep does the talking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from launchers.base import LaunchSpec
from sweeper.errors import FailureKind
from sweeper.spec import FlagValue, Prompt, ServerConfig, WorkloadSpec


@dataclass(frozen=True)
class HostFacts:
    """What was read from the host before the first launch."""

    engine_version: str = ""
    model_path: str = ""
    model_fingerprint: str = ""


@dataclass(frozen=True)
class HttpRequest:
    """One HTTP request to the server, as data."""

    method: str
    path: str
    json: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class StreamedResponse:
    """A streamed answer as it arrived: (milliseconds since the request was sent, one line of the body)."""

    lines: tuple[tuple[float, bytes], ...]
    e2e_latency_ms: float


@dataclass(frozen=True)
class Generation:
    """One answer, understood. A value that the server did not report is None, never 0.

    `ttft_ms` is the time to the first chunk that holds text; `server_decode_ms` the server's own figure
    for all output tokens after the first.
    """

    text: str
    num_output_tokens: int
    ttft_ms: float | None = None
    num_prompt_tokens: int | None = None
    num_drafted_tokens: int | None = None
    num_accepted_tokens: int | None = None
    server_decode_ms: float | None = None
    finish_reason: str = ""


@dataclass(frozen=True)
class Placement:
    """What a launch is given besides its configuration. `nonce`: a word the server must repeat."""

    command: tuple[str, ...]
    model_path: str
    port: int
    nonce: str


@dataclass(frozen=True)
class Counters:
    """The server's own totals since its start; None where the server does not count.

    `num_drafts`: verify steps in which drafts were verified. `accepted_per_position`: by draft position.
    """

    num_drafts: int | None = None
    num_draft_tokens: int | None = None
    num_accepted_tokens: int | None = None
    accepted_per_position: tuple[int, ...] = ()


@dataclass(frozen=True)
class Identity:
    """Who answered: the nonce it was started with and the model it serves."""

    nonce: str
    model_path: str


@dataclass(frozen=True)
class Diagnosis:
    """What a log and an exit code show: the kind of failure and the lines that prove it."""

    kind: FailureKind
    message: str
    evidence: tuple[str, ...] = field(default=())


class Engine(Protocol):
    """One inference server's rules, command line and answers."""

    name: str
    health_path: str
    info_path: str
    metrics_path: str

    def flag_mistakes(self, flags: Mapping[str, Sequence[FlagValue]]) -> list[str]:
        """Mistakes that can be seen in single values: `flags` maps a flag to all values it may take.

        Each line starts with the flag's name, then says the value and what would be right.
        """

    def takes_whole_numbers(self, flag: str) -> bool:
        """Whether `flag` is known to take whole numbers only: an interval of real ones makes no sense for it."""

    def canonical(self, config: ServerConfig) -> ServerConfig:
        """The same configuration after the engine's known rewrites and without flags that have no effect."""

    def violations(self, config: ServerConfig, facts: HostFacts) -> list[str]:
        """Why the server would refuse, crash on or silently ignore `config`; empty when it is legal."""

    def baseline(self, config: ServerConfig) -> ServerConfig:
        """`config` without speculative decoding, canonical."""

    def is_speculative(self, config: ServerConfig) -> bool:
        """Whether `config` asks for speculative decoding."""

    def simplicity(self, config: ServerConfig) -> tuple[float, ...]:
        """Sort key among configurations that are equally fast: the smallest is the simplest."""

    def version_argv(self, command: Sequence[str]) -> tuple[str, ...]:
        """The command line that prints the engine's version."""

    def parse_version(self, output: str) -> str:
        """The version in that output. Raises ValueError when there is none."""

    def help_argv(self, command: Sequence[str]) -> tuple[str, ...]:
        """The command line that prints the flags of the server."""

    def known_flags(self, help_text: str) -> frozenset[str]:
        """The flags that this output lists, with underscores; empty when it is not the server's own help."""

    def launch_spec(self, config: ServerConfig, placement: Placement) -> LaunchSpec:
        """The command line and environment of one launch."""

    def readiness(self, log: str) -> str:
        """The phase of the start that the log shows (`starting`, `loading weights`, `ready`, ...)."""

    def identity(self, info: Mapping[str, Any]) -> Identity:
        """Who answers, from the JSON at `info_path`. Raises ValueError when it cannot be told."""

    def effective(self, info: Mapping[str, Any]) -> dict[str, FlagValue]:
        """What the running server reports of its own configuration, under flag names."""

    def request(self, prompt: Prompt, workload: WorkloadSpec, max_tokens: int) -> HttpRequest:
        """The streamed generation request for one prompt."""

    def parse(self, response: StreamedResponse) -> Generation:
        """The answer, understood. Raises ValueError when it is not a complete, sensible one."""

    def counters(self, metrics_text: str) -> Counters:
        """The totals on the page at `metrics_path`; empty when the page cannot be read."""

    def diagnose(self, log: str, exit_code: int | None) -> Diagnosis | None:
        """What went wrong, from the log and the exit code; None when they show nothing."""
