"""A sweep of a handful of short launches on real parts, in a folder of its own, and what it leaves there.

The loop, the processes, the stores, sshd, PostgreSQL and MLflow are real; the inference server is a stand-in that
starts in a tenth of a second (llama.py), where the fault is not about the engine.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sweeper.errors import ConfigError
from sweeper.records import TrialRecord
from sweeper.storing.storage import StudyStore
from sweeper.storing.study_place import Place
from tests.chaos.boundaries import ROOT, Plan
from tests.chaos.zygote import Command, Zygote, start_alone
from tests.launchers.conftest import unused_port
from tests.ssh.sshd import Sshd

STUDY = "chaos"
LLAMA = Path(__file__).with_name("llama.py")
SHORT = (
    "preset=llamacpp_smoke",
    f"study.name={STUDY}",
    "study.sampler=random",
    "space.spec_ngram_simple_size_n=range(2,30)",
    "space.spec_ngram_simple_size_m=range(2,30)",
    "model=gguf",
    "workload.warmup_max_requests=0",
    "workload.request_timeout_s=5",
    "limits.start_s=20",
    "limits.stop_grace_s=1",
    "limits.free_gib=0",
)


@dataclass
class Sweep:
    """One study in `folder`. `storage` and `tracking`: addresses; empty: files of the folder."""

    folder: Path
    zygote: Zygote
    storage: str = ""
    tracking: str = ""
    words: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    name_file: Path | None = None
    limits: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        if not self.tracking:
            shutil.copy(self.zygote.new_mlflow(), self.folder / "mlflow.db")
        (self.folder / "model.gguf").write_bytes(b"GGUF")

    @property
    def state_dir(self) -> Path:
        """Where the host keeps its lock and the records of its servers."""
        return self.folder / "state"

    @property
    def common(self) -> list[str]:
        """The words of every command on this study, on this machine's host."""
        python = f"[{sys.executable},-S,-E,{LLAMA},{self.folder}]"
        stores = [f'study.storage="{self.storage}"'] if self.storage else []
        stores += [f"tracking.uri={self.tracking}"] if self.tracking else []
        return [
            *SHORT,
            f"engine.command={python}",
            f"model.path={self.folder / 'model.gguf'}",
            f"study.dir={self.folder}",
            *stores,
            *self.words,
        ]

    def start(
        self, *words: str, plan: Plan | None = None, host: str = "local", limits: Mapping[str, int] | None = None
    ) -> Command:
        """`specsweep run` in the background."""
        argv = ["run", "--plain", *self.common, *self.host_words(host), *words]
        return self.zygote.start(argv, self.folder, env=self.env, plan=plan, name_file=self.name_file,
                                 limits={**self.limits, **(limits or {})})  # fmt: skip

    def start_alone(self, *words: str, env: Mapping[str, str], path: Path = ROOT) -> Command:
        """The same in a process that has imported nothing. `path`: where its files are."""
        argv = ["run", "--plain", *self.common, *self.host_words("local"), *words]
        return start_alone(argv, self.folder, self.zygote.outputs, env={**self.env, **env}, path=path)

    def run(self, *words: str, host: str = "local") -> tuple[int, str]:
        """The same to its end: exit code and output."""
        command = self.start(*words, host=host)
        return command.wait(), command.output

    def host_words(self, host: str) -> list[str]:
        """Which host: this machine under a name, with a state folder and ports of its own."""
        if any(word.startswith("host.kind=") or word.startswith("host=ssh") for word in self.words):
            return []
        low = 21000 + 200 * (ord(host[0]) % 32) + os.getpid() % 100
        state = self.state_dir if host == "local" else self.folder / f"state-{host}"
        return [
            f"host.name={host}",
            f"host.state_dir={state}",
            f"host.port_low={low}",
            f"host.port_high={low + 60}",
        ]

    def set_fault(self, name: str, detail: str = "-", launches: int = 1) -> None:
        """From now on so many launches of the stand-in have this fault (llama.py)."""
        (self.folder / "fault").write_text(f"{name} {detail} {launches}")

    def store(self) -> StudyStore:
        """The study. Raises ConfigError when there is none yet."""
        url = self.storage or f"sqlite:///{self.folder}/optuna.db"
        return StudyStore.open(url, STUDY, Place(str(self.folder), reconnect_s=60.0), create=False)

    def trials(self) -> tuple[TrialRecord, ...]:
        """Its trials; none before there is a study."""
        if not self.storage and not (self.folder / "optuna.db").exists():
            return ()
        with contextlib.suppress(ConfigError):
            return self.store().trials()
        return ()

    def phase(self) -> str:
        """What a running command does at the moment, as `specsweep status` reads it; empty: it does not say."""
        for path in (self.folder / f"{STUDY}-status").glob("*.json"):
            with contextlib.suppress(OSError, ValueError):
                if phase := json.loads(path.read_bytes())["now"].get("phase"):
                    return str(phase)
        return ""

    def left_behind(self) -> list[str]:
        """What only this kind of host can leave: nothing."""
        return []

    def mlflow_uri(self) -> str:
        """Where its runs are."""
        return self.tracking or f"sqlite:///{self.folder}/mlflow.db"

    def log(self) -> str:
        """What its log, or its workers' logs, say."""
        return "\n".join(p.read_text(errors="replace") for p in sorted(self.folder.glob(f"{STUDY}*.log")))


def over_ssh(
    sshd: Sshd, folder: Path, *more: str, destination: str = "gpu1", port: int | None = None
) -> Sequence[str]:
    """The words for a host behind a real sshd; a short patience with a link that is gone."""
    low = unused_port()
    settings = {"Port": port} if port else {}
    return (
        "host=ssh",
        f"host.ssh.destination={destination}",
        f"host.ssh.config_file={sshd.config(destination, **settings)}",
        f"host.ssh.known_hosts={sshd.known_hosts}",
        f"host.state_dir={folder / 'state'}",
        f"host.port_low={low}",
        f"host.port_high={low + 20}",
        "host.ssh.reconnect_s=30",
        *more,
    )
