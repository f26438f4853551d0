"""A real PostgreSQL with a streaming standby, which can take over when the primary is killed."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from tests.fleet.postgres import PASSWORD, USER, Cluster, cluster, free_port, give_away, run_unprivileged

PATIENCE_S = 60.0


@dataclass(frozen=True)
class Pair:
    """Both servers. The primary waits for nobody until `acknowledge`."""

    primary: Cluster
    standby: Cluster

    def create(self, database: str) -> str:
        """A new database; the address that leads to whichever server writes."""
        self.primary.create(database)
        hosts = f"127.0.0.1:{self.primary.port},127.0.0.1:{self.standby.port}"
        return f"postgresql://{USER}:{quote(PASSWORD)}@{hosts}/{database}?target_session_attrs=read-write"

    def acknowledge(self) -> None:
        """From now on no commit of the primary is over before the standby has it."""
        self.primary.sql("ALTER SYSTEM SET synchronous_standby_names = '*'")
        self.primary.sql("SELECT pg_reload_conf()")
        self._until(lambda: self.primary.sql("SELECT sync_state FROM pg_stat_replication") == "sync")

    def part(self) -> None:
        """From now on the standby receives nothing; it has all that was written so far."""
        written = self.primary.sql("SELECT pg_current_wal_lsn()")
        self._until(lambda: self.standby.sql(f"SELECT pg_last_wal_replay_lsn() >= '{written}'") == "t")
        self.standby.sql("ALTER SYSTEM SET primary_conninfo = ''")
        self.standby.sql("SELECT pg_reload_conf()")
        self._until(lambda: self.standby.sql("SELECT count(*) FROM pg_stat_wal_receiver") == "0")

    def promote(self) -> None:
        """The standby writes from now on."""
        self.standby.control("promote", "-w")

    def _until(self, condition: Callable[[], bool]) -> None:
        end = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < end, "the standby does not follow"
            time.sleep(0.05)


@contextmanager
def pair() -> Iterator[Pair]:
    """A primary and its standby while open; nothing of them is left."""
    folder = Path(tempfile.mkdtemp(prefix="specsweep-standby-"))
    with cluster("synchronous_commit=on") as primary:
        try:
            give_away(folder)
            standby = Cluster(primary.programs, folder, free_port(), primary.settings)
            copy = ["-D", str(folder / "data"), "-R", "-X", "stream", "-c", "fast", "-d", primary.url("postgres")]
            run_unprivileged([str(primary.programs / "pg_basebackup"), *copy])
            standby.start()
            try:
                yield Pair(primary, standby)
            finally:
                standby.stop("immediate")
        finally:
            shutil.rmtree(folder)
