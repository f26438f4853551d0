"""Real llama.cpp servers for the tests, through the real launcher."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from launchers.clock import SystemClock
from launchers.host import HostLauncher
from sweeper.engines.base import Placement
from sweeper.engines.llamacpp import LlamaCpp
from sweeper.http import Target
from sweeper.measuring.benchmark import Bench, OnRequest, measure
from sweeper.records import Measurement
from sweeper.serving.launch_trace import LaunchTrace, ServerRig
from sweeper.serving.server import new_nonce, pick_port, running_server
from sweeper.spec import FlagValue, LimitsSpec, ServerConfig
from sweeper.workload_spec import Prompt, WorkloadSpec
from tests.fakes import load_of

ENGINE = LlamaCpp()
COMMAND = (sys.executable, "-m", "launchers.llamacpp_server")
LIMITS = LimitsSpec(start_s=90, stop_grace_s=10, identical_failures=3)
COPY = (
    "Repeat this text exactly: The cat sat on the mat by the door. The dog sat on the log by the door. "
    "The cat sat on the mat by the door. The dog sat on the log by the door."
)


@dataclass
class Real:
    """Starts servers with flags as they are, past every rule of the engine."""

    launcher: HostLauncher
    model: Path
    draft: Path
    trace: LaunchTrace = field(default_factory=LaunchTrace)
    known: dict[str, Measurement] = field(default_factory=dict)

    @contextlib.contextmanager
    def server(self, **flags: FlagValue) -> Iterator[Target]:
        """A ready server; `draft=True` adds the draft model."""
        if flags.pop("draft", False):
            flags["spec_draft_model"] = str(self.draft)
        config = ServerConfig(flags={"threads": 1, "ctx_size": 1024, **flags})
        self.trace = LaunchTrace()
        placement = Placement(COMMAND, str(self.model), pick_port(self.launcher), new_nonce())
        rig = ServerRig(ENGINE, self.launcher, SystemClock(), LIMITS, str(self.model))
        with running_server(ENGINE.launch_spec(config, placement), rig, self.trace, lambda _: None) as target:
            yield target

    def measure(self, **flags: FlagValue) -> Measurement:
        """24 greedy tokens of a text that repeats itself, from a server with these flags."""
        with self.server(**flags) as target:
            return measure(target, load_of(workload()), bench())


def bench(on_request: OnRequest = lambda *_: None) -> Bench:
    return Bench(ENGINE, SystemClock(), on_request, ServerConfig())


def workload(max_tokens: int = 24) -> WorkloadSpec:
    return WorkloadSpec(
        name="copy",
        prompts=(Prompt(id="copy", text=COPY),),
        max_tokens=max_tokens,
        repeats=1,
        warmup_max_requests=0,
        temperature=0,
        seed=1,
        request_timeout_s=90,
    )


def reference(real: Real, **flags: FlagValue) -> Measurement:
    """The same as `measure`, made once for all tests: something to compare with."""
    key = ServerConfig(flags=flags).key()
    if key not in real.known:
        real.known[key] = real.measure(**flags)
    return real.known[key]
