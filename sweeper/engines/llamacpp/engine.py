"""llama.cpp's server, native (`llama-server`) or out of the wheel xllamacpp (`launchers/llamacpp_server.py`)."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
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
from sweeper.engines.draft_counters import parse_counters
from sweeper.engines.help_text import long_flags
from sweeper.engines.llamacpp.answers import diagnose_log, parse_stream
from sweeper.engines.llamacpp.export import UNSET_ENV, export, flag_words, own_formats
from sweeper.engines.llamacpp.flags import NUMBERS
from sweeper.engines.llamacpp.lossy import lossy_lines
from sweeper.engines.llamacpp.rules import (
    canonical_flags,
    combination_mistakes,
    max_draft_tokens,
    spec_types,
    value_mistakes,
)
from sweeper.engines.openai_stream import completion_request
from sweeper.engines.own_template import AppliesTemplates
from sweeper.engines.serving import Loads, OwnFormats, Serving, placed_by
from sweeper.spec import FlagValue, ServerConfig
from sweeper.workload_spec import Prompt, WorkloadSpec

ENV = {"GGML_NO_BACKTRACE": "1"}
"""Else ggml starts gdb when it aborts, which holds a dying server up and buries the reason in its log."""

_PHASES = (
    # The newest line that matches one of these names the phase; the words are those of the server's own log.
    (re.compile(r"listening on http"), "ready"),
    (re.compile(r"model loaded|initializing, n_slots|initializing slots"), "preparing slots"),
    (re.compile(r"warming up"), "warming up"),
    (re.compile(r"loading draft model"), "loading draft model"),
    (re.compile(r"loading model"), "loading model"),
)


class LlamaCpp(AppliesTemplates):
    """The engine `llamacpp`. Its server reports little of itself: see `effective`."""

    name = "llamacpp"
    faked_by: tuple[str, ...] = ()
    times_whole_requests = False
    slots_flag = "parallel"
    on_gpus = False  # the packaged one; a native build may be: host.watch_gpus=true
    spans_hosts = False
    health_path = "/health"
    info_path = "/props"
    info_timeout_s = 25.0
    metrics_path = "/metrics"

    def flag_mistakes(self, flags: Mapping[str, Sequence[FlagValue]]) -> list[str]:
        """Names that the server does not know (any more), and values that it refuses, crashes on or ignores."""
        return [line for name, values in flags.items() for line in value_mistakes(name, values)]

    def env_mistakes(self, env: Mapping[str, Sequence[str]]) -> list[str]:
        """None: no variable's values are known to be wrong."""
        return []

    def takes_whole_numbers(self, flag: str) -> bool:
        """Whether the table says so; nothing is known of a flag outside it."""
        return flag in NUMBERS and NUMBERS[flag].kind is int

    def config_mistakes(self, fixed: Mapping[str, FlagValue], searched: Collection[str]) -> list[str]:
        """None: nothing in this server changes its default with the speculation."""
        return []

    def host_files(self, flags: Mapping[str, Sequence[FlagValue]], model_path: str) -> tuple[str, ...]:
        """None: the rules need nothing from the host."""
        return ()

    def canonical(self, config: ServerConfig, facts: HostFacts) -> ServerConfig:
        """Without flags that change nothing, numbers in their flag's own type, the drafters' defaults added."""
        return ServerConfig(flags=canonical_flags(config.flags), env=dict(sorted(config.env.items())))

    def without_effect(self, config: ServerConfig, facts: HostFacts) -> list[str]:
        """Flags that `canonical` drops although they were set."""
        kept = self.canonical(config, facts).flags
        dropped = [name for name, value in config.flags.items() if name not in kept and value is not False]
        return [f"{name}: changes nothing under spec_type {config.flags.get('spec_type')}" for name in dropped]

    def violations(self, config: ServerConfig, facts: HostFacts) -> list[str]:
        """Why the server would refuse, crash on or silently ignore `config`. The host changes nothing here."""
        mistakes = self.flag_mistakes({name: (value,) for name, value in config.flags.items()})
        return mistakes or combination_mistakes(self.canonical(config, facts))

    def reported(self, config: ServerConfig, facts: HostFacts) -> Mapping[str, FlagValue]:
        """Just what it was given."""
        return config.flags

    def baseline(self, config: ServerConfig, facts: HostFacts) -> ServerConfig:
        """`config` without speculative decoding, canonical."""
        return self.canonical(config.without(frozenset({"spec_type"})), facts)

    def is_speculative(self, config: ServerConfig) -> bool:
        """Whether a speculative type is asked for; a draft model alone does nothing."""
        return bool(spec_types(config.flags))

    def simplicity(self, config: ServerConfig) -> tuple[float, ...]:
        """Fewer kinds of speculation first, then no draft model, shorter drafts, fewer flags off their default."""
        flags = canonical_flags(config.flags)
        num_set = sum(name not in NUMBERS or NUMBERS[name].default != value for name, value in flags.items())
        num_types = len(spec_types(flags))
        return (num_types, float("spec_draft_model" in flags), max_draft_tokens(flags), num_set)

    def version_argv(self, command: Sequence[str]) -> tuple[str, ...]:
        """`COMMAND --version`: llama-server prints it on standard error."""
        return (*command, "--version")

    def parse_version(self, output: str) -> str:
        """`11434 (abcdef)` of a native server, `xllamacpp X (...)` of the wheel. Raises ValueError."""
        found = re.search(r"^version: *(\S.*)$", output, re.MULTILINE)
        if found is None:
            raise ValueError(f"no line `version: ...` in {output.strip()[:200]!r}")
        return found[1].strip()[:200]

    def help_argv(self, command: Sequence[str]) -> tuple[str, ...]:
        """`COMMAND --help`."""
        return (*command, "--help")

    def known_flags(self, help_text: str) -> frozenset[str]:
        """Every long flag in the text; empty when --model is not among them: then some other program spoke."""
        return long_flags(help_text, "model")

    def launch_spec(self, config: ServerConfig, placement: Placement) -> LaunchSpec:
        """The command line. The nonce is the model's alias, which /props repeats."""
        argv = [*placement.command, "--model", placement.model_path, "--alias", placement.nonce]
        argv += ["--host", placement.bind, "--port", str(placement.port), "--metrics"]
        argv += [word for words in flag_words(config.flags).values() for word in words]
        unset = tuple(name for name in UNSET_ENV if name not in config.env)
        env = {**ENV, **config.env}
        return LaunchSpec(tuple(argv), placement.port, placement.nonce, env=env, unset_env=unset)

    def placed(self, argv: Sequence[str]) -> Placement:
        """What `launch_spec` was given. Raises ValueError for another command line."""
        return placed_by(argv, "--model", "--alias")

    def export(self, config: ServerConfig, placement: Placement, facts: HostFacts) -> Serving:
        """The same flags; in an image the native llama-server, whichever program was measured."""
        return export(config, placement, facts.engine_version, self.health_path)

    def own_formats(
        self, serving: Serving, measured: Sequence[Loads], noise_pct: float, facts: HostFacts
    ) -> OwnFormats:
        """A preset file for llama-server's router."""
        return own_formats(serving)

    def readiness(self, log: str) -> str:
        """The phase of the start. Ready is told by the server's health alone; the log names the way there."""
        return next((phase for pattern, phase in _PHASES if pattern.search(log)), "starting")

    def progress(self, log: str) -> str:
        """Empty: it starts in a second."""
        return ""

    def fatal_sign(self, log: str) -> str:
        """None: this server is one process, and its end is its end."""
        return ""

    def identity(self, info: Mapping[str, Any]) -> Identity:
        """Alias and model path from /props. Raises ValueError when one is missing."""
        alias, path = info.get("model_alias"), info.get("model_path")
        if not isinstance(alias, str) or not isinstance(path, str):
            raise ValueError("/props does not name model_alias and model_path")
        return Identity(nonce=alias, model_path=path)

    def effective(self, info: Mapping[str, Any]) -> dict[str, FlagValue]:
        """Slots and context, as /props has them.

        Nothing else can be known: /props gives the speculative type as `none` whatever is set, and no limits of
        drafters. With several slots the context is split in a way that depends on the cache: it is left out.
        """
        settings = info.get("default_generation_settings")
        context = settings.get("n_ctx") if isinstance(settings, dict) else None
        reported: dict[str, FlagValue] = {}
        if isinstance(slots := info.get("total_slots"), int):
            reported["parallel"] = slots
            if slots == 1 and isinstance(context, int):
                reported["ctx_size"] = context
        return reported

    def speculation(self) -> Speculation | None:
        """None: n-grams are looked up in the text, and a draft model's run ends where it is unsure."""
        return None

    def all_reduces(self, flags: Mapping[str, Sequence[FlagValue]], facts: HostFacts) -> AllReduces | None:
        """None: one process copies between its GPUs itself."""
        return None

    def slots(self, flags: Mapping[str, FlagValue]) -> int | None:
        """`parallel`, 1 unless it is set."""
        value = flags.get(self.slots_flag, 1)
        return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None

    def context_tokens(self, flags: Mapping[str, FlagValue], facts: HostFacts) -> int | None:
        """`ctx_size`, which the slots may have to share; None where the model decides."""
        size = flags.get("ctx_size")
        return size if isinstance(size, int) and not isinstance(size, bool) and size > 0 else None

    def lossy(self, config: ServerConfig, baseline: ServerConfig) -> list[str]:
        """Other precisions of the cache, other weights, positions or samplers; never a way to draft."""
        return lossy_lines(config, baseline)

    def remembers(self, config: ServerConfig) -> str:
        """Only ngram-mod keeps its pool: 4 drafts kept of a story, then 80 and 80 when it was asked for again.

        There is nothing to flush. ngram-simple gave the same three times; -map-k and -map-k4v drafted a little
        less from request to request, with the same drafts kept or fewer, which flatters nobody.
        """
        if "ngram-mod" in spec_types(config.flags):
            return "ngram-mod keeps what it has written: the same text is faster the second time"
        return ""

    def faked(self, environ: Mapping[str, str]) -> str:
        """Nothing here fakes anything."""
        return ""

    def model_paths(self, flags: Mapping[str, Sequence[FlagValue]]) -> tuple[str, ...]:
        """The draft models."""
        paths = (path for path in flags.get("spec_draft_model", ()) if isinstance(path, str) and path)
        return tuple(dict.fromkeys(paths))

    def build_argv(self, command: Sequence[str]) -> tuple[str, ...]:
        """`COMMAND --version` once more: it tells the compiler, too."""
        return self.version_argv(command)

    def parse_build(self, output: str) -> Mapping[str, str]:
        """The commit in parentheses behind the version, and what it was `built with`."""
        patterns = {"commit": r"^version: .*\(([0-9a-f]{6,40})\)", "compiler": r"^built with (\S.*)$"}
        found = {name: re.search(pattern, output, re.MULTILINE) for name, pattern in patterns.items()}
        return {name: match[1].strip()[:200] for name, match in found.items() if match}

    def flush(self) -> HttpRequest | None:
        """None: every request says that it wants no prompt cache."""
        return None

    def flushed(self, answer: bytes) -> bool:
        """Never asked."""
        return True

    def request(self, prompt: Prompt, workload: WorkloadSpec, max_tokens: int) -> HttpRequest:
        """A streamed (chat) completion, without prompt cache: a repeat must not be cheaper than the first pass."""
        return completion_request(prompt, workload, max_tokens, {"cache_prompt": False})

    def parse(self, response: StreamedResponse) -> Generation:
        """The answer, understood. Raises ValueError when it is not a complete, sensible one."""
        return parse_stream(response)

    def counters(self, metrics_text: str) -> Counters:
        """The speculation totals; empty when the page cannot be read."""
        return parse_counters(metrics_text, "llamacpp")

    def bypass(self, config: ServerConfig, metrics: Mapping[str, float]) -> str:
        """Not one token was drafted: such a server would otherwise look like a slow setting of it."""
        if self.is_speculative(config) and metrics.get("num_drafted_tokens") == 0:
            return "speculation was asked for, but not one token was drafted"
        return ""

    def running_mistakes(self, config: ServerConfig, log: str) -> list[str]:
        """None: the log of a running server shows nothing of its configuration."""
        return []

    def diagnose(self, log: str, exit_code: int | None) -> Diagnosis | None:
        """What went wrong; None when neither log nor exit code shows it (137 alone says only: killed)."""
        return diagnose_log(log, exit_code)


ENGINE: type[Engine] = LlamaCpp
