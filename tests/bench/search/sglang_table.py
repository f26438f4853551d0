"""Measures a small space on the real SGLang on a CPU: `python -m tests.bench.search.sglang_table`.

The tiny EAGLE-3 pair (SPECSWEEP_TINY_EAGLE3) on one thread: chains of one to six steps, n-grams, and no drafting.
Each row is one start of the server, a warm-up and four prompts that begin alike, 96 tokens each, greedy. Times are
CPU seconds of all the server's processes. Rows are added to `data/sglang_cpu.csv` one by one; what is there is not
measured again.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import tempfile
import time
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

from sweeper.spec import FlagValue
from tests.real_sglang.environment import NO_TINY, RealSglang, real_sglang
from tests.real_sglang.running import Running, running, terminate, wait_ready

TABLE = Path(__file__).parent / "data" / "sglang_cpu.csv"
COLUMNS = (
    "algorithm", "num_steps", "draft_tokens", "round", "tokens", "cpu_s", "wall_s", "accept_length", "accepted",
)  # fmt: skip
"""`accepted`: verify steps by drafts accepted, from 0 on, joined by spaces; empty without speculation."""

MAX_TOKENS = 96
NONE, EAGLE3, NGRAM = "none", "EAGLE3", "NGRAM"
STEPS, TOKENS = (1, 2, 3, 4, 5, 6), (2, 4, 6, 8, 12)
"""Of the chains, and of what n-grams draft."""

HEAD = '''"""Reads settings from files and from the environment."""

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass
class Settings:
    """What a program is told."""

    name: str
    path: Path
    verbose: bool = False


def read(path):
    with open(path) as file:
        return json.load(file)


'''
TAILS = (
    "def write(path, settings):\n",
    "class Reader:\n    def __init__(self",
    "def main(argv):\n    for name in argv:\n",
    "class TestSettings(unittest.TestCase):\n    def test_read(self):\n",
)
WARM_UP = "import sys\n\nclass Config:\n    def __init__(self"

Config = tuple[str, int, int]
"""Algorithm, steps of a chain (0: none), tokens of n-grams (0: none)."""


def configurations() -> list[Config]:
    """All of the space."""
    return [(NONE, 0, 0), *((EAGLE3, steps, 0) for steps in STEPS), *((NGRAM, 0, tokens) for tokens in TOKENS)]


def flags_of(config: Config, real: RealSglang) -> dict[str, FlagValue]:
    """Every flag of a start but the port. Raises FileNotFoundError without the tiny pair."""
    if real.tiny_target is None or real.tiny_draft is None:
        raise FileNotFoundError(NO_TINY)
    algorithm, num_steps, draft_tokens = config
    flags = {**real.flags, "model_path": str(real.tiny_target), "host": "127.0.0.1"}
    if algorithm == EAGLE3:
        shape = {"num_steps": num_steps, "eagle_topk": 1, "num_draft_tokens": num_steps + 1}
        flags |= {f"speculative_{name}": value for name, value in shape.items()}
        flags["speculative_draft_model_path"] = str(real.tiny_draft)
    if algorithm == NGRAM:
        flags |= {"speculative_num_draft_tokens": draft_tokens, "speculative_ngram_max_bfs_breadth": 1}
    return flags if algorithm == NONE else {**flags, "speculative_algorithm": algorithm}


def measure(config: Config, real: RealSglang) -> dict[str, object]:
    """One start, one pass over the prompts. Raises RuntimeError for a server that does not serve."""
    with tempfile.TemporaryDirectory() as scratch:
        log = Path(scratch, "log")
        with running(real, flags_of(config, real), log) as server:
            if not wait_ready(server):
                raise RuntimeError(f"{config} does not start:\n{log.read_text(errors='replace')[-2000:]}")
            _ask(server, WARM_UP)
            begun, cpu = time.monotonic(), _cpu_s(server)
            answers = [_ask(server, HEAD + tail) for tail in TAILS]
            cpu_s, wall_s = _cpu_s(server) - cpu, time.monotonic() - begun
            terminate(server)
    tokens = sum(int(answer["completion_tokens"]) for answer in answers)
    found: dict[str, object] = {"tokens": tokens, "cpu_s": cpu_s, "wall_s": wall_s}
    verified = sum(int(answer.get("spec_verify_ct", 0)) for answer in answers)
    histograms = [answer.get("spec_correct_drafts_histogram", []) for answer in answers]
    accepted = [sum(counts) for counts in zip(*_even(histograms), strict=True)]
    length = f"{tokens / verified:.4f}" if verified else ""
    return {**found, "accept_length": length, "accepted": " ".join(map(str, accepted))}


def _even(histograms: list[list[int]]) -> list[list[int]]:
    """All as long as the longest."""
    longest = max(map(len, histograms))
    return [[*counts, *[0] * (longest - len(counts))] for counts in histograms]


def _ask(server: Running, prompt: str) -> Mapping[str, Any]:
    """What the server says of one answer."""
    sampling = {"temperature": 0, "max_new_tokens": MAX_TOKENS, "ignore_eos": True}
    status, answer = server.get("/generate", json.dumps({"text": prompt, "sampling_params": sampling}).encode())
    if status != 200:
        raise RuntimeError(f"/generate answered {status}: {answer[:300]!r}")
    told: Mapping[str, Any] = json.loads(answer)["meta_info"]
    return told


def _cpu_s(server: Running) -> float:
    """CPU seconds of all its processes so far, user and system."""
    ticks = 0
    for process in server.tree():
        fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=1, help="starts of each configuration")
    rounds = parser.parse_args().rounds
    real = real_sglang()
    if not TABLE.exists():
        TABLE.write_text(",".join(COLUMNS) + "\n")
    with TABLE.open(newline="") as file:
        done = {tuple(row[name] for name in COLUMNS[:4]) for row in csv.DictReader(file)}
    for number, config in product(range(rounds), configurations()):
        name = tuple(map(str, (*config, number)))
        if name in done:
            continue
        found = measure(config, real).values()
        numbers = [f"{value:.2f}" if isinstance(value, float) else str(value) for value in found]
        with TABLE.open("a") as file:
            file.write(",".join([*name, *numbers]) + "\n")
        print(*name, *numbers, flush=True)


if __name__ == "__main__":
    main()
