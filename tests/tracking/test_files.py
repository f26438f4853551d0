"""The files of a run."""

from __future__ import annotations

import json
import shlex

import pytest

from sweeper.records import TrialRecord
from sweeper.secrets import is_secret_name, secrets_of
from sweeper.tracking.files import MAX_FILE_BYTES, MAX_LAUNCHES, command_lines, run_files
from tests.tracking.studies import config, launch, make_study, spec_config, trial


def files(record: TrialRecord, artifacts: dict[str, bytes]) -> dict[str, bytes]:
    named = record.model_copy(update={"artifacts": {name: name for name in artifacts}})
    return run_files(named, lambda name: artifacts[name])


def no_artifact(name: str) -> bytes:
    raise KeyError(name)


def test_the_command_line_can_be_pasted_into_a_shell() -> None:
    settings = config({"prompt": "it's $HOME; `x`"}, {"GGML_X": "a b"})
    record = trial(1, settings, launches=(launch(1, settings),))
    comment, line = command_lines(record).splitlines()
    assert comment == "# launch 0 on local"
    assert shlex.split(line) == ["GGML_X=a b", *record.launches[0].argv]


def test_each_launch_has_its_command_line_and_one_that_never_started_says_so() -> None:
    settings = spec_config(1)
    record = trial(1, settings, launches=(launch(1, settings, argv=()), launch(1, settings, 1)))
    lines = command_lines(record).splitlines()
    assert lines[:3] == ["# launch 0 on local", "# not started", "# launch 1 on local"]


def test_requests_of_all_launches_become_one_table_without_empty_columns() -> None:
    study = make_study(2)
    raw = study.artifacts[1, "launch-0-requests.jsonl"]
    made = files(study.records[1], {"launch-0-requests.jsonl": raw, "launch-1-requests.jsonl": raw})
    table = json.loads(made["requests.json"])
    assert table["columns"][:4] == ["launch", "repeat", "prompt_id", "prompt_class"]
    assert "num_drafted_tokens" not in table["columns"]
    assert [row[:3] for row in table["data"]][5:7] == [[0, 1, "p2"], [1, 0, "p0"]]
    assert len(table["data"]) == 12


def test_requests_of_a_further_workload_bear_its_name() -> None:
    raw = b'{"repeat": 0}\n'
    named = {"launch-0-requests.jsonl": raw, "launch-0-requests-very busy.jsonl": raw}
    table = json.loads(files(trial(1, spec_config(1)), named)["requests.json"])
    assert table["columns"][:2] == ["launch", "workload"]
    assert sorted(row[:2] for row in table["data"]) == [[0, ""], [0, "very busy"]]


def test_broken_lines_of_requests_are_left_out() -> None:
    made = files(trial(1, spec_config(1)), {"launch-0-requests.jsonl": b'{"repeat": 0}\n{"rep\n\xff\n[1]\n7\n'})
    assert json.loads(made["requests.json"]) == {"columns": ["launch", "repeat"], "data": [[0, 0]]}


def test_a_lost_artifact_is_left_out() -> None:
    record = trial(1, spec_config(1)).model_copy(update={"artifacts": {"launch-0-server.log": "x"}})
    assert set(run_files(record, no_artifact)) == {"command.txt", "record.json"}


def test_a_log_is_valid_text_bounded_and_keeps_its_end() -> None:
    made = files(
        trial(1, spec_config(1)), {"launch-0-server.log": b"\xff" * 10 + b"x" * MAX_FILE_BYTES + b"the end"}
    )
    text = made["launch-0-server.log"].decode()
    assert text.endswith("the end")
    assert len(text) == MAX_FILE_BYTES


def test_of_very_many_launches_the_newest_are_in_the_files() -> None:
    settings, count = spec_config(1), MAX_LAUNCHES + 2
    record = trial(1, settings, launches=tuple(launch(1, settings, n) for n in range(count)))
    named = {f"launch-{n}-server.log": b"x" for n in range(count)} | {"log": b"y"}
    made = files(record, named)
    shown = TrialRecord.model_validate_json(made["record.json"])
    assert shown.launches == record.launches[2:]
    assert made["command.txt"].decode().startswith("# launch 2 on local\n")
    assert named.keys() - made.keys() == {"launch-0-server.log", "launch-1-server.log"}


def test_a_file_name_cannot_leave_the_folder() -> None:
    assert set(files(trial(1, spec_config(1)), {"../../etc/passwd": b"x"})) == {
        "command.txt",
        "record.json",
        "passwd",
    }


def test_the_record_round_trips() -> None:
    record = trial(1, spec_config(1))
    assert TrialRecord.model_validate_json(files(record, {})["record.json"]) == record


def test_secrets_are_in_no_file() -> None:
    settings = config({"api_key": "hunter22"}, {"HF_TOKEN": "hf_abcdef"})
    started = launch(1, settings, argv=("serve", "--api-key", "hunter22", "--auth-token=tok-123"))
    log = b"args: api_key=hunter22 hf_abcdef tok-123\n"
    made = files(trial(1, settings, launches=(started,)), {"launch-0-server.log": log})
    everything = b"".join(made.values())
    for secret in (b"hunter22", b"hf_abcdef", b"tok-123"):
        assert secret not in everything
    assert made["launch-0-server.log"] == b"args: api_key=*** *** ***\n"


def test_secrets_are_not_in_a_repr() -> None:
    assert "hunter22" not in repr(secrets_of([trial(1, config({"api_key": "hunter22"}))]))


def test_a_bare_secret_switch_does_not_hide_the_next_flag() -> None:
    started = launch(1, config({}), argv=("serve", "--require-key", "--port", "8080"))
    assert "--port 8080" in command_lines(trial(1, config({}), launches=(started,)))
    assert secrets_of([trial(1, config({}), launches=(started,))]).values == frozenset()


@pytest.mark.parametrize("name", ["HF_TOKEN", "api_key", "--api-key", "AWS_SECRET_ACCESS_KEY", "db.password"])
def test_names_of_secrets(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name", ["num_draft_tokens", "max_tokens", "cache_type_k", "tokenizer", "spec_ngram_size_n"]
)
def test_names_that_are_no_secrets(name: str) -> None:
    assert not is_secret_name(name)
