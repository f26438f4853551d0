"""The launch script: run by real shells, it starts exactly what was measured."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings

from sweeper.exporting.handover import Handover
from sweeper.exporting.script import scripts
from sweeper.secrets import Secrets
from sweeper.spec import ServerConfig
from tests.exporting.made import configs, expected, flags, handover

pytestmark = pytest.mark.host

ECHO = ("/bin/sh", "-c", """printf '%s\\0' "$#" "$@"; exec env -0""", "echo")
"""A program that tells its arguments and its environment."""


def ran(text: str, shell: str = "sh", env: Mapping[str, str] | None = None) -> tuple[list[str], dict[str, str]]:
    """The arguments and the environment of the program that the script becomes."""
    done = subprocess.run(
        [shell, "-s"],
        input=text,
        env={"PATH": os.environ["PATH"], **(env or {})},
        capture_output=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr
    return told(done.stdout)


def told(output: str) -> tuple[list[str], dict[str, str]]:
    count, *rest = output.split("\0")[:-1]
    pairs = [each.partition("=") for each in rest[int(count) :]]
    return rest[: int(count)], {name: value for name, _, value in pairs}


def script(made: Handover) -> str:
    (text,) = scripts(made).values()
    return text


@given(config=configs)
@settings(max_examples=60)
def test_a_shell_passes_on_any_values_as_they_are(config: ServerConfig) -> None:
    made = handover(config, command=ECHO)
    words, env = ran(script(made))
    assert words == expected(made, "127.0.0.1", "30000")
    assert {name: env[name] for name in config.env} == config.env


@pytest.mark.parametrize("shell", ["dash", "bash", "busybox"])
def test_it_means_the_same_to_every_shell(shell: str, tmp_path: Path) -> None:
    config = ServerConfig(flags={"a": "it's $HOME `x` \\ \n 'q' \"r\""}, env={"NCCL_P2P_LEVEL": "SYS $x"})
    made = handover(config, command=ECHO)
    (tmp_path / "run.sh").write_text(script(made))
    words = ["busybox", "sh"] if shell == "busybox" else [shell]
    done = subprocess.run([*words, str(tmp_path / "run.sh")], capture_output=True, encoding="utf-8", check=True)
    arguments, env = told(done.stdout)
    assert arguments == expected(made, "127.0.0.1", "30000")
    assert env["NCCL_P2P_LEVEL"] == "SYS $x"


def test_address_and_port_are_the_persons_and_what_only_measuring_needs_is_gone() -> None:
    made = handover(flags(tp_size=8), command=ECHO)
    words, _ = ran(script(made), env={"SERVER_HOST": "0.0.0.0", "SERVER_PORT": "80"})
    assert words == expected(made, "0.0.0.0", "80")
    assert not {"--served-model-name", "--enable-metrics", "nonce", "30007"} & set(words)


def test_variables_that_were_kept_away_from_the_server_are_kept_away_again() -> None:
    made = handover(ServerConfig(env={"NCCL_PROTO": "LL"}), command=ECHO)
    _, env = ran(script(made), env={"NCCL_ALGO": "Tree", "NCCL_PROTO": "Simple", "SGLANG_SIMULATE_ACC_LEN": "9"})
    assert env["NCCL_PROTO"] == "LL"
    assert not {"NCCL_ALGO", "SGLANG_SIMULATE_ACC_LEN"} & env.keys()


def test_a_secret_is_asked_for_and_nowhere_written() -> None:
    config = ServerConfig(flags={"api_key": "s3cret!", "note": "with s3cret! in it"}, env={"HF_TOKEN": "hf_abc"})
    made = handover(config, command=ECHO, secrets=Secrets(frozenset({"s3cret!", "hf_abc"})))
    text = script(made)
    assert "s3cret" not in text
    assert "hf_abc" not in text
    given = {"SERVER_API_KEY": "other", "SERVER_NOTE": "n", "HF_TOKEN": "t"}
    words, env = ran(text, env=given)
    assert words == expected(made, "127.0.0.1", "30000", given=given)
    assert env["HF_TOKEN"] == "t"
    refused = subprocess.run(
        ["sh", "-s"], input=text, env={"PATH": os.environ["PATH"]}, capture_output=True, text=True
    )
    assert refused.returncode != 0
    assert "SERVER_API_KEY" in refused.stderr


def test_each_rank_of_a_server_over_several_hosts_has_a_script() -> None:
    made = handover(flags(tp_size=16), command=ECHO, nodes=(2, "10.0.0.1:20000"))
    found = scripts(made)
    assert list(found) == ["run-rank-0.sh", "run-rank-1.sh"]
    for rank, text in enumerate(found.values()):
        words, _ = ran(text, env={"NODE_ADDRESS": "gpu1:2"})
        assert words[-6:] == ["--nnodes", "2", "--dist-init-addr", "gpu1:2", "--node-rank", str(rank)]
        assert ran(text)[0] == expected(made, "127.0.0.1", "30000", rank)


def test_the_gpus_of_the_measurement_are_used_unless_others_are_named() -> None:
    made = handover(flags(tp_size=2), command=ECHO, gpus=(2, 3))
    assert ran(script(made))[1]["CUDA_VISIBLE_DEVICES"] == "2,3"
    assert ran(script(made), env={"CUDA_VISIBLE_DEVICES": "0,1"})[1]["CUDA_VISIBLE_DEVICES"] == "0,1"


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="apt-get install shellcheck")
def test_the_linters_of_shells_find_nothing(tmp_path: Path) -> None:
    config = ServerConfig(
        flags={"a": "it's $HOME", "api_key": "k", "graphs": True, "off": False},
        env={"HF_TOKEN": "t", "B": "$x 'y'"},
    )
    made = handover(
        config, about=("Study \n rm -rf /", "# $(x) `y`", "", "é 😀 \x1b[31m"), nodes=(2, "a:1"), gpus=(1,)
    )
    for name, text in scripts(made).items():
        path = tmp_path / name
        path.write_text(text)
        assert subprocess.run(["bash", "-n", str(path)], capture_output=True).returncode == 0
        done = subprocess.run(["shellcheck", "--severity=warning", str(path)], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout
