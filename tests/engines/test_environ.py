"""A real server's environment is read on its host, whatever a wrapper did on the way, and nothing else of it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping

import pytest

from sweeper.engines.environ import environ_argv, parse_environ
from sweeper.engines.sglang.host_env import FAKERS, faked

pytestmark = pytest.mark.host

WRAPPER = 'export SGLANG_SIMULATE_ACC_LEN=3 SECRET="a\nSGLANG_SIMULATE_ACC_LEN=9"; exec sleep 60'
"""Started as engine.command it sets again what a launch has unset."""


@pytest.fixture(params=[{}, {"NOTE": "==> /proc/1/environ <==\nSPECSWEEP_SERVER=other"}])
def server(request: pytest.FixtureRequest) -> Iterator[subprocess.Popen[bytes]]:
    """A wrapped `server` that carries our mark; it ends with the test."""
    env: Mapping[str, str] = {"SPECSWEEP_SERVER": "environ-test", "PATH": "/usr/bin:/bin", **request.param}
    with subprocess.Popen(("/bin/sh", "-c", WRAPPER), env=env) as process:
        yield process
        process.kill()


def read(mark: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(environ_argv(mark, FAKERS), capture_output=True, check=False)


def until_found(mark: str) -> bytes:
    """The wrapper takes a moment until it has become the program."""
    for _ in range(200):
        if (result := read(mark)).stdout:
            return result.stdout
    raise AssertionError(f"nothing found: {result!r}")


@pytest.mark.usefixtures("server")
def test_a_variable_that_a_wrapper_sets_again_is_seen_and_no_other() -> None:
    printed = until_found("SPECSWEEP_SERVER=environ-test")
    assert printed == b"SGLANG_SIMULATE_ACC_LEN=3\n"
    assert faked(parse_environ(printed)).startswith("SGLANG_SIMULATE_ACC_LEN=3")


@pytest.mark.usefixtures("server")
def test_a_server_that_is_not_there_is_an_error_and_not_a_clean_one() -> None:
    result = read("SPECSWEEP_SERVER=environ-tes")
    assert (result.returncode, result.stdout) == (4, b"")
