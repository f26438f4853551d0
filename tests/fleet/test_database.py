"""How a shared database is reached, and what happens when it goes away: on a real PostgreSQL."""

from __future__ import annotations

import shlex
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine, make_url, text
from sqlalchemy.exc import SQLAlchemyError

from launchers.errors import HostBusy
from launchers.masking import masked_words
from sweeper.errors import ConfigError, SpecsweepError, StorageUnusable, SweepAborted
from sweeper.records import Proposal
from sweeper.spec import BudgetSpec
from sweeper.storing.addresses import has_password, masked, normal_url
from sweeper.storing.answering import AnsweredConnection
from sweeper.storing.connecting import connect
from sweeper.storing.database import SharedDatabase, opened_patiently
from sweeper.storing.leases import LeaseLost, SharedLeases, Worker
from sweeper.storing.ownership import Shared, at_work
from sweeper.storing.storage import StudyStore
from sweeper.study import Study
from tests.chaos.statements import StatementProxy
from tests.fakes import FakeClock, launch
from tests.fleet.postgres import PASSWORD, USER, Cluster
from tests.fleet.worker import open_study
from tests.ssh.proxy import Proxy

pytestmark = pytest.mark.service

BUDGET = BudgetSpec(trials=6, finalists=1, confirm_launches=0)


def finish(study: Study, proposal: Proposal, host: str) -> None:
    made = launch(50.0 + proposal.trial_number, trial=proposal.trial_number, number=proposal.launch_number,
                  purpose=proposal.purpose)  # fmt: skip
    record = made.model_copy(
        update={"requested": proposal.requested, "canonical": proposal.canonical, "host": host}
    )
    study.tell(proposal, study.save(record, {"server.log": b"log"}))


@pytest.fixture
def leases_of(database: str) -> Iterator[Callable[[Worker], SharedLeases]]:
    """Makes leases with a connection of their own."""
    engines: list[Engine] = []

    def make(worker: Worker) -> SharedLeases:
        engines.append(connect(normal_url(database)))
        return SharedLeases(engines[-1], 1, worker, 60.0)

    yield make
    for engine in engines:
        engine.dispose()


LeasesOf = Callable[[Worker], SharedLeases]


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://me:secret@db/sweeps", "postgresql+psycopg://***@db/sweeps"),
        ("postgres://me@db:5433/sweeps", "postgresql+psycopg://***@db:5433/sweeps"),
        ("postgresql+psycopg:///sweeps?host=db&password=secret", "postgresql+psycopg:///sweeps?host=db"),
        ("sqlite:///sweeps/optuna.db", "sqlite:///sweeps/optuna.db"),
        ("postgresql://a:b:c@x:y", "postgresql+psycopg://***"),
        (
            "postgresql://me:secret@a:1,b:2/s?sslmode=require",
            "postgresql+psycopg://***@/s?host=a%3A1&host=b%3A2&sslmode=require",
        ),
        (
            "postgresql:///s?host=a:1,b:2&connect_timeout=3",
            "postgresql+psycopg:///s?connect_timeout=3&host=a%3A1&host=b%3A2",
        ),
        ("postgresql:///s?host=a,b&port=1,2", "postgresql+psycopg:///s?host=a%2Cb&port=1%2C2"),
    ],
)
def test_an_address_is_understood_and_shown_without_secrets(url: str, shown: str) -> None:
    assert masked(normal_url(url)) == shown


def test_no_command_that_is_shown_holds_a_password() -> None:
    words = (
        "specsweep run 'study.storage=postgresql://me:se:cret@db/x?a=b&password=secret' study.dir=d http://h:80/x"
    )
    shown = "specsweep run 'study.storage=postgresql://***@db/x?a=b&password=***' study.dir=d http://h:80/x"
    assert shlex.join(masked_words(shlex.split(words))) == shown


def test_a_password_in_an_address_is_noticed() -> None:
    assert has_password("postgresql://me:secret@db/x")
    assert has_password("postgresql:///x?password=secret")
    assert not has_password("postgresql://me@db/x")


def without_password(postgres: Cluster, database: str) -> str:
    return database.replace(f":{PASSWORD.replace(' ', '%20')}@", "@")


def test_the_password_may_come_from_the_environment(
    postgres: Cluster, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    assert open_study(without_password(postgres, database), tmp_path).trials() == ()


def test_the_password_may_come_from_a_password_file(
    postgres: Cluster, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "pgpass"
    file.write_text(f"127.0.0.1:{postgres.port}:*:{USER}:{PASSWORD}\n")
    file.chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(file))
    assert open_study(without_password(postgres, database), tmp_path).trials() == ()


def test_everything_may_come_from_a_service_file(
    postgres: Cluster, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, name = tmp_path / "services", database.rpartition("/")[2]
    lines = ("[sweeps]", "host=127.0.0.1", f"port={postgres.port}", f"user={USER}", f"dbname={name}")
    file.write_text("\n".join((*lines, f"password={PASSWORD}")))
    monkeypatch.setenv("PGSERVICEFILE", str(file))
    assert open_study("postgresql:///?service=sweeps", tmp_path).trials() == ()


def test_a_wrong_password_is_one_message_that_shows_none(database: str, tmp_path: Path) -> None:
    with pytest.raises(StorageUnusable) as seen:
        open_study(database.replace("only%20for%20tests", "hush"), tmp_path)
    assert "study.storage: 'postgresql+psycopg://***@127.0.0.1" in str(seen.value)
    assert "password authentication failed" in str(seen.value)
    assert "hush" not in str(seen.value)


def test_a_server_that_does_not_answer_is_one_message(tmp_path: Path) -> None:
    with pytest.raises(StorageUnusable, match="cannot be opened: connection failed"):
        open_study("postgresql://me:secret@127.0.0.1:1/sweeps", tmp_path)


def test_mlflow_s_database_is_refused_and_a_schema_beside_it_is_not(
    postgres: Cluster, database: str, tmp_path: Path
) -> None:
    name = database.rpartition("/")[2]
    postgres.sql("CREATE TABLE registered_models (x int); CREATE SCHEMA optuna", name)
    with pytest.raises(ConfigError, match="MLflow keeps its tables there"):
        open_study(database, tmp_path)
    assert open_study(f"{database}?options=-csearch_path%3Doptuna", tmp_path).trials() == ()
    assert postgres.sql("SELECT count(*) FROM optuna.studies", name) == "1"


def test_many_processes_may_open_an_empty_database_at_once(database: str, tmp_path: Path) -> None:
    errors: list[Exception] = []

    def open_it() -> None:
        try:
            open_study(database, tmp_path)
        except SpecsweepError as error:
            errors.append(error)

    threads = [threading.Thread(target=open_it) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


@pytest.mark.parametrize("every", [1, 4, 7])
def test_a_connection_that_is_lost_again_and_again_loses_and_doubles_nothing(
    postgres: Cluster, database: str, tmp_path: Path, every: int
) -> None:
    """Whichever statement it dies in: what is asked, saved and told is done again from its start."""
    study = open_study(database, tmp_path, sampler="random")
    shared = study.store.database
    assert isinstance(shared, SharedDatabase)
    cuts = Cuts(shared, first=every, pause=190 + 37 * every)
    with at_work(study.store, Worker.new("a"), 60) as (study.ownership, _):
        cuts.active = True
        while (proposal := study.ask(BUDGET)) is not None:
            finish(study, proposal, "a")
        cuts.end()
    trials = open_study(database, tmp_path).trials()
    assert cuts.made > 2
    assert [trial.number for trial in trials] == list(range(6))
    assert len({trial.key for trial in trials}) == 6
    assert all(len(trial.launches) == 1 and trial.measured for trial in trials)


class Cuts:
    """Ends the connection at the server, before one statement in so many."""

    def __init__(self, shared: SharedDatabase, first: int, pause: int) -> None:
        from sqlalchemy import event

        self.active, self.made = False, 0
        self._left, self._pause = first, pause
        self._other = connect(shared.engine.url)
        event.listen(shared.engine, "before_cursor_execute", self._before)

    def end(self) -> None:
        self.active = False
        self._other.dispose()

    def _before(self, connection: object, cursor: object, *_: object) -> None:
        self._left -= self.active
        if self.active and self._left <= 0:
            self._left, self.made = self._pause, self.made + 1
            with self._other.begin() as ending:
                backend = cursor.connection.info.backend_pid  # type: ignore[attr-defined]
                ending.execute(text("SELECT pg_terminate_backend(:pid, 5000)"), {"pid": backend})


def test_a_database_that_stays_away_ends_the_sweep_with_what_the_driver_said(
    postgres: Cluster, database: str, tmp_path: Path
) -> None:
    study = open_study(database, tmp_path)
    shared = study.store.database
    assert isinstance(shared, SharedDatabase)
    clock, said = FakeClock(), list[str]()
    patient = SharedDatabase(shared.engine, "night", reconnect_s=30, clock=clock)
    patient.say = said.append
    postgres.stop()
    try:
        with pytest.raises(Exception, match=r"commit|connection") as seen:
            patient.patiently(lambda: study.store.optuna.get_trials())
    finally:
        postgres.start()
    assert clock.elapsed_s >= 30
    assert "tried again for 30 s" in said[0]
    assert PASSWORD not in str(seen.value)


def test_who_wants_the_end_now_is_not_kept_waiting_for_a_database(
    postgres: Cluster, database: str, tmp_path: Path
) -> None:
    study = open_study(database, tmp_path)
    shared = study.store.database
    assert isinstance(shared, SharedDatabase)
    clock = FakeClock()
    patient = SharedDatabase(shared.engine, "night", reconnect_s=300, clock=clock)
    patient.is_hurried = lambda: clock.elapsed_s >= 20
    postgres.stop()
    try:
        with pytest.raises(SQLAlchemyError):
            patient.patiently(lambda: study.store.optuna.get_trials())
        assert 20 <= clock.elapsed_s < 30
        with pytest.raises(SQLAlchemyError):
            patient.patiently(lambda: study.store.optuna.get_trials())
        assert clock.elapsed_s < 40
    finally:
        postgres.start()


@pytest.mark.parametrize("lost", ["TRUNCATE studies CASCADE", "DROP SCHEMA public CASCADE; CREATE SCHEMA public"])
def test_a_study_that_is_gone_with_its_server_is_one_message(
    postgres: Cluster, database: str, tmp_path: Path, lost: str
) -> None:
    store = open_study(database, tmp_path).store
    assert store.trials() == ()
    name = database.rpartition("/")[2]
    postgres.sql(f"{lost}; SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}' AND "
                 "application_name = 'specsweep'", name)  # fmt: skip
    with pytest.raises(SweepAborted, match="another server answers now") as seen:
        store.trials()
    assert "begins it anew there" in str(seen.value)


def test_after_a_new_connection_nothing_that_was_read_before_is_believed(
    postgres: Cluster, database: str, tmp_path: Path
) -> None:
    """A standby took over that had not received trial 1; something else is measured under its number."""
    study = open_study(database, tmp_path, sampler="random")
    with at_work(study.store, Worker.new("a"), 60) as (study.ownership, _):
        finish(study, asked(study), "a")
        forgotten = asked(study)
        finish(study, forgotten, "a")
        assert len(study.trials()) == 2
        name = database.rpartition("/")[2]
        attributes = ("trial_user_attributes", "trial_system_attributes")
        tables = ("trial_params", "trial_values", *attributes, "trials")
        gone = "(SELECT trial_id FROM trials WHERE number = 1)"
        postgres.sql("; ".join(f"DELETE FROM {table} WHERE trial_id IN {gone}" for table in tables), name)
        assert len(study.trials()) == 2, "as read before"
        postgres.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = "
                     f"'{name}' AND pid <> pg_backend_pid()", name)  # fmt: skip
        assert [trial.number for trial in study.trials()] == [0]
        again = asked(study)
        assert (again.trial_number, again.launch_number) == (1, 0)
        finish(study, again, "a")
    (_, trial) = study.trials()
    assert trial.canonical == again.canonical


def test_a_lease_is_claimed_by_exactly_one_of_many(database: str, tmp_path: Path, leases_of: LeasesOf) -> None:
    open_study(database, tmp_path)
    crew = [leases_of(Worker.new(f"h{n}")) for n in range(6)]
    crew[0].make_table()
    for name in ("launch:1:0", "launch:2:0", "launch:3:0"):
        won: list[bool] = []
        start = threading.Barrier(len(crew))

        def claim(leases: SharedLeases, name: str, start: threading.Barrier, won: list[bool]) -> None:
            start.wait()
            won.append(leases.claim(name))

        threads = [threading.Thread(target=claim, args=(each, name, start, won)) for each in crew]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(won) == [False] * 5 + [True]


def expire(postgres: Cluster, database: str) -> None:
    """Let an hour pass on the database's clock, for all leases."""
    statement = "UPDATE specsweep_leases SET expires_at = expires_at - interval '1 hour'"
    postgres.sql(statement, database.rpartition("/")[2])


def test_a_lease_that_is_over_is_still_its_owner_s_until_somebody_claims_it(
    postgres: Cluster, database: str, tmp_path: Path, leases_of: LeasesOf
) -> None:
    open_study(database, tmp_path)
    one, other = leases_of(Worker.new("a")), leases_of(Worker.new("b"))
    one.make_table()
    assert one.claim("launch:1:0")
    assert not other.claim("launch:1:0")
    expire(postgres, database)
    assert one.owns("launch:1:0")
    one.renew()
    assert not other.claim("launch:1:0")
    expire(postgres, database)
    assert other.claim("launch:1:0")
    one.renew()
    assert not one.owns("launch:1:0")


def two(database: str, tmp_path: Path) -> tuple[Study, Study]:
    return open_study(database, tmp_path / "a"), open_study(database, tmp_path / "b")


def test_what_was_taken_over_can_be_neither_saved_nor_told_by_its_former_owner(
    postgres: Cluster, database: str, tmp_path: Path
) -> None:
    one, other = two(database, tmp_path)
    with (
        at_work(one.store, Worker.new("a"), 600) as (one.ownership, _),
        at_work(other.store, Worker.new("b"), 600) as (other.ownership, _),
    ):
        first = asked(one)
        expire(postgres, database)
        again = asked(other)
        assert (again.trial_number, again.launch_number) == (first.trial_number, first.launch_number + 1)
        with pytest.raises(LeaseLost, match="taken over by another worker"):
            finish(one, first, "a")
        finish(other, again, "b")
        one.release(first)
    (trial,) = one.trials()
    assert [n.launch_number for n in trial.launches] == [again.launch_number]


def test_a_trial_that_was_saved_and_not_told_is_finished_by_another_worker(
    postgres: Cluster, database: str, tmp_path: Path
) -> None:
    one, other = two(database, tmp_path)
    with (
        at_work(one.store, Worker.new("a"), 600) as (one.ownership, _),
        at_work(other.store, Worker.new("b"), 600) as (other.ownership, _),
    ):
        finish(one, asked(one), "a")
        finish(other, asked(other), "b")
        proposal = asked(one)
        made = launch(77.0, trial=proposal.trial_number, number=proposal.launch_number)
        record = made.model_copy(update={"canonical": proposal.canonical, "host": "a"})
        one.save(record, {})
        expire(postgres, database)
        following = asked(other)
        assert following.trial_number == proposal.trial_number + 1
        with pytest.raises(LeaseLost):
            one.save(record, {})
    assert [n.launch_number for n in one.trials()[proposal.trial_number].launches] == [proposal.launch_number]


def test_workers_that_ask_at_once_never_overshoot_nor_get_the_same(database: str, tmp_path: Path) -> None:
    """Three trials are left, and four workers ask."""
    few = BUDGET.model_copy(update={"trials": 4})
    first = open_study(database, tmp_path)
    with at_work(first.store, Worker.new("a"), 600) as (first.ownership, _):
        finish(first, asked(first), "a")
    start, proposals = threading.Barrier(4), list[Proposal | None]()

    def ask_once(host: str) -> None:
        study = open_study(database, tmp_path)
        with at_work(study.store, Worker.new(host), 600) as (study.ownership, _):
            finish(study, asked(study), host)  # its own baseline
            start.wait()
            proposals.append(study.ask(few))
            start.wait()

    threads = [threading.Thread(target=ask_once, args=(host,)) for host in "bcde"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    made = [proposal for proposal in proposals if proposal is not None]
    assert len(proposals) == 4
    assert sorted(proposal.trial_number for proposal in made) == [1, 2, 3]
    assert len({proposal.canonical.key() for proposal in made}) == 3


def asked(study: Study) -> Proposal:
    proposal = study.ask(BUDGET)
    assert proposal is not None
    return proposal


def test_two_machines_that_give_their_hosts_one_name_are_told_apart(
    database: str, tmp_path: Path, leases_of: LeasesOf
) -> None:
    open_study(database, tmp_path)
    here, there = Worker("local-1", "local", "machine x"), Worker("local-2", "local", "machine y")
    one, other = leases_of(here), leases_of(there)
    one.make_table()
    Shared(one, here, print).join()
    with pytest.raises(HostBusy, match=r"host 'local' works on this study already.*machine x.*host\.name=NAME"):
        Shared(other, there, print).join()


def test_an_artifact_that_only_another_machine_has_is_said_to_be_there(database: str, tmp_path: Path) -> None:
    one, other = two(database, tmp_path)
    with at_work(one.store, Worker.new("a"), 60) as (one.ownership, _):
        finish(one, asked(one), "a")
    assert one.artifact(0, "launch-0-server.log") == b"log"
    with pytest.raises(
        KeyError, match=rf"no artifact 'launch-0-server.log' here: it was written on .*{tmp_path}/a"
    ):
        other.artifact(0, "launch-0-server.log")


def test_hosts_may_differ_in_their_drivers_and_in_nothing_that_all_share(database: str, tmp_path: Path) -> None:
    one, other = two(database, tmp_path)
    one.require_same({"host.name": "a", "host.driver": "1", "engine.version": "5"})
    other.require_same({"host.name": "b", "host.driver": "2", "engine.version": "5"})
    with pytest.raises(Exception, match=r"engine\.version: 5 then, 6 now"):
        other.require_same({"host.name": "c", "engine.version": "6"})
    with pytest.raises(Exception, match=r"host\.driver: 1 then, 3 now"):
        one.require_same({"host.name": "a", "host.driver": "3", "engine.version": "5"})


def test_a_reader_of_a_shared_study_changes_nothing(postgres: Cluster, database: str, tmp_path: Path) -> None:
    open_study(database, tmp_path)
    with pytest.raises(ConfigError, match=r"study\.name: 'nigth' is not in this storage; its studies: night"):
        StudyStore.open(database, "nigth", str(tmp_path), create=False)


@pytest.mark.parametrize("after", [False, True], ids=["before the statement", "before its answer"])
def test_a_study_is_opened_though_the_connection_is_lost_meanwhile(
    database: str, tmp_path: Path, after: bool
) -> None:
    open_study(database, tmp_path)
    url = make_url(normal_url(database))
    with StatementProxy(int(url.port or 0), after=after, most=5) as proxy:
        through = url.set(port=proxy.port).render_as_string(hide_password=False)
        study = open_study(through, tmp_path)
        assert study.trials() == ()
        assert len(proxy.cut) == 5


@pytest.mark.parametrize("host", ["127.0.0.1:9", "no-such-host.invalid"])
def test_an_address_at_which_nobody_answers_is_not_asked_again(host: str) -> None:
    clock = FakeClock()
    before = clock.monotonic_s()
    with pytest.raises(SQLAlchemyError):
        opened_patiently(lambda: connect(normal_url(f"postgresql://{host}/sweeps")).connect(), 30.0, clock)
    assert clock.monotonic_s() == before, "it is not asked again"


def test_a_server_that_never_answers_is_a_lost_connection(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_study(database, tmp_path)
    url = make_url(normal_url(database))
    with Proxy(int(url.port or 0)) as proxy:
        through = url.set(port=proxy.port).render_as_string(hide_password=False)
        study = open_study(through, tmp_path)
        monkeypatch.setattr(AnsweredConnection, "answer_s", 0.5)
        proxy.freeze()  # what was connected stays silent, and its packets are acknowledged
        proxy.heal()
        assert study.ask(BUDGET) is not None
        assert proxy.num_connections > 3, "by a new connection"
