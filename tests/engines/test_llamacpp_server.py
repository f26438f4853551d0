"""The wrapper's command line: llama-server's own flags, limits and manners."""

from __future__ import annotations

import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from launchers.clock import SystemClock
from launchers.llamacpp_server import DRAFT_TYPES, NGRAM_TYPES, main, parse_arguments, to_common_params
from sweeper.engines.llamacpp import LlamaCpp
from sweeper.engines.llamacpp.flags import NUMBERS, PLACED, TYPES

PORT = "31869"
COMMAND = [sys.executable, "-m", "launchers.llamacpp_server"]


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit) as caught:
        parse_arguments(arguments)
    assert caught.value.code == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ")
    return line


@pytest.fixture
def file(tmp_path: Path) -> str:
    """Something that is a file; whether it is a model shows later."""
    path = tmp_path / "x.gguf"
    path.write_bytes(b"nonsense" * 100)
    return str(path)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--draft-max", "3"], "invalid argument: --draft-max 3"),
        (["--spec-draft-n", "3"], "invalid argument: --spec-draft-n"),
        (["--spec-type", "ngram-simple,eagle"], "unknown speculative type: eagle"),
        (["--spec-ngram-simple-size-n", "0"], "must be between 1 and 1024 inclusive, not 0"),
        (["--spec-ngram-map-k4v-size-m", "1025"], "must be between 1 and 1024"),
        (["--spec-ngram-map-k-min-hits", "0"], "must be between 1"),
        (["--ctx-size", "big"], "must be a whole number, not 'big'"),
        (["--port", "70000"], "must be between 1 and 65535"),
        (["--flash-attn", "maybe"], "on, off or auto"),
        (["-m", "/no/such.gguf"], "failed to load model, '/no/such.gguf'"),
        ([], "required: -m/--model"),
    ],
)
def test_bad_argument_is_refused_with_one_line_and_exit_code_1(
    capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    assert said in refusal(capsys, *arguments)


def test_missing_draft_model_is_told_from_a_missing_model(capsys: pytest.CaptureFixture[str], file: str) -> None:
    assert "failed to load draft model, '/no'" in refusal(capsys, "-m", file, "-md", "/no")


def test_none_in_a_list_of_types_switches_speculation_off(file: str) -> None:
    given = parse_arguments(["-m", file, "--spec-type", "ngram-simple,none"])
    assert given["speculative.types"] == ("none",)


def test_flags_of_a_native_server_for_its_endpoints_are_accepted(file: str) -> None:
    assert parse_arguments(["-m", file, "--metrics", "--props", "--slots"]) == {"model.path": file}


def test_engine_and_wrapper_know_the_same_types() -> None:
    assert sorted(TYPES) == sorted((*DRAFT_TYPES, *NGRAM_TYPES))


@pytest.mark.engine
def test_every_flag_reaches_its_parameter(file: str) -> None:
    flags = {
        "--alias": "n",
        "--host": "127.0.0.1",
        "--port": "31000",
        "--ctx-size": "512",
        "--parallel": "2",
        "--threads": "3",
        "--batch-size": "64",
        "--ubatch-size": "32",
        "--seed": "-1",
        "--flash-attn": "off",
        "--spec-draft-model": file,
        "--spec-type": "draft-simple,ngram-mod",
        "--spec-draft-n-max": "7",
        "--spec-draft-p-min": "0.5",
        "--spec-ngram-simple-size-n": "5",
        "--spec-ngram-map-k4v-min-hits": "2",
        "--spec-ngram-mod-n-match": "20",
    }
    params = to_common_params(parse_arguments(["-m", file, *(word for pair in flags.items() for word in pair)]))
    speculative = params.speculative
    assert (params.model.path, params.model_alias, params.hostnames, params.port) == (
        file,
        {"n"},
        ["127.0.0.1"],
        31000,
    )
    assert (params.n_ctx, params.n_parallel, params.n_batch, params.n_ubatch) == (512, 2, 64, 32)
    assert params.cpuparams.n_threads == params.cpuparams_batch.n_threads == 3
    assert speculative.draft.cpuparams.n_threads == speculative.draft.cpuparams_batch.n_threads == 3
    assert params.sampling.seed == 2**32 - 1
    assert params.flash_attn_type.name == "LLAMA_FLASH_ATTN_TYPE_DISABLED"
    assert [t.name.removeprefix("COMMON_SPECULATIVE_TYPE_") for t in speculative.types] == [
        "DRAFT_SIMPLE",
        "NGRAM_MOD",
    ]
    assert (speculative.draft.mparams.path, speculative.draft.n_max, speculative.draft.p_min) == (file, 7, 0.5)
    assert (speculative.ngram_simple.size_n, speculative.ngram_map_k4v.min_hits) == (5, 2)
    assert speculative.ngram_mod.n_match == 20
    assert params.endpoint_metrics
    assert params.endpoint_props
    assert params.endpoint_slots


@pytest.mark.engine
def test_version_names_the_wheel(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("version: xllamacpp 2")


@pytest.mark.engine
def test_help_lists_every_flag_that_the_engine_knows_without_loading_the_engine() -> None:
    argv = LlamaCpp().help_argv([COMMAND[0], "-X", "importtime", *COMMAND[1:]])
    ended = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=True)
    needed = {*NUMBERS, *PLACED, "spec_type", "spec_draft_model", "seed", "flash_attn"}
    assert needed - LlamaCpp().known_flags(ended.stdout) == set()
    assert "argparse" in ended.stderr
    assert "xllamacpp" not in ended.stderr


@pytest.mark.engine
def test_file_that_is_no_model_ends_with_exit_code_1(file: str) -> None:
    ended = subprocess.run([*COMMAND, "-m", file, "--port", PORT], capture_output=True, timeout=60, check=False)
    assert ended.returncode == 1
    assert b"error: the server did not start" in ended.stderr


@pytest.mark.engine
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_stops_it_cleanly(model: Path, number: signal.Signals) -> None:
    arguments = ["-m", str(model), "--port", PORT, "-c", "256", "-t", "1"]
    with subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            assert becomes_healthy(server)
            server.send_signal(number)
            assert server.wait(timeout=30) == 0
        finally:
            server.kill()


@pytest.mark.engine
def test_a_missing_wheel_is_told_with_how_to_get_it() -> None:
    """`-S`: without the environment's packages."""
    command = [sys.executable, "-S", "-m", "launchers.llamacpp_server", "--version"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 1
    assert ended.stderr.startswith("error: the packaged llama.cpp (xllamacpp) is not installed: pip install")
    assert ended.stderr.count("\n") == 1


def becomes_healthy(server: subprocess.Popen[bytes]) -> bool:
    clock = SystemClock()
    deadline_s = clock.monotonic_s() + 60
    while clock.monotonic_s() < deadline_s and server.poll() is None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{PORT}/health", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            clock.sleep(0.1)
    return False
