"""The unit: read back by systemd's own quoting rules, and looked at by systemd itself."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given

from sweeper.exporting.handover import Handover
from sweeper.exporting.systemd import units
from sweeper.secrets import Secrets
from sweeper.spec import ServerConfig
from tests.exporting.made import configs, expected, flags, handover

_WORD = re.compile(r'"((?:[^"\\]|\\.)*)"|(\S+)')
_ESCAPED = {"n": "\n", "t": "\t", "\\": "\\", '"': '"'}


def entries(text: str) -> list[tuple[str, str]]:
    """The settings of a unit file in order; continued lines joined, comments left out (systemd.syntax(7))."""
    joined = re.sub(r"\\\n", " ", text)
    lines = [line for line in joined.split("\n") if line and not line.startswith(("#", ";", "["))]
    pairs = [line.partition("=") for line in lines]
    return [(name, value) for name, _, value in pairs]


def unquoted(value: str) -> list[str]:
    """The words of a line: quotes, C escapes, and `%%` for `%`."""
    words = []
    for quoted, bare in _WORD.findall(value):
        word = bare if bare else re.sub(r"\\(.)", lambda found: _ESCAPED[found[1]], quoted)
        assert not re.search(r"(?<!%)(?:%%)*%(?!%)", word), f"a specifier: {word!r}"
        words.append(word.replace("%%", "%"))
    return words


def read(text: str) -> tuple[list[str], dict[str, str]]:
    """The command line and the environment that systemd gives the server."""
    found = entries(text)
    env: dict[str, str] = {}
    for name, value in found:
        if name == "Environment":
            (word,) = unquoted(value)
            key, _, content = word.partition("=")
            env[key] = content
    (command,) = (value for name, value in found if name == "ExecStart")
    return [_expanded(word, env) for word in unquoted(command)], env


def _expanded(word: str, env: dict[str, str]) -> str:
    """`${NAME}` from the environment; `$$` is `$` (systemd.service(5), "Command lines")."""
    assert not re.search(r"(?<!\$)(?:\$\$)*\$(?![${])", word), f"a stray variable: {word!r}"
    return re.sub(r"\$\$|\$\{(\w+)\}", lambda found: env.get(found[1], "") if found[1] else "$", word)


def unit(made: Handover) -> str:
    return units(made)["night-server.service"]


@given(config=configs)
def test_systemd_reads_back_any_values_as_they_are(config: ServerConfig) -> None:
    made = handover(config)
    words, env = read(unit(made))
    assert words == ["/usr/bin/env", *made.serving.command, *expected(made, "127.0.0.1", "30000")]
    assert {name: env[name] for name in config.env} == config.env


def test_a_secret_is_in_a_file_of_its_own_that_must_exist() -> None:
    config = ServerConfig(flags={"api_key": "s3cret!"}, env={"HF_TOKEN": "hf_abc"})
    files = units(handover(config, secrets=Secrets(frozenset({"s3cret!", "hf_abc"}))))
    text = "".join(files.values())
    assert "s3cret" not in text
    assert "hf_abc" not in text
    assert ("EnvironmentFile", "/etc/night-server.env") in entries(files["night-server.service"])
    assert files["night-server.env.example"].splitlines()[-2:] == ["SERVER_API_KEY=", "HF_TOKEN="]
    assert "--api-key ${SERVER_API_KEY}" in files["night-server.service"]


def test_without_secrets_that_file_may_be_missing() -> None:
    assert ("EnvironmentFile", "-/etc/night-server.env") in entries(unit(handover(flags())))


def test_a_program_with_a_path_is_run_by_it() -> None:
    words, _ = read(unit(handover(flags(), command=("/opt/sglang/bin/python", "-m", "x"))))
    assert words[:3] == ["/opt/sglang/bin/python", "-m", "x"]


def test_each_rank_has_a_unit() -> None:
    made = handover(flags(tp_size=16), nodes=(2, "10.0.0.1:20000"))
    files = units(made)
    for rank in range(2):
        words, _ = read(files[f"night-server-rank-{rank}.service"])
        assert words[-6:] == ["--nnodes", "2", "--dist-init-addr", "10.0.0.1:20000", "--node-rank", str(rank)]


@pytest.mark.host
@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="apt-get install systemd")
@pytest.mark.parametrize("command", [("/bin/sh", "-x"), ("sh", "-x")])
def test_systemd_itself_finds_nothing_wrong(command: tuple[str, ...], tmp_path: Path) -> None:
    hostile = "%n $HOME ${X} \\ \" ' ; \n é # ="
    made = handover(
        ServerConfig(flags={"a": hostile, "b": ";", "api_key": "k"}, env={"NCCL_PROTO": hostile, "HF_TOKEN": "t"}),
        command=command,
        about=("Study %n [Service] \n ExecStart=/bin/false",),
    )
    path = tmp_path / "night-server.service"
    path.write_text(unit(made))
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", str(path)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
