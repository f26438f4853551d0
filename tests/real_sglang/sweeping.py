"""A whole sweep of the real SGLang on the CPU, over a real sshd: what the slow tests run, and a person can."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests.launchers.conftest import unused_port
from tests.real_sglang.environment import RealSglang
from tests.ssh.sshd import Sshd

SPACE = """
speculative_algorithm: choice(none, NGRAM, STANDALONE)

speculative_ngram_max_bfs_breadth: choice(1, 4)
speculative_num_draft_tokens: choice(4, 8)

speculative_num_steps: choice(1, 2, 3)
speculative_eagle_topk: choice(1)
speculative_draft_model_path: {draft}

when:
  speculative_ngram_max_bfs_breadth: {{speculative_algorithm: NGRAM}}
  speculative_num_draft_tokens: {{speculative_algorithm: [NGRAM, STANDALONE]}}
  speculative_num_steps: {{speculative_algorithm: STANDALONE}}
  speculative_eagle_topk: {{speculative_algorithm: STANDALONE}}
  speculative_draft_model_path: {{speculative_algorithm: STANDALONE}}
"""

EAGLE3_SPACE = """
speculative_algorithm: choice(EAGLE3, EAGLE)
speculative_num_steps: choice(1, 3)
speculative_eagle_topk: choice(1)
speculative_num_draft_tokens: choice(2, 4, 16)
speculative_draft_model_path: {draft}
"""

WORKLOAD = """
name: tiny
chat: {chat}
max_tokens: {max_tokens}
repeats: 1
max_repeats: 1
warmup_max_requests: 3
temperature: 0
seed: 0
request_timeout_s: 120
prompts:
  - id: list
    text: |-
{text}
"""

COPY = "      Copy this list: step one, open the door; step two, open the door; step three, open the door."
CODE = """      import os
      import sys


      def main(argv):
          for name in argv:"""


@dataclass(frozen=True)
class Sweep:
    """The words of `specsweep run`, and the study that it makes."""

    words: tuple[str, ...]
    folder: Path
    study: str


def sweep_words(real: RealSglang, sshd: Sshd, folder: Path, kind: str) -> Sweep:
    """A sweep of n-grams and a small draft (`kind` "any"), or of the tiny EAGLE-3 pair ("eagle3")."""
    eagle3 = kind == "eagle3"
    target, draft = (real.tiny_target, real.tiny_draft) if eagle3 else (real.target, real.draft_standalone)
    for name, text in {
        "space": (EAGLE3_SPACE if eagle3 else SPACE).format(draft=draft),
        "workload": WORKLOAD.format(
            text=CODE if eagle3 else COPY, chat=str(not eagle3).lower(), max_tokens=240 if eagle3 else 32
        ),
    }.items():
        (folder / "conf" / name).mkdir(parents=True, exist_ok=True)
        (folder / "conf" / name / "real.yaml").write_text(text)
    own = {"enable_metrics"}  # specsweep sets it itself
    flags = {name: value for name, value in real.flags.items() if name not in own}
    port = unused_port()
    words = (
        "run",
        "--plain",
        "--config-dir",
        str(folder / "conf"),
        "preset=sglang_any",
        "space=real",
        "workload=real",
        "host.ssh.destination=cpu1",
        f"host.ssh.config_file={sshd.config('cpu1')}",
        f"host.state_dir={folder / 'host-state'}",
        f"host.port_low={port}",
        f"host.port_high={port}",
        "host.watch_gpus=false",
        f"engine.command=[{','.join(real.command)}]",
        *(
            f"engine.flags.{name}={str(value).lower() if value is True else value}"
            for name, value in flags.items()
        ),
        "engine.flags.speculative_draft_attention_backend=intel_amx",
        *(f"engine.env.{name}='{value}'" for name, value in real.env.items()),
        f"model.path={target}",
        f"study.dir={folder}",
        f"study.name={kind}",
        "budget.trials=7",
        "budget.confirm_launches=0",
        "limits.start_s=300",
    )
    return Sweep(words, folder, kind)
