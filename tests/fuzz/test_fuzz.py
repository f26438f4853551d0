"""A small share of `make fuzz`, the same each time, and every input that has ever broken a parser."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest

from launchers.errors import HostLost
from launchers.gpu_sample import QUERIES, read_sample
from launchers.gpus import read_gpus
from launchers.host import HostLauncher, HostSettings
from sweeper.engines.sglang import SGLang
from sweeper.engines.vllm import Vllm
from sweeper.errors import SpecsweepError
from sweeper.secrets import secrets_of
from tests.fakes import FakeClock, trial
from tests.fuzz.campaign import feed
from tests.fuzz.doctor_answers import SEEDS, doctor_parser
from tests.fuzz.mlflow_answers import Place, answer_parser, answer_seeds, over_http, with_odd
from tests.fuzz.mutator import mutated
from tests.fuzz.parsers import Parser, parsers
from tests.fuzz.reply_shell import HANDLE, ReplyShell
from tests.fuzz.stored import DamagedStore
from tests.fuzz.written import PAGE

SHARE = 120
PARSERS = parsers(Path(tempfile.mkdtemp(prefix="specsweep-fuzz-")))
LONG = "9" * 5000


@pytest.mark.parametrize("parser", PARSERS, ids=lambda parser: parser.name)
def test_a_parser_survives_whatever_it_is_fed(parser: Parser) -> None:
    outcome = feed(parser, SHARE)
    assert outcome.crashes == {}
    assert outcome.num_inputs >= SHARE


@pytest.mark.host
def test_a_sync_survives_whatever_mlflow_answers() -> None:
    seeds = answer_seeds()
    assert feed(Parser("MLflow: answers to two syncs", answer_parser(), seeds[:SHARE]), SHARE).crashes == {}
    assert feed(Parser("MLflow: over a connection", over_http(), seeds[:1]), 15).crashes == {}


@pytest.mark.host
@pytest.mark.parametrize(
    ("place", "odd"),
    [
        (("experiment",), "\ud800"),
        (("runs", 0, "info"), "\ud800"),
        (("runs", 0, "info", "start_time"), float("inf")),
        (("runs", 0, "data", "metrics", 0, "value"), 10**400),
        (("runs", 0, "data", "tags", 2, "value"), LONG),
    ],
    ids=["half an object", "half a pair", "no moment", "no value", "no trial"],
)
def test_an_answer_that_mlflow_s_own_client_stumbles_over_ends_no_sweep(place: Place, odd: object) -> None:
    content = json.dumps(with_odd(json.loads(answer_seeds()[0]), place, odd)).encode()
    answer_parser()(content)


@pytest.mark.compose
def test_every_check_of_the_doctor_survives_whatever_a_host_tells() -> None:
    parser = Parser("doctor: what a host tells", doctor_parser(), SEEDS, (HostLost,))
    assert feed(parser, SHARE).crashes == {}


def test_the_page_has_every_parser_and_no_crash() -> None:
    rows = [line.split(" | ") for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    told = {words[0].removeprefix("| "): words[-1] for words in rows}
    assert [parser.name for parser in PARSERS if parser.name not in told] == []
    assert {crashes for name, crashes in told.items() if name != "parser"} == {"0 |"}


def test_the_harness_sees_a_crash_and_the_input_that_caused_it() -> None:
    def fragile(content: bytes) -> None:
        if b"\x00" in content:
            raise KeyError("nul")

    outcome = feed(Parser("fragile", fragile, (b"abc",)), 2000)
    ((what, content),) = outcome.crashes.items()
    assert what.startswith("KeyError in test_fuzz.py:")
    assert b"\x00" in content
    assert 0 < outcome.num_crashes < 2000


def test_inputs_are_the_same_in_every_process() -> None:
    assert mutated((b"hello 12 world",), 7, "x") == mutated((b"hello 12 world",), 7, "x")
    assert len({mutated((b"hello 12 world",), index, "x") for index in range(100)}) > 80


def test_a_number_of_thousands_of_digits_is_no_memory_figure() -> None:
    look = read_gpus(f"code gpu 0\ngpu 0, H200, GPU-0, {LONG}, 143771\ncode app 0")
    assert look.problems[0].startswith("GPU 0: memory")
    sample = read_sample(f"code gpu 0\ncode app 0\napp GPU-0, {LONG}, python, 4000", QUERIES[0], "s-1", (), 1024)
    assert sample.holders == ()
    with pytest.raises(HostLost):
        read_gpus(f"code gpu 0\npid {LONG} - root python")


@pytest.mark.parametrize("line", ["s-1 \0 34 b-1 30000", "../x 12 34 b-1 30000", "s-1 12 34 b-1 x", "-s 1 2 b 3"])
def test_a_listed_server_that_cannot_be_one_of_ours_is_never_named_to_a_shell(line: str) -> None:
    launcher = HostLauncher(ReplyShell(f"list\n{line}".encode()), HostSettings("gpu", "/state"), FakeClock())
    with pytest.raises(HostLost, match="makes no sense"):
        launcher.stop_leftovers(0.0)


@pytest.mark.parametrize("body", [f"status\nrunning - {LONG}", f"stopped\n0 {LONG} 12 yes TERM"])
def test_a_reply_with_such_a_number_is_a_lost_host(body: str) -> None:
    launcher = HostLauncher(ReplyShell(body.encode()), HostSettings("gpu", "/state"), FakeClock())
    with pytest.raises(HostLost):
        launcher.stop(HANDLE, 0.0) if body.startswith("stopped") else launcher.status(HANDLE)


def test_token_ids_that_are_nested_too_deeply_are_refused() -> None:
    with pytest.raises(ValueError, match="nested"):
        SGLang().parse_template(f"specsweep-token-ids {'[' * 5000}")


def test_a_setting_that_no_record_can_hold_is_left_out_of_what_vllm_reports() -> None:
    parts = {"model_config": {"seed": float("-inf"), "dtype": "torch.bfloat16", "max_model_len": 10**40},
             "speculative_config": {"num_speculative_tokens": float("nan"), "method": "ngram"}}  # fmt: skip
    effective = Vllm().effective({"vllm_config": parts})
    assert effective == {"dtype": "bfloat16", "spec_method": "ngram"}


def test_a_launch_that_never_got_a_command_line_has_no_secret_in_it() -> None:
    assert secrets_of([trial(1, (50.0,))]).values == frozenset()


@pytest.mark.parametrize("attributes", [
    ({"canonical": {"flags": {"n": float("inf")}, "env": {}}}, {}),
    ({"key": 5}, {}),
    ({}, {"launch:x:1": {}}),
    ({}, {f"launch:{LONG}:1": {}}),
    ({}, {"launch:0:1": {"record": [], "artifacts": 3}}),
    ({"launch:0": 7}, {}),
])  # fmt: skip
def test_a_damaged_study_is_one_message(
    attributes: tuple[dict[str, object], dict[str, object]], tmp_path: Path
) -> None:
    with pytest.raises(SpecsweepError, match="cannot be read") as told:
        DamagedStore(tmp_path, *attributes).trials()
    assert len(str(told.value).splitlines()) <= 4
