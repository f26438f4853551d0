"""What another user of the host can find out about a server: its command line, but none of its environment."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from launchers.host import HostLauncher, HostSettings
from tests.launchers.conftest import Bench, until
from tests.launchers.shells import quick_in

pytestmark = [
    pytest.mark.host,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can look with another user's eyes"),
]
NOBODY = 65534
LOOK = 'cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ "$1"/servers/*/* "$1"/* 2> /dev/null'
LOOK_AGAIN = f'cd /; echo ready; until [ -e "$2" ]; do {LOOK}; done; {LOOK}; echo done'


@pytest.fixture
def public_bench(bench: Bench) -> Iterator[Bench]:
    """A bench whose folder everybody may enter, as a home folder often is."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    settings = HostSettings("here", str(folder / "state"), bench.port, bench.port)
    yield Bench(HostLauncher(bench.launcher.shell, settings), folder, bench.port, bench.token)
    shutil.rmtree(folder)


@contextmanager
def spying(bench: Bench, user: int) -> Iterator[Path]:
    """All that `user` can read of processes and of the state folder while the context is open, in a file."""
    found, stop = bench.folder / f"found-by-{user}", bench.folder / "stop"
    argv = ["/bin/sh", "-c", LOOK_AGAIN, "sh", str(bench.state_dir), str(stop)]
    with found.open("wb") as output:
        spy = subprocess.Popen(argv, user=user, group=user, extra_groups=[], env={"PATH": "/bin"}, stdout=output)
    try:
        until(lambda: b"ready\n" in found.read_bytes(), "the spy looks")
        yield found
    finally:
        stop.touch()
        spy.wait()
        stop.unlink()
    assert found.read_bytes().endswith(b"done\n")


@quick_in("ssh")
def test_no_other_user_sees_a_secret_at_any_time(public_bench: Bench) -> None:
    secret = secrets.token_hex(16)
    spec = public_bench.spec("sleep", "1000", env={"HF_TOKEN": secret})
    with spying(public_bench, NOBODY) as found:
        handle = public_bench.launcher.start(spec)
        for look in (public_bench.launcher.is_alive, public_bench.launcher.owns_port, public_bench.launcher.logs):
            look(handle)
    with spying(public_bench, user=0) as all_there_is:
        pass
    public_bench.launcher.stop(handle, grace_s=0)
    assert secret.encode() in all_there_is.read_bytes(), "whoever may look finds it"
    assert b"sleep\x001000\x00" in found.read_bytes(), "the spy saw the server"
    assert secret.encode() not in found.read_bytes()
    assert handle.boot_id.encode() not in found.read_bytes(), "nor can the state folder be read"
