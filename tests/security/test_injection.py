"""No text of a configuration becomes a word of a shell: what was written arrives, as it was written."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from launchers.host import HostLauncher, HostSettings
from launchers.replies import command_text, quote
from launchers.shell import LocalShell
from sweeper.engines.base import Engine, Placement
from sweeper.engines.registry import engine_for
from sweeper.spec import ServerConfig

pytestmark = pytest.mark.host

HOSTILE = (
    "$(touch pwned)", "`touch pwned`", "'; touch pwned; '", '"; touch pwned #', "\n touch pwned\n", "-n", "--",
    "~", "*", "a\\", "!!", "${IFS}", "|touch pwned", "&touch pwned&", "<(touch pwned)", "\x1b]0;x\x07",
    "\u202e", " ",
)  # fmt: skip
TEXTS = st.sampled_from(HOSTILE) | st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30
)
NAMES = st.from_regex(r"[a-z_][a-z0-9_]{0,15}", fullmatch=True)
CONFIGS = st.builds(
    ServerConfig,
    flags=st.dictionaries(NAMES.map("x_{}".format), TEXTS, max_size=4),
    env=st.dictionaries(NAMES.map(lambda name: f"X{name.upper()}"), TEXTS, max_size=4),
)
SHELLS = [
    pytest.param(program, marks=pytest.mark.skipif(shutil.which(program) is None, reason=f"no {program}"))
    for program in ("dash", "bash", "sh")
]


@pytest.mark.parametrize("program", SHELLS)
@pytest.mark.parametrize("name", ["llamacpp", "sglang", "vllm"])
@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(config=CONFIGS, path=TEXTS, word=TEXTS)
@example(
    config=ServerConfig(flags={"x_a": "'$(touch pwned)'"}, env={"XA": "`touch pwned`"}), path="; id", word="$0"
)
def test_a_servers_arguments_and_environment_arrive_as_they_were_written(
    program: str, name: str, config: ServerConfig, path: str, word: str
) -> None:
    engine: Engine = engine_for(name)
    placement = Placement(("server", word), path, 30000, "nonce1")
    spec = engine.launch_spec(config, placement)
    names = " ".join(config.env) or "HOME"
    show = f'for v in {names}; do eval "printf \'%s\\\\0\' \\"\\$$v\\""; done'
    script = f"{command_text(spec)}\nprintf '%s\\0' \"$@\"\n{show}\n"
    with tempfile.TemporaryDirectory() as folder:
        shell = LocalShell("here", shutil.which(program) or program)
        said = shell.run(f"cd {quote(folder)} || exit 1\n{script}", 60).stdout.decode().split("\0")
        assert list(Path(folder).iterdir()) == [], "something was run"
    assert tuple(said[: len(spec.argv)]) == spec.argv
    if config.env:
        assert said[len(spec.argv) : -1] == list(config.env.values())


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(name=TEXTS.filter(lambda text: "/" not in text and text.strip(". ")), word=TEXTS)
def test_a_state_folder_of_any_name_is_only_a_folder(name: str, word: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        state = f"{folder}/{name[:30]}"
        launcher = HostLauncher(LocalShell("here"), HostSettings("here", state))
        result = launcher.run(("printf", "%s", word), 60, {"WORD": word})
        assert result.stdout.decode() == word
        assert launcher.stop_leftovers(0.0) == ()
        assert not (Path(folder) / "pwned").exists()
        assert not Path("pwned").exists()
