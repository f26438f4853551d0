"""Where MLflow lives, and what is said about it."""

from __future__ import annotations

import socket
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from sweeper.errors import ConfigError
from sweeper.spec import TrackingSpec
from sweeper.tracking import become_ui
from sweeper.tracking.place import (
    PlaceUnusable,
    check_writable,
    is_missing_below,
    mask,
    one_line,
    place_of,
    require_database,
    require_port,
    ui_address,
    ui_argv,
    ui_env,
    uri_mistake,
)


def spec(uri: str, artifacts: str = "") -> TrackingSpec:
    return TrackingSpec(uri=uri, artifact_location=artifacts, sync_s=10.0)


def test_sqlite_paths_become_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    place = place_of(spec("sqlite:///sweep/mlflow.db", "sweep/my files"))
    assert place.uri == f"sqlite:///{tmp_path}/sweep/mlflow.db"
    assert place.database == tmp_path / "sweep/mlflow.db"
    assert place.artifact_root == f"file://{tmp_path}/sweep/my%20files"
    assert place_of(spec("sqlite:///a/b.db")).artifact_root == f"file://{tmp_path}/a/mlartifacts"


def test_a_server_keeps_its_own_files_unless_told_an_address() -> None:
    assert place_of(spec("http://host:5000/", "runs/files")).artifact_root is None
    assert place_of(spec("http://host:5000/", "s3://bucket/x")).artifact_root == "s3://bucket/x"
    assert place_of(spec("http://host:5000/")).uri == "http://host:5000"


@pytest.mark.parametrize("uri", ["", "sqlite:///a.db", "sqlite:////abs/a.db", "http://host", "https://host:1/x"])
def test_addresses_that_can_be_used(uri: str) -> None:
    assert uri_mistake(uri) is None


@pytest.mark.parametrize(
    "uri",
    ["mlruns", "sqlite:", "sqlite:///", "sqlite:///:memory:", "file:///x", "http://", "http://[x", "databricks"],
)
def test_addresses_that_cannot_be_used_are_refused_with_what_would_be_right(uri: str) -> None:
    assert uri_mistake(uri) is not None
    with pytest.raises(PlaceUnusable, match=r"tracking\.uri"):
        place_of(spec(uri))


def test_no_password_in_a_message() -> None:
    mistake = uri_mistake("postgresql://me:s3cret@host/db")
    assert mistake is not None
    assert "s3cret" not in mistake
    assert mask("at http://me:s3cret@host/x and https://you:pw@b") == "at http://***@host/x and https://***@b"
    assert "s3cret" not in repr(place_of(spec("http://me:s3cret@host")))


def test_the_innermost_cause_is_told_in_one_short_line() -> None:
    outer = OSError("x" * 500)
    assert one_line(outer) == "x" * 199 + "…"
    outer.__context__ = ConnectionRefusedError(111, "Connection\nrefused")
    assert one_line(outer) == "[Errno 111] Connection refused"
    assert one_line(TimeoutError()) == "TimeoutError"


def test_an_error_that_was_merely_being_handled_is_not_the_cause() -> None:
    error = OSError("of MLflow")
    error.__context__ = LookupError("of the sweep")
    assert one_line(error) == "of MLflow"


def test_the_page_of_a_file_is_served_lean_and_without_the_store_on_the_command_line(tmp_path: Path) -> None:
    here = spec(f"sqlite:///{tmp_path}/mlflow.db")
    argv = ui_argv(here, "127.0.0.1", 5001)
    assert argv[1:10] == ("-m", "mlflow", "server", "--host", "127.0.0.1", "--port", "5001", "--workers", "1")
    env = ui_env(here)
    assert env["MLFLOW_BACKEND_STORE_URI"] == here.uri
    assert env["MLFLOW_SERVER_ENABLE_JOB_EXECUTION"] == "false"
    assert ui_address(here, "127.0.0.1", 5001) == "http://127.0.0.1:5001"


def test_a_server_needs_no_second_one() -> None:
    assert ui_argv(spec("http://host:5000"), "127.0.0.1", 5001) == ()
    assert ui_address(spec("http://me:s3cret@host:5000/"), "127.0.0.1", 5001) == "http://host:5000"


def test_there_is_no_page_when_tracking_is_off() -> None:
    with pytest.raises(PlaceUnusable, match="tracking is off"):
        ui_argv(spec(""), "127.0.0.1", 5001)


@pytest.mark.parametrize("folder", ["100%20done", "what?", "no#1"])
def test_a_path_that_mlflow_would_take_for_another_is_refused(folder: str, tmp_path: Path) -> None:
    with pytest.raises(PlaceUnusable, match="cannot keep files where a path has %"):
        place_of(spec(f"sqlite:///{tmp_path}/{folder}/mlflow.db"))
    with pytest.raises(PlaceUnusable, match="cannot keep files where a path has %"):
        place_of(spec(f"sqlite:///{tmp_path}/mlflow.db", f"{tmp_path}/{folder}"))


@pytest.mark.parametrize("file", ["/proc/mlflow.db", "missing folder/mlflow.db", "folder"])
def test_a_database_that_cannot_be_written_is_found_out_before_mlflow_tries(file: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(sqlite3.OperationalError, match="unable to open database file"):
        check_writable(tmp_path / file)


def test_finding_out_leaves_a_database_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "a b.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE experiments (name TEXT)")
    before = file.read_bytes()
    check_writable(file)
    assert file.read_bytes() == before
    assert list(tmp_path.iterdir()) == [file]


def test_only_files_below_the_root_can_be_missing(tmp_path: Path) -> None:
    (tmp_path / "a b" / "run").mkdir(parents=True)
    root = (tmp_path / "a b").as_uri()
    assert is_missing_below(root, f"{root}/other/artifacts")
    assert not is_missing_below(root, f"{root}/run")
    assert not is_missing_below(root, (tmp_path / "before" / "run").as_uri())
    assert not is_missing_below(None, "mlflow-artifacts:/1/run")
    assert not is_missing_below("s3://bucket", "s3://bucket/run")


def test_where_there_is_no_database_nothing_is_made_for_the_page(tmp_path: Path) -> None:
    file = tmp_path / "nowhere" / "mlflow.db"
    with pytest.raises(PlaceUnusable, match=r"no MLflow database at .*mlflow\.db; run a sweep first or check"):
        become_ui(spec(f"sqlite:///{file}"), "night", "127.0.0.1", 5001)
    assert not file.parent.exists()


def test_a_file_that_is_no_database_has_no_page(tmp_path: Path) -> None:
    (tmp_path / "mlflow.db").write_text("not a database, and longer than one hundred bytes " * 4)
    with pytest.raises(PlaceUnusable, match=r"mlflow\.db: file is not a database"):
        require_database(tmp_path / "mlflow.db")


@pytest.mark.host
def test_an_address_at_which_nothing_can_listen_is_refused_before_mlflow_is_loaded() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(
            ConfigError, match=rf"--host, --port: nothing can listen at 127\.0\.0\.1:{port}: .*in use"
        ):
            require_port("127.0.0.1", port)
    require_port("127.0.0.1", port)
    with pytest.raises(ConfigError, match="nothing can listen at 192"):
        require_port("192.0.2.1", port)


@pytest.mark.parametrize("port", [99999, 0, -1])
def test_a_port_that_is_none_is_refused(port: int, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=f"--port: {port} is no port; use 1 to 65535"):
        become_ui(spec(f"sqlite:///{tmp_path}/mlflow.db"), "night", "127.0.0.1", port)
