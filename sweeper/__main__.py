"""The command line: `specsweep run`, `specsweep report`, `specsweep predict`, `specsweep ui`."""

from __future__ import annotations

import argparse
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from sweeper.errors import ExitCode, SpecsweepError, SweepInterrupted
from sweeper.streams import settle_stdout

EXIT_CODES = """\
exit codes:
    0  done: a verdict was reached, or the sweep was complete already
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

Ctrl-C once: finish the current launch, then stop. Twice: abandon it now. Either way no server stays behind and the
same command goes on later.
"""

REPORT_HELP = """\
Write a report from the study alone, also while the sweep runs. It needs no server.

  specsweep report                                  the report of the default preset's study
  specsweep report study.name=narrow                of another study
  specsweep report study.dir=/data/sweeps --output - print it instead of writing a file
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

UI_HELP = """\
Open MLflow's web page on the sweep's database: runs side by side, charts, logs of every server.

  specsweep ui                                      then open the address it prints; Ctrl-C ends it
  specsweep ui --port 5001 study.dir=/data/sweeps
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code and never shows a traceback for a user's mistake."""
    arguments = _parse(argv)
    command: Callable[[argparse.Namespace], ExitCode] = arguments.command
    try:
        code = command(arguments)
        settle_stdout()
        return code
    except SpecsweepError as error:
        return _complain(str(error), error.exit_code)
    except SweepInterrupted as interruption:
        return _complain("interrupted; no server is left and nothing measured is lost", interruption.exit_code)
    except KeyboardInterrupt:
        return _complain("interrupted before anything was started", ExitCode.INTERRUPTED)
    except BrokenPipeError:
        settle_stdout()
        return ExitCode.OK
    except Exception as error:
        return _unexpected(error)


def run(arguments: argparse.Namespace) -> ExitCode:
    """`specsweep run`."""
    from sweeper import commands

    return commands.run(arguments.overrides, arguments.config_dir, plain=arguments.plain)


def report(arguments: argparse.Namespace) -> ExitCode:
    """`specsweep report`."""
    from sweeper import commands

    return commands.report(arguments.overrides, arguments.config_dir, arguments.output)


def predict(arguments: argparse.Namespace) -> ExitCode:
    """`specsweep predict`."""
    from sweeper import commands

    return commands.predict(arguments.overrides, arguments.config_dir)


def ui(arguments: argparse.Namespace) -> ExitCode:
    """`specsweep ui`."""
    from sweeper import commands

    return commands.ui(arguments.overrides, arguments.config_dir, arguments.host, arguments.port)


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """Options and overrides in any order; `--multirun` is left to the configuration, which explains it."""
    parser = _parser()
    arguments, rest = parser.parse_known_args(argv)
    unknown = [word for word in rest if word.startswith("-") and word not in ("-m", "--multirun")]
    if unknown:
        parser.error(f"unknown option {unknown[0]!r}; see specsweep COMMAND --help")
    arguments.overrides = [*arguments.overrides, *rest]
    return arguments


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="specsweep",
        description="Tunes speculative-decoding servers: restarts, measures, records, and says what wins and "
        "whether it is real.",
        epilog="specsweep COMMAND --help teaches with examples.\n\n" + EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and end")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, (function, text) in {
        "run": (run, RUN_HELP),
        "report": (report, REPORT_HELP),
        "predict": (predict, PREDICT_HELP),
        "ui": (ui, UI_HELP),
    }.items():
        summary, _, body = text.partition("\n")
        sub = commands.add_parser(
            name,
            help=summary.split(":")[0].rstrip("."),
            description=summary,
            epilog=body + "\n" + EXIT_CODES,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        sub.set_defaults(command=function)
        asked = "; about the server: NAME=VALUE" if name == "predict" else ""
        words = f"GROUP=OPTION or path.to.value=VALUE{asked}"
        sub.add_argument("overrides", nargs="*", metavar="OVERRIDE", help=words)
        sub.add_argument(
            "--config-dir", type=Path, metavar="DIR", help="a folder of your own groups, searched first"
        )
        if name == "run":
            sub.add_argument("--plain", action="store_true", help="plain lines even on a terminal")
        if name == "report":
            sub.add_argument("--output", metavar="FILE", help="where to write it; - prints it")
        if name == "ui":
            sub.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
            sub.add_argument("--port", type=int, default=5000, help="port to listen on (default: %(default)s)")
    return parser


class _Version(argparse.Action):
    """Reads the version only when asked for: it costs a tenth of a second."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version

        parser.exit(message=f"specsweep {version('specsweep')}\n")


def _complain(message: str, code: ExitCode) -> ExitCode:
    with suppress(OSError):  # a closed terminal
        sys.stderr.write(f"specsweep: {message}\n")
    return code


def _unexpected(error: Exception) -> ExitCode:
    """A bug, or an error of a host, a disk or a database that ends a sweep."""
    from launchers.errors import HostBusy, LauncherError, StopFailed
    from sweeper.storage import STORAGE_ERRORS
    from sweeper.text import plain

    if isinstance(error, HostBusy):
        return _complain(str(error), ExitCode.HOST_BUSY)
    if isinstance(error, StopFailed):
        listed = "".join(f"\n  {line}" for line in error.survivors)
        return _complain(f"stopped: {error}{listed}\nEnd these processes, then run again.", ExitCode.ABORTED)
    if isinstance(error, (LauncherError, OSError, *STORAGE_ERRORS)):
        told = str(error) if isinstance(error, LauncherError) else str(error.__cause__ or error)
        return _complain(
            f"stopped: {plain(told, 2000)}\nWhat is in the study is kept; mend this, then run again.",
            ExitCode.ABORTED,
        )
    log = Path("specsweep-error.log")
    with log.open("a", encoding="utf-8") as file:
        traceback.print_exception(error, file=file)
    return _complain(
        f"a bug in specsweep: {type(error).__name__}: {error}\nTraceback: {log.resolve()}", ExitCode.BUG
    )


if __name__ == "__main__":
    sys.exit(main())
