"""What `--help` says, and which options each command takes. Light: nothing of a sweep is loaded for it."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

EXIT_CODES = """\
exit codes:
    0  done: a verdict was reached, the night is over, or the sweep was complete already
    1  a bug in specsweep (the traceback is in the log file)
    2  the configuration or the command line is wrong; nothing was started
    3  the study was made with other settings; nothing was started
    4  another specsweep process holds the host; nothing was started
    5  stopped: something must be mended first, the message says what
  130  interrupted by Ctrl-C     143  ended by SIGTERM or SIGHUP
After 5, 130 and 143 the same command goes on where it stopped.
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

Ctrl-C once: finish the current launch, then stop. Twice: abandon it now. Either way no server stays behind and the
same command goes on later.
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

STOP_HELP = """\
Stop what sweeps have left on the host: a server that on_finish=serve_best left serving, and leftovers.

It takes the settings of the run: only those of the host are used, but all are checked.

  specsweep stop                                    on this machine
  specsweep stop --restore preset=sglang_any host.ssh.destination=gpu1 model.path=/models/m \\
      space.speculative_draft_model_path=/models/m-eagle3
                                                    then start again what host.replace_server has stopped there
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


@dataclass(frozen=True)
class Usage:
    """One command: `text` begins with its summary; `options` adds what it takes beside overrides."""

    text: str
    options: Callable[[argparse.ArgumentParser], None] = lambda _: None
    also_asked: str = ""


def add_commands(parser: argparse.ArgumentParser) -> None:
    """A parser for each command; `command` is its name."""
    commands = parser.add_subparsers(required=True, metavar="COMMAND", dest="command")
    for name, usage in USAGES.items():
        summary, _, body = usage.text.partition("\n")
        sub = commands.add_parser(
            name,
            help=summary.split(":")[0].rstrip("."),
            description=summary,
            epilog=body + "\n" + EXIT_CODES,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        words = f"GROUP=OPTION or path.to.value=VALUE{usage.also_asked}"
        sub.add_argument("overrides", nargs="*", metavar="OVERRIDE", help=words)
        sub.add_argument(
            "--config-dir", type=Path, metavar="DIR", help="a folder of your own groups, searched first"
        )
        usage.options(sub)


def _run_options(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--plain", action="store_true", help="plain lines even on a terminal")


def _doctor_options(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--json", action="store_true", help="print JSON")


def _stop_options(sub: argparse.ArgumentParser) -> None:
    words = "start again the server that a sweep has stopped"
    sub.add_argument("--restore", action="store_true", help=words)


def _status_options(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--json", action="store_true", help="print JSON; with --watch one line each time")
    sub.add_argument(
        "--watch",
        nargs="?",
        type=float,
        const=5.0,
        metavar="SECONDS",
        help="look again every so often (default: 5)",
    )


def _report_options(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--output", metavar="FILE", help="where to write it, X.html or X.md; - prints it as Markdown")
    sub.add_argument(
        "--with",
        dest="others",
        action="append",
        default=[],
        metavar="NAME",
        help="compare with this study of the same storage; DIR:NAME or URL:NAME: of another one; may be repeated",
    )


def _import_options(sub: argparse.ArgumentParser) -> None:
    sub.add_argument(
        "--format", default="", metavar="FORMAT", help="csv, bench_speculative, bench_serving, vllm_serve"
    )
    sub.add_argument(
        "--engine", default="", metavar="NAME", help="whose results these are: sglang, llamacpp, vllm"
    )
    for name, metavar, text in (
        ("--columns", "ROLE=COLUMN", "what a column means; several by commas"),
        ("--keep", "COLUMN", "a column that is a flag of the server, or a variable; several by commas"),
        ("--set", "FLAG=VALUE", "a flag that all of these rows were measured with"),
        ("--where", "COLUMN=VALUE", "only rows with this value"),
    ):
        sub.add_argument(name, action="append", default=[], metavar=metavar, help=text)
    sub.add_argument("--baseline", default="", metavar="COLUMN=VALUE", help="marks rows without speculation")


def _export_options(sub: argparse.ArgumentParser) -> None:
    formats = ("all", "script", "systemd", "compose", "kubernetes", "hydra", "engine")
    sub.add_argument("--format", choices=formats, default="all", help="what to write (default: %(default)s)")
    words = "folder to write to (default: NAME-export in study.dir); - prints a single file"
    sub.add_argument("--output", metavar="DIR", help=words)


def _ui_options(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    sub.add_argument("--port", type=int, default=5000, help="port to listen on (default: %(default)s)")


USAGES: Mapping[str, Usage] = {
    "run": Usage(RUN_HELP, _run_options),
    "doctor": Usage(DOCTOR_HELP, _doctor_options),
    "status": Usage(STATUS_HELP, _status_options),
    "stop": Usage(STOP_HELP, _stop_options),
    "report": Usage(REPORT_HELP, _report_options),
    "predict": Usage(PREDICT_HELP, also_asked="; about the server: NAME=VALUE"),
    "import": Usage(IMPORT_HELP, _import_options, also_asked="; files to import"),
    "export": Usage(EXPORT_HELP, _export_options, also_asked="; which one: trial=N, best or baseline"),
    "ui": Usage(UI_HELP, _ui_options),
}
