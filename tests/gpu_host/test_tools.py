"""What is run on the host besides the server: Python, nvidia-smi, the chat template; and the planted rates."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path

import pytest

from tests.gpu_host.host import GpuHost, make_host
from tests.gpu_host.running import running, speculative

pytestmark = pytest.mark.host
COLUMNS = "index,name,uuid,memory.used,memory.total,driver_version,pstate,temperature.gpu,power.draw,clocks.sm"


def run(*argv: object, timeout_s: float = 30) -> str:
    words = [str(word) for word in argv]
    return subprocess.run(words, capture_output=True, text=True, check=True, timeout=timeout_s).stdout


def test_the_version_is_printed(tmp_path: Path) -> None:
    host = make_host(tmp_path, "0.5.23")
    assert run(host.python, "-c", "import sglang; print(sglang.__version__)") == "0.5.23\n"


def test_help_lists_the_flags_and_says_what_this_is(host: GpuHost) -> None:
    text = run(*host.command, "--help")
    assert "--speculative-eagle-topk SPECULATIVE_EAGLE_TOPK" in text
    assert "stand-in" in text


def test_the_chat_template_gives_token_ids(host: GpuHost) -> None:
    script = (
        "import json, sys; from transformers import AutoTokenizer; "
        "t = AutoTokenizer.from_pretrained(sys.argv[1], trust_remote_code=True); "
        "m = [{'role': 'user', 'content': 'hello'}]; "
        "print(json.dumps([t.apply_chat_template(m, add_generation_prompt=True, tokenize=x) for x in (1, 0)]))"
    )
    ids, text = json.loads(run(host.python, "-c", script, host.model("kimi-k2.5")))
    assert all(isinstance(token, int) for token in ids)
    assert text == "<|im_user|>hello<|im_end|><|im_assistant|>"


def test_nvidia_smi_shows_eight_idle_gpus(host: GpuHost) -> None:
    lines = run(host.nvidia_smi, f"--query-gpu={COLUMNS}", "--format=csv,noheader,nounits").splitlines()
    assert len(lines) == 8
    words = lines[3].split(", ")
    assert words[:2] == ["3", "NVIDIA RTX PRO 6000 Blackwell Server Edition"]
    assert words[3:5] == ["4", "97887"]
    assert len(words) == len(COLUMNS.split(","))
    listed = run(host.nvidia_smi, "-L").splitlines()
    assert listed[0].startswith("GPU 0: NVIDIA RTX PRO 6000 Blackwell Server Edition (UUID: GPU-")


def test_nvidia_smi_shows_who_holds_memory(host: GpuHost) -> None:
    host.occupy(2, 1000, os.getpid())
    asked = "--query-compute-apps=gpu_uuid,pid,process_name,used_memory"
    (line,) = run(host.nvidia_smi, asked, "--format=csv,noheader,nounits").splitlines()
    words = line.split(", ")
    assert words[0].startswith("GPU-")
    assert (words[1], words[3]) == (str(os.getpid()), "1000")
    used = run(host.nvidia_smi, "--query-gpu=memory.used", "--format=csv").splitlines()
    assert (used[0], used[3]) == ("memory.used [MiB]", "1004 MiB")


def test_nvidia_smi_can_hang_and_babble(host: GpuHost) -> None:
    with running(host, env={"STANDIN_FAULT": "nvidia_smi_hangs"}) as server:
        server.wait_ready()
        with pytest.raises(subprocess.TimeoutExpired):
            run(host.nvidia_smi, "-L", timeout_s=0.5)
    host.clear_faults()
    host.set_fault("nvidia_smi_garbage", launches=1)
    with running(host) as server:
        server.wait_ready()
        assert "Unable to determine the device handle" in run(host.nvidia_smi, "-L")
    host.clear_faults()
    assert host.num_launches() == 2
    assert len(run(host.nvidia_smi, "-L").splitlines()) == 8


def test_tokens_come_at_the_planted_rate(host: GpuHost) -> None:
    flags = [*speculative(3, 2, 5, "kimi-k2.5-eagle3"), "--mem-fraction-static", "0.9"]
    with running(host, flags, model="kimi-k2.5", tp=8) as server:
        server.wait_ready()
        began = time.monotonic()
        meta = server.generate("Write a short note", 100)["meta_info"]
        took_s = time.monotonic() - began
    planted_s = 100 / 82.3
    assert planted_s <= meta["e2e_latency"] <= took_s  # never too fast; how much later is this machine's load
    assert meta["spec_num_correct_drafts"] / meta["spec_verify_ct"] == pytest.approx(1.106, abs=0.05)


def test_answers_and_counts_repeat_exactly(host: GpuHost) -> None:
    names = ("spec_verify_ct", "spec_num_correct_drafts", "spec_correct_drafts_histogram")
    seen = []
    for _ in range(2):
        with running(host, speculative()) as server:
            server.wait_ready()
            answer = server.generate(max_new_tokens=40)
            seen.append([answer["text"], *(answer["meta_info"][name] for name in names)])
    assert seen[0] == seen[1]
