"""The images' scripts, run in the order of docker-compose.yml on the loopback address: a sweep through all."""

from __future__ import annotations

import contextlib
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from tests.launchers.conftest import unused_port
from tests.ssh.sshd import missing

pytestmark = [pytest.mark.slow, pytest.mark.service, pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[2]
POSTGRES = Path("/usr/lib/postgresql/15/bin")
PATH = f"{Path(sys.executable).parent}:{POSTGRES}:{os.environ.get('PATH', '/usr/bin:/bin')}"


class Machine:
    """The containers' processes on this machine, in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ports = {name: unused_port() for name in ("postgres", "mlflow", "ssh", "server")}
        self.passwords = {
            name: secrets.token_hex(16)
            for name in ("POSTGRES_PASSWORD", "SPECSWEEP_DB_PASSWORD", "MLFLOW_DB_PASSWORD")
        }
        for name in ("worker", "host", "artifacts", "sweeps", "gpu-host"):
            (folder / name).mkdir()
        self.env = {
            "PATH": PATH, "HOME": str(folder), "LANG": "C.UTF-8", "PYTHONPATH": str(ROOT),
            "WORKER_KEYS": str(folder / "worker"), "HOST_KEYS": str(folder / "host"), "HOST": "127.0.0.1",
            "SSH_PORT": str(self.ports["ssh"]), "GPU_HOST": str(folder / "gpu-host"), "SSH_USER": "root",
            "ARTIFACTS": str(folder / "artifacts"), "SWEEPS": str(folder / "sweeps"),
        }  # fmt: skip

    def script(self, name: str, *words: str, **env: str) -> subprocess.Popen[bytes]:
        """Start a script of docker/; what it says goes to NAME.log."""
        with (self.folder / f"{name}.log").open("ab") as log:
            argv = [str(ROOT / "docker" / name), *words]
            return subprocess.Popen(
                argv, env={**self.env, **env}, cwd=self.folder, stdout=log, stderr=log, start_new_session=True
            )

    def said(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text(errors="replace")

    @contextlib.contextmanager
    def running(self, name: str, ready: Callable[[], bool], **env: str) -> Iterator[None]:
        process = self.script(name, **env)
        try:
            self.wait(ready, process, name)
            yield
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def wait(self, ready: Callable[[], bool], process: subprocess.Popen[bytes], name: str) -> None:
        end = time.monotonic() + 180
        while not ready():
            assert process.poll() is None, self.said(name)
            assert time.monotonic() < end, self.said(name)
            time.sleep(0.1)

    def healthy(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.ports['mlflow']}/health", timeout=5) as page:
                return bool(page.status == 200)
        except OSError:
            return False

    def keyscan(self) -> bool:
        argv = ["ssh-keyscan", "-T", "5", "-p", str(self.ports["ssh"]), "127.0.0.1"]
        return b"ssh-ed25519" in subprocess.run(argv, capture_output=True, check=False).stdout


@contextlib.contextmanager
def postgres(machine: Machine) -> Iterator[None]:
    """A cluster as the image makes it (its own script is not ours), then our databases."""
    if not (POSTGRES / "initdb").exists() or os.geteuid() != 0:
        missing("PostgreSQL 15 is needed (postgresql-15), and root to run it as its own user")
    user, folder = pwd.getpwnam("postgres"), Path(tempfile.mkdtemp(prefix="specsweep-pg-"))
    data, script = folder / "data", folder / "postgres-init.sh"
    data.mkdir()
    shutil.copy(ROOT / "docker" / script.name, script)
    for path in (folder, data, script):
        os.chown(path, user.pw_uid, user.pw_gid)

    def run(*argv: str, env: Mapping[str, str] = {}) -> None:
        done = subprocess.run(
            argv, user="postgres", group="postgres", extra_groups=[], env={"PATH": PATH, **env}, cwd="/",
            capture_output=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr.decode()

    port = str(machine.ports["postgres"])
    run(
        "initdb", "-D", str(data), "--auth-local=trust", "--auth-host=scram-sha-256", "--no-sync", "-U", "postgres"
    )
    options = f"-p {port} -k {data} -c listen_addresses=127.0.0.1 -c fsync=off"
    run("pg_ctl", "-D", str(data), "-w", "-l", str(data / "log"), "-o", options, "start")
    try:
        passwords = {"PGHOST": str(data), "PGPORT": port, **machine.passwords}
        run(str(script), env=passwords)
        yield
    finally:
        run("pg_ctl", "-D", str(data), "-m", "immediate", "-w", "stop")
        shutil.rmtree(folder)


def test_a_sweep_through_postgresql_mlflow_sshd_and_the_stand_in(tmp_path: Path) -> None:
    if shutil.which("sshd", path="/usr/sbin:/usr/bin") is None:
        missing("a real sshd is needed (openssh-server)")
    machine = Machine(tmp_path)
    ports, passwords = machine.ports, machine.passwords
    assert machine.script("keys.sh").wait(60) == 0, machine.said("keys.sh")
    assert machine.script("keys.sh").wait(60) == 0, "a second start keeps the keys"
    assert {path.stat().st_mode & 0o077 for path in (tmp_path / "worker").iterdir()} == {0}
    database = f"postgresql+psycopg://{{}}@127.0.0.1:{ports['postgres']}/{{}}"
    storage = database.format("specsweep", "specsweep")
    mlflow = {
        "MLFLOW_BACKEND_STORE_URI": database.format("mlflow", "mlflow"),
        "PGPASSWORD": passwords["MLFLOW_DB_PASSWORD"],
        "PORT": str(ports["mlflow"]),
        "MLFLOW_SERVER_ALLOWED_HOSTS": "mlflow:5000,localhost:*,127.0.0.1:*",
    }
    with postgres(machine), machine.running("mlflow.sh", machine.healthy, **mlflow):
        assert answered_as("mlflow:5000", ports["mlflow"]) == 200, "the worker's name for it"
        assert answered_as("evil.example", ports["mlflow"]) == 403
        with machine.running("host.sh", machine.keyscan):
            worker = {
                "STORAGE": storage,
                "PGPASSWORD": passwords["SPECSWEEP_DB_PASSWORD"],
                "TRACKING": f"http://127.0.0.1:{ports['mlflow']}",
                "TRIALS": "2",
            }
            words = [f"host.port_{end}={ports['server']}" for end in ("low", "high")]
            sweep = machine.script("worker.sh", *words, "budget.confirm_launches=0", **worker)
            machine.wait(lambda: machine.script("worker-alive.sh").wait(20) == 0, sweep, "worker.sh")
            assert sweep.wait(300) == 0, machine.said("worker.sh")
            question = "SELECT state, count(*) FROM trials GROUP BY 1"
            counted = ("psql", "-At", storage.replace("+psycopg", ""), "-c", question)
            env = {"PATH": PATH, "PGPASSWORD": passwords["SPECSWEEP_DB_PASSWORD"]}
            assert subprocess.check_output(counted, env=env, text=True) == "COMPLETE|2\n", machine.said(
                "worker.sh"
            )
            assert len(list((tmp_path / "artifacts").rglob("record.json"))) == 2, "files went through the server"
    shown = "".join(machine.said(name) for name in ("keys.sh", "mlflow.sh", "host.sh", "worker.sh"))
    assert not [name for name, password in passwords.items() if password in shown]


def answered_as(host: str, port: int) -> int:
    """The status of MLflow's experiments page for a client that calls it by this name."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/api/2.0/mlflow/experiments/search?max_results=1", headers={"Host": host}
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as page:
            return int(page.status)
    except urllib.error.HTTPError as error:
        return error.code
