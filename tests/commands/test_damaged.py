"""Studies of which something cannot be read: who looks leaves it out and says so, a sweep does not begin."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from sweeper.__main__ import main
from sweeper.errors import ExitCode, SpecsweepError
from sweeper.kept_search import KeptSearch
from sweeper.storing.artifact_place import MAX_BYTES
from sweeper.storing.storage import StudyStore
from tests.core.drafting import BASE, BUDGET, FACTS, SPACE, measured, open_study

pytestmark = [pytest.mark.study, pytest.mark.compose]

SPOILT = 3
"""The trial that most damages are done to."""

PAGES = (
    ("report", "--output", "-"),
    ("predict", "num_steps=6", "topk=1", "draft_tokens=4"),
    ("export", "baseline", "--format", "script", "--output", "-"),
)
ARGV = (
    *("python3", "-m", "sglang.launch_server", "--model-path", "/m", "--served-model-name", "m"),
    *("--host", "127.0.0.1", "--port", "30000"),
)
Harm = Callable[[sqlite3.Connection], object]


@dataclass(frozen=True)
class Case:
    """What is done to the database, and what is said of it. `seen`: also by `status`, which reads few launches."""

    what: str
    harm: Harm
    told: str
    seen: bool = True


def _attr(trial: int, text: str, name: str = "launch:0") -> Harm:
    query = (
        'UPDATE trial_user_attributes SET value_json = ? WHERE "key" = ? AND trial_id = '
        "(SELECT trial_id FROM trials WHERE number = ?)"
    )
    return lambda connection: connection.execute(query, (text, name, trial))


def _in_record(trial: int, change: Callable[[dict[str, object]], object]) -> Harm:
    """A launch's record, changed."""

    def harm(connection: sqlite3.Connection) -> None:
        query = (
            "SELECT value_json FROM trial_user_attributes WHERE \"key\" = 'launch:0' AND trial_id = "
            "(SELECT trial_id FROM trials WHERE number = ?)"
        )
        saved = json.loads(connection.execute(query, (trial,)).fetchone()[0])
        change(saved["record"])
        _attr(trial, json.dumps(saved))(connection)

    return harm


def _sql(*statements: str) -> Harm:
    return lambda connection: [connection.execute(statement) for statement in statements]


def _fact(name: str, text: str) -> Harm:
    query = 'UPDATE study_user_attributes SET value_json = ? WHERE "key" = ?'
    return lambda connection: connection.execute(query, (text, name))


def _of(trial: int) -> str:
    return f"trial_id = (SELECT trial_id FROM trials WHERE number = {trial})"


CASES = (
    Case(
        "cut off", _attr(SPOILT, '{"record": {"trial_number": 3, "host": "he'), "trial 3, launch 0: Invalid JSON"
    ),
    Case("empty", _attr(SPOILT, ""), "trial 3, launch 0: Invalid JSON"),
    Case("a list", _attr(SPOILT, "[1, 2]"), "trial 3, launch 0: Input should be an object"),
    Case(
        "a number as text",
        _in_record(SPOILT, lambda record: record.update(launch_number="first")),
        "trial 3, launch 0: record.launch_number: Input should be a valid integer",
    ),
    Case(
        "NaN",
        _in_record(SPOILT, lambda record: record.update(metrics={"output_throughput": float("nan")})),
        "trial 3, launch 0: ",
    ),
    Case(
        "a field of the future",
        _in_record(SPOILT, lambda record: record.update(quantum_state=1)),
        "trial 3, launch 0: record.quantum_state: Extra inputs are not permitted",
        seen=False,
    ),
    Case(
        "a failure of the future",
        _in_record(SPOILT, lambda record: record.update(failure={"kind": "melted", "message": "m"})),
        "trial 3, launch 0: record.failure.kind: ",
    ),
    Case(
        "another trial's number",
        _in_record(SPOILT, lambda record: record.update(trial_number=2)),
        "trial 3, launch 0: it says that it is of trial 2",
    ),
    Case(
        "another launch's number",
        _in_record(SPOILT, lambda record: record.update(launch_number=7)),
        "trial 3, launch 0: it says that it is launch 7",
    ),
    Case("ten megabytes", _attr(SPOILT, json.dumps({"record": "x" * 10_000_000})), "trial 3, launch 0: record: "),
    Case("deeply nested", _attr(SPOILT, "[" * 100_000), "trial 3, launch 0: "),
    Case(
        "no attributes",
        _sql(f"DELETE FROM trial_user_attributes WHERE {_of(SPOILT)}"),
        "trial 3: it was measured, and has no launch",
        seen=False,
    ),
    Case("no configuration", _attr(SPOILT, '"none"', "canonical"), "trial 3: ", seen=False),
    Case("half a configuration", _attr(SPOILT, '{"flags": {"a"', "canonical"), "trial 3: ", seen=False),
    Case("no state", _sql(f"UPDATE trials SET state = 'MELTED' WHERE {_of(SPOILT)}"), "trial 3: "),
    Case("a value that is none", _sql(f"UPDATE trial_values SET value = 'x' WHERE {_of(SPOILT)}"), "trial 3: "),
    Case(
        "a time that is none",
        _sql(f"UPDATE trials SET datetime_complete = 'noon' WHERE {_of(SPOILT)}"),
        "trial 3: ",
        seen=False,
    ),
    Case(
        "a distribution that is none",
        _sql(f"UPDATE trial_params SET distribution_json = '{{' WHERE {_of(SPOILT)}"),
        "trial 3: ",
        seen=False,
    ),
    Case(
        "a later launch of no trial",
        _sql("INSERT INTO study_user_attributes (study_id, \"key\", value_json) VALUES (1, 'launch:99:1', '{}')"),
        "trial 99, launch 1: the study has no such trial",
        seen=False,
    ),
    Case(
        "a later launch of what is no number",
        _sql("INSERT INTO study_user_attributes (study_id, \"key\", value_json) VALUES (1, 'launch:x:1', '{}')"),
        "what is kept under 'launch:x:1': no trial has such a number",
        seen=False,
    ),
    Case("half a verdict", _fact("verdict", '{"text": "Win'), "what is kept under 'verdict': "),
    Case("a verdict that is none", _fact("verdict", '"Winner"'), "what is kept under 'verdict': it is no table"),
    Case("half a fingerprint", _fact("fingerprint", '{"engine.name"'), "what is kept under 'fingerprint': "),
    Case("half a run", _fact("run:here", "{"), "what is kept under 'run:here': "),
    Case("the baseline's record", _attr(0, "{"), "trial 0, launch 0: Invalid JSON"),
)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `sweeps`, in it a study that is sound."""
    folder = tmp_path_factory.mktemp("sound")
    study = open_study(folder / "sweeps")
    while (proposal := study.ask(BUDGET)) is not None:
        record = measured(proposal).model_copy(update={"argv": ARGV})
        study.tell(proposal, study.save(record, {"server.log": b"one line\n", "requests.jsonl": b""}))
    KeptSearch(engine="sglang", objective="output_throughput", space=SPACE, base=BASE, facts=FACTS).keep(
        study.store
    )
    for name in ("fingerprint", "run:here"):
        study.store.set_fact(name, {"engine.name": "sglang"})
    study.verdict(lambda _: (0.0,))
    return folder


@pytest.fixture
def here(sound: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with a copy of it."""
    shutil.copytree(sound / "sweeps", tmp_path / "sweeps")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "400")
    return tmp_path


def harmed(folder: Path, case: Case) -> None:
    with closing(sqlite3.connect(folder / "sweeps/optuna.db")) as connection, connection:
        case.harm(connection)


def opened() -> StudyStore:
    return StudyStore.open("sqlite:///sweeps/optuna.db", "night", "sweeps", create=False)


def looked(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """What a command says, notes and all; it ends well."""
    code = main([words[0], *words[1:], *([] if words[0] == "studies" else ["study.name=night"])])
    said = capsys.readouterr()
    assert code == ExitCode.OK, said.err
    return said.out + said.err


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.what)
def test_who_looks_says_what_is_left_out_and_shows_the_rest(
    case: Case, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    harmed(here, case)
    for command in (("status",), ("studies",)):
        said = looked(capsys, *command)
        assert "night" in said
        assert case.told.partition(": ")[0] in said or not case.seen
    found = looked(capsys, "report", "--json")
    assert case.told in found
    assert len(json.loads(found[found.index("{") :].rpartition("}")[0] + "}")["trials"]) >= 7


@pytest.mark.parametrize("what", ["cut off", "no configuration", "no state", "half a fingerprint"])
@pytest.mark.parametrize("command", PAGES, ids=lambda command: command[0])
def test_every_page_tells_it_in_one_line(
    what: str, command: tuple[str, ...], here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    case = next(case for case in CASES if case.what == what)
    harmed(here, case)
    said = looked(capsys, *command)
    notes = [line for line in said.splitlines() if line.startswith("note: study night: left out")]
    assert len(notes) == 1
    assert case.told in notes[0]


def test_the_report_names_the_launch_and_where_its_files_are(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    harmed(here, CASES[0])
    page = looked(capsys, "report", "--output", "-").partition("\nnote: ")[0]
    assert "- **Left out:** trial 3, launch 0 cannot be read, as" in page.partition("## ")[0]
    (line,) = [line for line in page.splitlines() if "trial 3, launch 0: Invalid JSON" in line]
    assert "sweeps/artifacts/night/trial-3-launch-0-" in line.replace("\\", "")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.what)
def test_nothing_is_added_to_such_a_study_and_the_way_on_is_told(case: Case, here: Path) -> None:
    harmed(here, case)
    before = hashlib.sha256(Path("sweeps/optuna.db").read_bytes()).digest()
    with pytest.raises(SpecsweepError) as refused:
        opened().require_readable()
    assert case.told in str(refused.value)
    assert "study.name=NEW study.warm_start=[night]" in str(refused.value)
    assert hashlib.sha256(Path("sweeps/optuna.db").read_bytes()).digest() == before


def test_a_record_that_is_damaged_while_a_sweep_runs_ends_it(here: Path) -> None:
    study = open_study(here / "sweeps")
    assert study.trials()
    harmed(here, CASES[0])
    with pytest.raises(SpecsweepError, match="trial 3, launch 0"):
        open_study(here / "sweeps").ask(BUDGET.model_copy(update={"trials": 20}))


def test_a_trial_keeps_the_launches_that_can_be_read(here: Path) -> None:
    store = opened()
    record = store.trials()[SPOILT].launches[0]
    store.save_launch(record.model_copy(update={"launch_number": 1}), {})
    harmed(here, CASES[0])
    store = opened()
    assert [launch.launch_number for launch in store.readable()[SPOILT].launches] == [1]
    assert [damage.place for damage in store.damages()] == ["trial 3, launch 0"]


def test_a_baseline_that_cannot_be_read_is_not_called_unmeasured(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    harmed(here, next(case for case in CASES if case.what == "the baseline's record"))
    said = looked(capsys, "status")
    assert "what the baseline did cannot be read" in said
    assert "has not been measured" not in said


def test_many_damages_are_counted_and_the_first_told(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    harmed(
        here, Case("all", _sql("UPDATE trial_user_attributes SET value_json = '{' WHERE \"key\" = 'launch:0'"), "")
    )
    said = looked(capsys, "report", "--json")
    assert "trial 4, launch 0: " in said
    assert "and 3 more" in said
    assert "trial 5, launch 0" not in said.partition("{")[0]


def test_a_sound_study_says_nothing(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in (("status",), ("studies",), *PAGES):
        said = looked(capsys, *command)
        assert "left out, because" not in said
        assert "damaged" not in said.replace('"damaged": []', "")
    opened().require_readable()


def _folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def _huge(file: Path) -> None:
    with file.open("wb") as sparse:
        sparse.truncate(MAX_BYTES + 1)


def _pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def _link(target: str) -> Callable[[Path], None]:
    def link(file: Path) -> None:
        file.unlink()
        file.symlink_to(target)

    return link


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (Path.unlink, "has no artifact"),
        (_folder, "it is no plain file"),
        (_huge, "it is of 256 MiB"),
        (_pipe, "it is no plain file"),
        (_link("/dev/zero"), "it is no plain file"),
        (_link("nowhere"), "has no artifact"),
        (_link("trial-3-launch-0-server.log"), "Too many levels of symbolic links"),
    ],
    ids=["gone", "folder", "huge", "pipe", "device", "dangling", "loop"],
)
def test_what_is_no_artifact_is_told_and_never_read_or_written_through(
    spoil: Callable[[Path], None], told: str, here: Path
) -> None:
    store, name = opened(), "launch-0-server.log"
    file = here / "sweeps/artifacts/night" / f"trial-{SPOILT}-{name}"
    spoil(file)
    with pytest.raises(KeyError, match=told):
        store.artifact(SPOILT, name)
    if file.is_dir():
        return
    store.save_launch(store.trials()[SPOILT].launches[0], {"server.log": b"anew\n"})
    assert store.artifact(SPOILT, name) == b"anew\n"
    assert not file.is_symlink()
    assert not Path("sweeps/artifacts/night/nowhere").exists()
