"""Measures a small space on the real llama.cpp server: `python -m tests.bench.search.llamacpp_table`.

SmolLM2-135M in F16 on one thread, the first two prompts of copy_edit, 40 tokens each, greedy. Each
configuration is one start of the server. Times are the server's own CPU seconds: a machine that is busy with
others changes them little. Rows are added to `data/llamacpp_ngram.csv` one by one; what is there is not measured
again.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import product
from pathlib import Path

import requests

from launchers.smollm2 import cache_dir, packaged_model, prepare

TABLE = Path(__file__).parent / "data" / "llamacpp_ngram.csv"
PROMPTS = Path(__file__).parents[3] / "conf" / "prompts" / "copy_edit.jsonl"
COLUMNS = ("spec_type", "size_n", "size_m", "round", "tokens", "cpu_s", "wall_s", "draft_n", "accepted_n")
NUM_PROMPTS, MAX_TOKENS = 2, 40
KINDS = ("ngram-simple",)
SIZES_N, SIZES_M = (2, 3, 4), (2, 3, 4, 6, 8, 12, 16)

Config = tuple[str, int, int]
"""Kind of drafting, tokens looked up, tokens drafted; ("none", 0, 0) without."""


def configurations() -> list[Config]:
    """Three lengths to look up, seven to draft; and no drafting."""
    return [("none", 0, 0), *product(KINDS, SIZES_N, SIZES_M)]


def measure(config: Config, model: Path) -> dict[str, object]:
    """One start, one pass over the prompts. Raises TimeoutError, requests.RequestException."""
    prompts = [json.loads(line)["text"] for line in PROMPTS.read_text().splitlines()[:NUM_PROMPTS]]
    with _server(config, model) as (process, url):
        _ask(url, prompts[0], 4)
        begun, cpu = time.monotonic(), _cpu_s(process.pid)
        timings = [_ask(url, prompt, MAX_TOKENS) for prompt in prompts]
        cpu_s, wall_s = _cpu_s(process.pid) - cpu, time.monotonic() - begun
    drafted, accepted, tokens = (
        int(sum(timing.get(name, 0) for timing in timings))
        for name in ("draft_n", "draft_n_accepted", "predicted_n")
    )
    return {"tokens": tokens, "cpu_s": cpu_s, "wall_s": wall_s, "draft_n": drafted, "accepted_n": accepted}


@contextmanager
def _server(config: Config, model: Path) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    kind, size_n, size_m = config
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "launchers.llamacpp_server", "--model", str(model), "--port", str(port)]
    command += ["--ctx-size", "2048", "--threads", "1", "--parallel", "1"]
    if kind != "none":
        command += [
            "--spec-type",
            kind,
            f"--spec-{kind}-size-n",
            str(size_n),
            f"--spec-{kind}-size-m",
            str(size_m),
        ]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait_ready(process, url := f"http://127.0.0.1:{port}")
        yield process, url
    finally:
        process.terminate()
        process.wait(30)


def _wait_ready(process: subprocess.Popen[bytes], url: str) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None:
        try:
            if requests.get(f"{url}/health", timeout=2).ok:
                return
        except requests.ConnectionError:
            time.sleep(0.1)
    raise TimeoutError(f"the server is not ready (exit code {process.poll()})")


def _ask(url: str, prompt: str, max_tokens: int) -> Mapping[str, float]:
    """The server's own timings of one answer."""
    body = {"messages": [{"role": "user", "content": prompt}], "max_tokens": max_tokens, "temperature": 0}
    answer = requests.post(f"{url}/v1/chat/completions", json={**body, "cache_prompt": False}, timeout=300)
    answer.raise_for_status()
    timings: Mapping[str, float] = answer.json()["timings"]
    return timings


def _cpu_s(pid: int) -> float:
    """CPU seconds of a process so far, user and system."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=1, help="starts of each configuration")
    rounds = parser.parse_args().rounds
    model = prepare("F16", packaged_model(), cache_dir())
    TABLE.parent.mkdir(exist_ok=True)
    if not TABLE.exists():
        TABLE.write_text(",".join(COLUMNS) + "\n")
    with TABLE.open(newline="") as file:
        done = {
            (r["spec_type"], int(r["size_n"]), int(r["size_m"]), int(r["round"])) for r in csv.DictReader(file)
        }
    for number, config in product(range(rounds), configurations()):
        if (*config, number) in done:
            continue
        found = measure(config, model)
        numbers = [f"{value:.2f}" if isinstance(value, float) else str(value) for value in found.values()]
        with TABLE.open("a") as file:
            file.write(",".join([*map(str, config), str(number), *numbers]) + "\n")
        print(*config, number, *numbers, flush=True)


if __name__ == "__main__":
    main()
