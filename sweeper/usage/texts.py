"""The texts of `--help`: what each command is for, with examples. The table of commands is table.py."""

from __future__ import annotations

EXIT_CODES = """\
exit codes:
    0  done: a verdict was reached, the night is over, or nothing was left to do
    1  a bug in specsweep (the traceback is in specsweep-error.log)
    2  the command line or the settings are wrong; no server was started
    3  the study was made with other settings; no server was started
    4  another specsweep process holds the host or the study
    5  stopped: something must be mended first, the message says what
  130  interrupted by Ctrl-C     143  ended by SIGTERM or SIGHUP
Of several hosts it is the worst of theirs. After 4, 5, 130 and 143 the same command goes on.
"""

RUN_HELP = """\
Run a sweep, or go on with it: the same command continues an interrupted sweep, and says so when it is complete.

Settings are Hydra overrides: GROUP=OPTION picks a file of conf/GROUP, path.to.value=VALUE sets one value.

  specsweep run                                     the embedded sweep: llama.cpp on this machine, no GPU needed
  specsweep run budget.trials=20                    a larger total; the trials already measured count
  specsweep run preset=llamacpp_chat                the same server under chat prompts
  specsweep run space.spec_ngram_simple_size_m='choice(3,4,6)' study.name=narrow
                                                    other values of a parameter (quote them), in a study of its own
  specsweep run +space.threads='range(1,3)'         search one more flag of the server: 1 and 2
  specsweep run study/sampler=grid study.name=grid   every configuration in the order of the space
  specsweep run model=gguf model.path=/models/x.gguf engine.command='[llama-server]'
                                                    a native llama-server and a model of your own
  specsweep run preset=sglang_any host.ssh.destination=gpu1 model.path=/models/m \\
      space.speculative_draft_model_path=/models/m-eagle3
                                                    SGLang on a GPU host, over SSH
  specsweep run budget.until=07:00 on_finish=serve_best
                                                    done by seven, the best left serving (docs/nights.md)

  specsweep run --config-dir my study.storage=postgresql://sweeps@db/sweeps 'hosts=[gpu1,gpu2]'
                                                    one worker on each host of my/host/, all on one study
  specsweep run study.storage=postgresql://sweeps@db/sweeps hosts=slurm slurm.nodes=4 slurm.gpus_per_node=8
                                                    one on each node that Slurm gives (docs/fleet.md)

Ctrl-C once: finish the current launch, then stop. Twice: abandon it now. Either way no server stays behind and the
same command goes on later.
"""

RESUME_HELP = """\
Go on with a study, with the settings of its last run: they are kept in the study.

The same as giving the whole command of `run` again. Settings that are added here replace those of the same name.
Values that are secret are not kept: resume says which to give again, and whom it can no longer notify.

  specsweep resume                                  the only interrupted study of study.dir; else lists them
  specsweep resume night                            this one
  specsweep resume night budget.trials=60           with a larger total
  specsweep resume night study.dir=/data/sweeps     of another folder
"""

STOP_HELP = """\
Stop a running sweep after its current launch, or what sweeps have left on the host.

If the study is running, its process finishes the launch under way and ends in good order; stop waits for that
and says when it has ended. Of a study in PostgreSQL all workers are asked, on whatever machine they run. Otherwise
it stops what is left on the host: a server that on_finish=serve_best left serving, and leftovers. For that it
takes the settings of the run: only those of the host are used, but all are checked.

  specsweep stop                                    the default preset's study; else what is left on this machine
  specsweep stop study.name=night                   after the current launch; Ctrl-C ends only the waiting
  specsweep stop study.name=night --now             abandon the current launch: its trial is measured again later
  specsweep stop --restore preset=sglang_any host.ssh.destination=gpu1 model.path=/models/m \\
      space.speculative_draft_model_path=/models/m-eagle3
                                                    then start again what host.replace_server has stopped there
"""

STUDIES_HELP = """\
List the studies of a storage, newest first: state, trials done, the best and its gain, age, engine and model.

Without settings it is every study in study.dir. Nothing is changed.

  specsweep studies                                 of the folder sweeps
  specsweep studies study.dir=/data/sweeps          of another folder
  specsweep studies study.storage=postgresql://sweeps@db/sweeps
                                                    of a database that several hosts share
  specsweep studies --json                          for scripts; the keys are in docs/commands.md
"""

COMPLETION_HELP = """\
Print a script that completes commands, options, settings and names of studies in your shell.

  source <(specsweep completion bash)               now, in bash; to keep it, put that line into ~/.bashrc
  source <(specsweep completion zsh)                in zsh, after compinit; to keep it: ~/.zshrc
  specsweep completion fish | source                in fish
  specsweep completion fish > ~/.config/fish/completions/specsweep.fish
                                                    to keep it
"""

STATUS_HELP = """\
Say where a sweep stands, also while it runs: progress, the phase under way, time left, best so far, failures.

It reads the study and changes nothing. What the running process does at the moment it takes from a small file that
the process keeps in study.dir; on another machine look in a copy of that folder, or see the study alone.

  specsweep status                                  of the default preset's study
  specsweep status study.name=night --watch         again every 5 seconds; Ctrl-C ends it
  specsweep status study.name=night --watch 60      every minute
  specsweep status study.name=night --json          for scripts; the keys are in docs/status.md
"""

REPORT_HELP = """\
Write a report from the study alone, also while the sweep runs. It needs no server.

The report is one file of HTML, to be opened in any browser or sent by mail, and the same as Markdown: the verdict
and what to do next, every configuration in order, what the parameters do, how the night was spent, what failed.

  specsweep report                                  both, beside the default preset's study; prints their paths
  specsweep report study.name=narrow                of another study
  specsweep report --output /tmp/night.html         only the page, there (or X.md)
  specsweep report study.dir=/data/sweeps --output - print it as Markdown
  specsweep report study.name=new --with old        compare two studies: a new drafter, another host, an update
  specsweep report --with /data/gpu2:night          with a study in another folder; --with may be repeated
  specsweep report --json                           verdict and trials, for scripts (docs/commands.md)
"""

PREDICT_HELP = """\
Ask a study what a configuration would do that was perhaps never measured. It needs no server.

Values are given by the names of flags, or by what only one of these names ends with (num_steps, topk,
draft_tokens). All others are those of the best trial that they go with. Numbers of steps, branches and draft
tokens may lie beyond the space; the rules of the engine still hold. The model is that of the sampler `physics`; it
learns from a study whichever sampler that had.

  specsweep predict preset=sglang_any num_steps=5 topk=4 draft_tokens=16
                                                    accept_len, step time and throughput, each with its interval
  specsweep predict study.name=night num_steps=7    of another study, the rest as in its best trial
  specsweep predict study.name=night disable_cuda_graph=true env.NCCL_PROTO=LL
                                                    flags and variables of the server
  specsweep predict study.name=night algorithm=none the baseline, under other flags if you name some

The last lines say how good a drafter would have to be: the accept_len at which the configuration equals the
baseline, and the best trial.
"""

IMPORT_HELP = """\
Make a study of results that you already have: then report, predict, ui and a warm start work on them.

Files: a CSV with a header; the lines of SGLang's bench_speculative.py and of `sglang.bench_serving --output-file`;
what `vllm bench serve --save-result` (or --append-result) writes. Rows of one configuration are repeats. A row
that the study has already is not added again. The study must have a name; a sweep never continues it.

  specsweep import results.jsonl study.name=before
                                                    the format is told from the file
  specsweep import night.csv study.name=night --set speculative_algorithm=EAGLE3 \\
      --columns throughput=toks --columns accept_length=acc --keep tp_size
                                                    columns of other names; tp_size is a flag that varied
  specsweep import r1.json study.name=v --set method=eagle3 --set num_speculative_tokens=3
  specsweep import r0.json study.name=v --set method=none
                                                    vLLM's files do not tell the server's configuration
  specsweep import table.csv study.name=b1 --where batch_size=1 --baseline draft=none
                                                    one load at a time; which rows are the baseline

Roles of columns: throughput, decode_throughput, accept_length, ttft_ms or ttft_s (and tpot, itl_p99, e2e_latency),
algorithm, drafter, num_steps, topk, draft_tokens, cuda_graphs, baseline, repeat, prompt, prompt_class,
concurrency, request_rate, workload, model, engine_version, host, date, ... (docs/import.md).
"""

EXPORT_HELP = """\
Write a measured configuration as what production runs: a launch script, a systemd unit, ... from the study alone.

Without a choice it is what the verdict advises, which may be the baseline. Each file says in its head which trial
it is, on which numbers that rests, and whether they are confirmed. What only measuring needs is left out. Address
and port are variables with defaults; values of secret settings are never written, only asked for.

  specsweep export                                  all formats of the advised configuration, in a folder
  specsweep export study.name=night --format script --output -
                                                    print the launch script
  specsweep export best --format compose            the fastest one, confirmed or not
  specsweep export trial=7 --format systemd --output /tmp/unit
  specsweep export baseline --format engine         in the engine's own formats: SGLang's --config file, ...
"""

UI_HELP = """\
Open MLflow's web page on the sweep's database: runs side by side, charts, logs of every server.

  specsweep ui                                      then open the address it prints; Ctrl-C ends it
  specsweep ui --port 5001 study.dir=/data/sweeps
"""

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
                                                    and my/specsweep.yaml with $schema=schema/specsweep.json
  specsweep schema                                  which schemas there are
  specsweep schema host                             print one
"""

DOCTOR_HELP = """\
Look at everything from here to the first token: settings, SSH, host, GPUs, models, stores. It starts nothing.

It takes the settings of the run. Each line is ok, a warning (a run can begin) or an error (it cannot), with the
reason and what to do; what could not be looked at says what it waits for. Nothing is written on the host
(docs/doctor.md).

  specsweep doctor                                  of the embedded sweep, on this machine
  specsweep doctor preset=sglang_any host.ssh.destination=gpu1 model.path=/models/m \\
      space.speculative_draft_model_path=/models/m-eagle3
  specsweep doctor --json preset=mine               for scripts; the keys are in docs/doctor.md

Exit code: 0 ready, 2 when settings must change first, 5 when something else must be mended first.
"""
