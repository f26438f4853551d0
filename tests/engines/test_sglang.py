"""SGLang's command lines, versions, chat tokens and canary, as the class puts them together."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from sweeper.engines.base import HostFacts, Placement
from sweeper.engines.sglang.engine import BYPASS_STEPS, SGLang
from sweeper.spec import ServerConfig
from sweeper.workload_spec import Prompt, WorkloadSpec
from tests.gpu_host.host import make_host

ENGINE = SGLang()
COMMAND = ("/opt/sglang/bin/python", "-m", "sglang.launch_server")
PLACEMENT = Placement(COMMAND, "/models/kimi k2", 30000, "nonce-7")
EAGLE3 = ServerConfig(flags={"speculative_algorithm": "EAGLE3", "tp_size": 8, "disable_cuda_graph": True})


def test_a_command_line_has_the_nonce_the_model_and_every_flag_as_a_word_of_its_own() -> None:
    spec = ENGINE.launch_spec(EAGLE3, PLACEMENT)
    assert spec.argv[:3] == COMMAND
    pairs = dict(zip(spec.argv[3:], spec.argv[4:], strict=False))
    assert pairs["--model-path"] == "/models/kimi k2"
    assert pairs["--served-model-name"] == "nonce-7"
    assert (pairs["--host"], pairs["--port"]) == ("127.0.0.1", "30000")
    assert pairs["--speculative-algorithm"] == "EAGLE3"
    assert spec.argv[-1] == "--disable-cuda-graph"
    assert spec.others == ()


def test_a_flag_that_takes_several_numbers_gets_them_as_words() -> None:
    config = ServerConfig(flags={"cuda_graph_bs": "1 2 4", "model_loader_extra_config": '{"a": 1}'})
    argv = ENGINE.launch_spec(config, PLACEMENT).argv
    at = argv.index("--cuda-graph-bs")
    assert argv[at : at + 4] == ("--cuda-graph-bs", "1", "2", "4")
    assert '{"a": 1}' in argv, "a text stays one word"


def test_what_would_fake_acceptance_is_unset_in_every_launch() -> None:
    unset = ENGINE.launch_spec(EAGLE3, PLACEMENT).unset_env
    assert {"SGLANG_SIMULATE_ACC_LEN", "SIMULATE_ACC_LEN"} <= set(unset)


def test_a_server_over_three_hosts_has_one_command_line_per_rank() -> None:
    spread = Placement(COMMAND, "/m", 30000, "nonce-7", num_nodes=3, node_address="10.0.0.1:20000")
    first = ENGINE.launch_spec(EAGLE3, spread)
    ranks = [first, *first.others]
    assert [rank.argv[-1] for rank in ranks] == ["0", "1", "2"]
    assert [rank.nonce for rank in ranks] == ["nonce-7", "nonce-7-1", "nonce-7-2"]
    for rank in ranks:
        pairs = dict(zip(rank.argv[3:], rank.argv[4:], strict=False))
        assert (pairs["--nnodes"], pairs["--dist-init-addr"]) == ("3", "10.0.0.1:20000")
        assert pairs["--served-model-name"] == "nonce-7", "all ranks serve under one name"


@pytest.mark.parametrize("steps", [BYPASS_STEPS, 5000])
def test_drafts_that_are_never_kept_are_a_bypass_not_a_score(steps: int) -> None:
    assert "1.004" in ENGINE.bypass(EAGLE3, {"accept_length": 1.004, "num_verify_steps": float(steps)})


@pytest.mark.parametrize(
    ("flags", "length", "steps"),
    [
        ({"speculative_algorithm": "EAGLE3"}, 1.06, 5000),
        ({"speculative_algorithm": "EAGLE3"}, 1.0, BYPASS_STEPS - 1),
        ({"speculative_algorithm": "NGRAM"}, 1.0, 5000),
        ({}, 1.0, 5000),
    ],
)
def test_what_is_kept_sometimes_or_was_not_seen_often_enough_is_none(
    flags: dict[str, str], length: float, steps: int
) -> None:
    metrics = {"accept_length": length, "num_verify_steps": float(steps)}
    assert ENGINE.bypass(ServerConfig(flags=flags), metrics) == ""
    assert ENGINE.bypass(ServerConfig(flags=flags), {}) == ""


def test_chat_prompts_are_sent_as_tokens_and_bare_ones_as_text() -> None:
    prompt = Prompt(id="p", text="hello", token_ids=(1, 2))
    chat = WorkloadSpec(
        name="w", prompts=(prompt,), max_tokens=8, repeats=1, warmup_max_requests=0, temperature=0, seed=0,
        request_timeout_s=5,
    )  # fmt: skip
    body = ENGINE.request(prompt, chat, 8).json
    assert body is not None
    assert body["input_ids"] == [1, 2]
    assert "text" not in body
    bare = ENGINE.request(prompt, chat.model_copy(update={"chat": False}), 8).json
    assert bare is not None
    assert bare["text"] == "hello"
    assert "input_ids" not in bare


@pytest.mark.parametrize("output", ["", "specsweep-token-ids {}", "specsweep-token-ids [[1], []]", "[[1]]"])
def test_token_ids_that_make_no_sense_are_refused(output: str) -> None:
    with pytest.raises(ValueError):
        ENGINE.parse_template(f"loading ...\n{output}\n")


def test_token_ids_are_found_behind_whatever_was_printed_before() -> None:
    assert ENGINE.parse_template("warning: x\n\nspecsweep-token-ids [[1, 2], [3]]\n") == [(1, 2), (3,)]


def test_a_version_too_old_or_none_at_all_is_refused() -> None:
    assert ENGINE.parse_version("noise\nsglang 0.5.15.post1\n") == "0.5.15.post1"
    with pytest.raises(ValueError):
        ENGINE.parse_version("sglang 0.4.6")
    with pytest.raises(ValueError, match="no line"):
        ENGINE.parse_version("Python 3.11")


def test_a_newer_version_than_is_known_is_told() -> None:
    notes = ENGINE.without_effect(ServerConfig(), HostFacts(engine_version="0.9.0"))
    assert any("0.9.0" in note for note in notes)


@pytest.mark.host
def test_version_and_chat_tokens_come_from_the_python_of_the_command(tmp_path: Path) -> None:
    host = make_host(tmp_path, "0.5.20")
    version = subprocess.run(ENGINE.version_argv(host.command), capture_output=True, text=True, check=True)
    assert ENGINE.parse_version(version.stdout) == "0.5.20"
    texts = ['it\'s "one"', "two\nlines"]
    argv = ENGINE.template_argv(host.command, ServerConfig(), host.model("kimi-k2.5"), texts)
    rendered = subprocess.run(argv, capture_output=True, text=True, check=True)
    ids = ENGINE.parse_template(rendered.stdout)
    assert len(ids) == 2
    assert ids[0] != ids[1]


@pytest.mark.host
def test_the_python_behind_an_installed_program_is_found(tmp_path: Path) -> None:
    program = tmp_path / "sglang"
    program.write_text(f"#!{sys.executable} -s\nraise SystemExit('not this')\n")
    program.chmod(0o755)
    argv = (*ENGINE.version_argv((str(program), "serve"))[:-2], "-c", "import json; print(json.dumps('here'))")
    assert json.loads(subprocess.run(argv, capture_output=True, text=True, check=True).stdout) == "here"


def test_flags_are_read_from_the_servers_own_help_only() -> None:
    listed = "usage: launch_server [--model-path MODEL_PATH] [--tp-size N]"
    assert ENGINE.known_flags(listed) == {"model_path", "tp_size"}
    assert ENGINE.known_flags("usage: other [--tp-size N]") == frozenset()


@pytest.mark.parametrize(
    ("command", "python"),
    [
        (("/opt/sglang/bin/python", "-m", "sglang.launch_server"), ("/opt/sglang/bin/python",)),
        (("numactl", "-N", "0", "python3", "-m", "sglang.launch_server"), ("numactl", "-N", "0", "python3")),
        (("taskset", "-c", "0-7", "/v/bin/python3.11", "-m", "x"), ("taskset", "-c", "0-7", "/v/bin/python3.11")),
        (("./serve.sh",), ("python3",)),
    ],
)
def test_the_python_of_a_wrapped_command_is_found(command: tuple[str, ...], python: tuple[str, ...]) -> None:
    argv = ENGINE.version_argv(command)
    assert argv[: len(python)] == python
    assert argv[len(python)] == "-c"


@pytest.mark.parametrize("name", ["api_key", "admin_api_key"])
def test_keys_are_refused_since_requests_carry_none(name: str) -> None:
    assert "requests carry no key" in ENGINE.flag_mistakes({name: ("secret",)})[0]


def test_a_log_that_would_hide_cuda_graphs_is_refused() -> None:
    assert ENGINE.flag_mistakes({"log_level": ("info", "debug")}) == []
    assert len(ENGINE.flag_mistakes({"log_level": ("error",)})) == 1
