"""A whole sweep of the real vLLM on the CPU: what the slow test runs, and a person can.

`python -m tests.real_vllm.sweeping FOLDER` prints the words of `specsweep`.
"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from tests.launchers.conftest import unused_port
from tests.real_vllm.environment import RealVllm, real_vllm

TRIALS = 5
SPACE = """
spec_method: choice(ngram, draft_model, none)

spec_tokens: choice(2, 4)
spec_prompt_lookup_max: 3
spec_prompt_lookup_min: 2
spec_model: {draft}

when:
  spec_tokens: {{spec_method: [ngram, draft_model]}}
  spec_prompt_lookup_max: {{spec_method: ngram}}
  spec_prompt_lookup_min: {{spec_method: ngram}}
  spec_model: {{spec_method: draft_model}}
"""

WORKLOAD = """
name: tiny
max_tokens: 32
repeats: 1
max_repeats: 1
stop_hopeless: false
warmup_max_requests: 3
temperature: 0
seed: 0
request_timeout_s: 300
prompts_file: null
prompts:  # this model does copy it, so there is something for n-grams to look up
  - id: stock
    text: |-
      Copy this table exactly as it is:
      apple | red | 3 boxes
      plum | blue | 5 boxes
      pear | green | 7 boxes
      cherry | red | 9 boxes
      grape | blue | 4 boxes
"""


def sweep_words(real: RealVllm, folder: Path, study: str) -> tuple[str, ...]:
    """The words of `specsweep run` for a sweep of n-grams and a small draft, all of it below `folder`."""
    for name, text in {"space": SPACE.format(draft=real.draft), "workload": WORKLOAD}.items():
        (folder / "conf" / name).mkdir(parents=True, exist_ok=True)
        (folder / "conf" / name / "real.yaml").write_text(text)
    port = unused_port()
    return (
        "run",
        "--plain",
        "--config-dir",
        str(folder / "conf"),
        "preset=vllm_any",
        "host=local",
        "space=real",
        "workload=real",
        f"host.state_dir={folder / 'host-state'}",
        f"host.port_low={port}",
        f"host.port_high={port}",
        "host.watch_gpus=false",
        f"engine.command=[{','.join(real.command)}]",
        *(f"engine.flags.{name}={_written(value)}" for name, value in real.flags.items()),
        *(f"engine.env.{name}='{value}'" for name, value in real.env.items()),
        f"model.path={real.target}",
        f"study.dir={folder}",
        f"study.name={study}",
        f"budget.trials={TRIALS}",
        "budget.confirm_launches=0",
    )


def _written(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


if __name__ == "__main__":
    print(shlex.join(sweep_words(real_vllm(), Path(sys.argv[1]).absolute(), "vllm")))
