"""Configurations, Python and names on the pages are what they say they are."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft7Validator

from launchers.base import LaunchSpec
from sweeper import config
from sweeper.config import load
from sweeper.engines.base import HostFacts
from sweeper.engines.llamacpp import LlamaCpp
from sweeper.metrics import METRICS
from sweeper.schemas.files import schemas
from sweeper.schemas.keys import keys
from sweeper.spec import ServerConfig
from tests.docs.conftest import place_study
from tests.docs.pages import DOCS, ROOT, Block, blocks, inline

KNOWN = {"console", "yaml", "python", "diff", "text", "sql", "bash", ""}
GROUP = {
    # What a file of a group is chosen with.
    "space": ["space=mine"],
    "workload": ["workload=support"],
    "preset": ["preset=night"],
    "host": ["preset=sglang_any", "host=gpu1", "model.path=/m", "space.speculative_draft_model_path=/m-eagle3"],
}
_PATH = re.compile(rf"({'|'.join(sorted({path.partition('.')[0] for path in keys()}))})((?:\.[a-z_]+)+)(?==|$)")
FILES = [block for block in blocks("yaml") if block.title]
FRAGMENTS = [block for block in blocks("yaml") if not block.title and not block.text.startswith("config_dir:")]
"""What stands in a file of a group; a `specsweep.yaml` is no such file."""


def python(page: str, part: str) -> Block:
    (found,) = [block for block in blocks("python") if block.page == page and part in block.text]
    return found


def test_every_block_says_what_it_is() -> None:
    strange = [block.place for block in blocks() if block.language not in KNOWN]
    assert strange == [], "no test would look at it"


@pytest.mark.compose
@pytest.mark.parametrize("block", FILES, ids=lambda block: block.place)
def test_a_file_of_ones_own_is_valid(block: Block, reader: Path) -> None:
    group = Path(block.title).parent.name
    assert group in schemas()
    named = re.search(r"\$schema=\.\./schema/([\w-]+)\.json", block.text)
    schema = schemas()[named[1] if named else group]
    if group == "engine":  # one that only the reader has: the next test but two makes it known
        return
    assert [error.message for error in Draft7Validator(schema).iter_errors(yaml.safe_load(block.text))] == []
    assert load(GROUP[group], reader / "my").spec.engine.name


@pytest.mark.parametrize("block", FRAGMENTS, ids=lambda block: block.place)
def test_a_fragment_is_valid_by_the_schema_of_its_group(block: Block) -> None:
    data = yaml.safe_load(block.text)
    valid = [name for name in schemas() if not list(Draft7Validator(schemas()[name]).iter_errors(data))]
    assert valid, f"{block.place}: a file of no group"


def test_names_of_settings_in_running_text_exist() -> None:
    known = set(keys()) | {path.partition(".")[0] for path in keys()}
    for page, text in inline():
        for word in text.split():
            found = _PATH.match(word)
            if found is None or page == "CONTRIBUTING.md" or found[0].startswith(("engine.flags", "engine.env")):
                continue
            free = found[0].startswith(("space.", "more_workloads.", "workload.prompts"))
            is_name = found[0] in known or word.endswith((".py", ".md", ".yaml", ".jsonl", ".json"))
            assert free or is_name, f"{page}: `{text}`: there is no {found[0]}"


def test_files_of_the_repository_that_are_named_exist() -> None:
    for page, text in inline():
        if re.fullmatch(r"(sweeper|launchers|analysis|tests|conf|docker|docs)/[\w./-]+", text):
            assert (ROOT / text).exists() or re.search(r"[A-Z]{4,}|/x\.", text), f"{page}: there is no {text}"


@pytest.mark.study
def test_the_best_is_found_from_python(
    reader: Path, made: Callable[[str], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    place_study(reader, made("night"))
    exec(python("docs/recipes.md", "from analysis import load").text, {})
    assert "accept_length" in capsys.readouterr().out


@pytest.mark.compose
def test_the_engine_of_the_recipe_is_an_engine(reader: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names: dict[str, Any] = {"__name__": "fork"}
    exec(python("docs/recipes.md", "class Fork").text, names)
    fork = names["Fork"]()
    facts = HostFacts()
    spec = {"spec_type": "draft-simple", "spec_draft_model": "/d.gguf"}
    assert fork.violations(ServerConfig(flags={**spec, "spec_draft_n_max": 17}), facts)
    assert not fork.violations(ServerConfig(flags={**spec, "spec_draft_n_max": 16}), facts)
    engines = {LlamaCpp.name: LlamaCpp, "fork": names["Fork"]}
    monkeypatch.setattr("sweeper.engines.registry._ENGINES", engines)
    monkeypatch.setattr("sweeper.config.schema.ENGINE_NAMES", tuple(engines))
    loaded = config.load(["engine=fork", "study.name=forked"], reader / "my").spec
    assert loaded.engine.command == ("/opt/fork/bin/llama-server",)


@pytest.mark.host
def test_the_launcher_of_the_recipe_starts_and_stops_a_server(tmp_path: Path) -> None:
    names: dict[str, Any] = {}
    exec(python("docs/recipes.md", "class BashShell").text, names)
    launcher = names["launcher"](str(tmp_path / "state"))
    with launcher.hold():
        handle = launcher.start(LaunchSpec(("sleep", "600"), launcher.free_port(), "recipe-1"))
        assert launcher.is_alive(handle)
        report = launcher.stop(handle, 5)
        assert report.num_processes >= 1
        assert not launcher.is_alive(handle)


@pytest.mark.host
def test_the_metric_of_the_recipe_takes_two_lines(tmp_path: Path) -> None:
    (block,) = blocks("diff")
    for name in ("sweeper", "launchers"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    applied = subprocess.run(
        ["git", "apply", "-"], cwd=tmp_path, input=block.text, capture_output=True, text=True, check=False
    )
    assert applied.returncode == 0, f"the lines around it have changed: {applied.stderr}"
    tried = (
        "from sweeper.metrics import METRICS, check_metrics\n"
        "from sweeper.measuring.figures import metrics_of\n"
        "from sweeper.request_record import RequestResult\n"
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from tests.analysis.builders import request\n"
        "print(sorted(set(check_metrics(metrics_of([request('a'), request('b')]))) & {'e2e_p99_ms'}))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", tried, str(ROOT)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.stdout == "['e2e_p99_ms']\n", done.stderr
    assert "e2e_p99_ms" not in METRICS


def test_the_demo_notebook_is_where_the_pages_say() -> None:
    assert (DOCS / "notebooks/reading_a_study.ipynb").is_file()
