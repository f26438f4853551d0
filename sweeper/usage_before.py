"""What `--help` says of the commands that stand before a sweep."""

from __future__ import annotations

PLAN_HELP = """\
Say what a run would do: the space after the rules, the first command lines, when it would end. Starts nothing.

It takes the settings of the run. The host is not asked and nothing is written: what is known of the host
comes from earlier studies in study.dir, and what is not checked is said. `specsweep run --dry-run` is the same.

  specsweep plan                                    of the embedded sweep
  specsweep plan preset=kimi_k25_eagle3_8gpu host.ssh.destination=gpu1 budget.until=07:00
                                                    how much of the search fits before seven
  specsweep plan study.name=night --trials 10       the next ten that the search would launch
  specsweep plan --json                             for scripts; the keys are in docs/plan.md

Exit code 3 says that a run would be refused, since the study was made with other settings.
"""

INIT_HELP = """\
Write a small folder of configuration to begin with: host, model, space, workload, preset, each file commented.

It asks five questions, each with an explanation and a default; for scripts give the answers as options. Nothing
that exists is overwritten. The folder needs no checkout of specsweep: commands that are started in it find all by
its specsweep.yaml.

  specsweep init                                    ask, and write into this folder
  specsweep init night --yes                        the defaults: llama.cpp and the packaged model on this machine
  specsweep init night --host gpu1 --engine sglang --model /models/Qwen3-8B \\
      --drafter /models/Qwen3-8B-eagle3 --drafter /models/other-eagle3 --prompts mine.jsonl
                                                    SGLang over SSH, two drafters, prompts of your own
"""

SCHEMA_HELP = """\
Write JSON schemas of the configuration files, by which an editor completes and checks them.

  specsweep schema --write my                       writes my/schema/; my/space/mine.yaml then begins with
                                                    # yaml-language-server: $schema=../schema/space-sglang.json
  specsweep schema                                  which schemas there are
  specsweep schema host                             print one
"""
