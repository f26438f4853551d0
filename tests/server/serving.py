"""Runs `running_server` on the fakes, the way the tests of its start and of its end do."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import pytest

from launchers.base import LaunchSpec
from sweeper.engines.base import Engine, HttpRequest
from sweeper.engines.llamacpp import LlamaCpp
from sweeper.errors import TrialError
from sweeper.serving.launch_trace import LaunchTrace, ServerRig
from sweeper.serving.server import running_server
from sweeper.spec import LimitsSpec
from tests.fakes import FakeClock
from tests.server import fake_llama as fake
from tests.server.fake_launcher import FakeLauncher

LIMITS = LimitsSpec(start_s=30, stop_grace_s=3, identical_failures=3)
SPEC = LaunchSpec(("llama-server",), 31000, fake.NONCE)
PROBE = HttpRequest("POST", "/v1/chat/completions", {"max_tokens": 8})
ABORT = b"llama-context.cpp:2289: GGML_ASSERT(n_outputs_max) failed\n"


def rig(
    launcher: FakeLauncher,
    shielded: Callable[[], AbstractContextManager[None]] = nullcontext,
    engine: Engine | None = None,
) -> ServerRig:
    return ServerRig(engine or LlamaCpp(), launcher, FakeClock(), LIMITS, fake.MODEL, shielded, PROBE)


def serve(
    launcher: FakeLauncher,
    trace: LaunchTrace,
    body: BaseException | None = None,
    shielded: Callable[[], AbstractContextManager[None]] = nullcontext,
    engine: Engine | None = None,
) -> list[str]:
    """Run a server whose body raises `body`; the phases that were told."""
    phases: list[str] = []
    with running_server(SPEC, rig(launcher, shielded, engine), trace, phases.append) as target:
        assert target.url == launcher.address
        phases.append("body")
        if body is not None:
            raise body
    return phases


def failure(launcher: FakeLauncher, trace: LaunchTrace, body: BaseException | None = None) -> TrialError:
    with pytest.raises(TrialError) as caught:
        serve(launcher, trace, body)
    return caught.value
