"""SGLang's own readers read the files that are exported for it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from sweeper.engines.sglang import SGLang
from sweeper.exporting.handover import serving_without_secrets
from tests.exporting.made import FACTS, handover
from tests.exporting.test_engine_formats import BASELINE, DEEP, FLAT, NEAR
from tests.real_sglang.environment import RealSglang

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

_READ = """
import argparse, json, sys
from sglang.srt.server_args import ServerArgs
from sglang.srt.speculative.adaptive_spec_params import AdaptiveSpeculativeParams
from sglang.srt.utils.server_args_config_parser import ConfigArgumentMerger

parser = argparse.ArgumentParser()
ServerArgs.add_cli_args(parser)
lines = json.loads(sys.stdin.read())
found = [vars(parser.parse_args(ConfigArgumentMerger(parser).merge_config_with_args(line))) for line in lines]
steps = AdaptiveSpeculativeParams(found[-1]["speculative_num_steps"], found[-1]["speculative_adaptive_config"])
slots = {size: steps.get_steps_for_batch(size) for size in (1, 4, 8, 31, 32, 64)}
print(json.dumps({"arguments": found, "candidates": steps.candidate_steps, "slots": slots}, default=str))
"""


def test_config_file_and_adaptive_file_are_read_as_they_were_meant(real: RealSglang, tmp_path: Path) -> None:
    made = handover(DEEP.config.with_flags({"cuda_graph_bs_decode": "1 2 4", "disable_cuda_graph_padding": True}))
    serving = serving_without_secrets(made)
    measured = (DEEP, FLAT, NEAR, BASELINE)
    plain = SGLang().own_formats(serving, measured[:1], 1.0, FACTS)
    adaptive = SGLang().own_formats(serving, measured, 1.0, FACTS)
    for file in (*plain.files, *adaptive.files):
        (tmp_path / file.name).write_text("# a comment\n" * file.has_comments + file.text, encoding="utf-8")
    words = [*serving.model, *(word for group in serving.flags.values() for word in group)]
    found = asked(real, tmp_path, [words, ["--config", "sglang.yaml"], ["--config", "sglang-adaptive.yaml"]])
    by_words, by_file, by_adaptive = (without_config(each) for each in found["arguments"])
    assert by_file == by_words
    assert by_file["cuda_graph_bs_decode"] == [1, 2, 4]
    differing = {name for name, value in by_adaptive.items() if by_file[name] != value}
    assert differing == {"speculative_adaptive", "speculative_adaptive_config"}
    assert found["candidates"] == [0, 2, 4, 5]
    assert found["slots"] == {"1": 5, "4": 5, "8": 2, "31": 2, "32": 0, "64": 0}


def asked(real: RealSglang, folder: Path, lines: list[list[str]]) -> dict[str, Any]:
    done = subprocess.run(
        [str(real.python), "-c", _READ],
        input=json.dumps(lines),
        cwd=folder,
        env={**os.environ, **real.env},
        capture_output=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def without_config(arguments: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in arguments.items() if name != "config"}
