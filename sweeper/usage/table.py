"""What each command is called and which options it takes. Light: nothing of a sweep is loaded for it."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from sweeper.usage import texts
from sweeper.usage.help_format import HelpFormatter
from sweeper.usage.texts import EXIT_CODES as EXIT_CODES

PLANNED_TRIALS = 3
SHELLS = ("bash", "zsh", "fish")


def _no_options(_: argparse.ArgumentParser) -> None:
    """Most commands take settings alone."""


def _folder(text: str) -> Path:
    """A path. Raises ArgumentTypeError for an empty one, which would be the working directory."""
    if not text:
        raise argparse.ArgumentTypeError("is empty; name a folder")
    return Path(text)


@dataclass(frozen=True)
class Usage:
    """One command: `text` begins with its summary; `options` adds what it takes beside settings.

    `json`: what --json prints; empty: the command has no such option. `also_asked`: words that it takes among the
    settings. `settings`: whether it takes any.
    """

    text: str
    options: Callable[[argparse.ArgumentParser], None] = _no_options
    also_asked: str = ""
    json: str = ""
    settings: bool = True


def add_commands(parser: argparse.ArgumentParser) -> None:
    """A parser for each command; `command` is its name."""
    commands = parser.add_subparsers(metavar="COMMAND", dest="command")
    for name, usage in USAGES.items():
        summary, _, body = usage.text.partition("\n")
        sub = commands.add_parser(
            name,
            help=summary.split(":")[0].rstrip("."),
            description=summary,
            epilog=body + "\n" + EXIT_CODES,
            formatter_class=HelpFormatter,
            allow_abbrev=False,
        )
        if usage.settings:
            words = f"GROUP=OPTION or path.to.value=VALUE{usage.also_asked}"
            sub.add_argument("overrides", nargs="*", metavar="OVERRIDE", help=words)
            sub.add_argument(
                "--config-dir", type=_folder, metavar="DIR", help="a folder of your own groups, searched first"
            )
        if usage.json:
            sub.add_argument("--json", action="store_true", help=f"print JSON: {usage.json}")
        usage.options(sub)


def _run_options(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--plain", action="store_true", help="plain lines even on a terminal")
    sub.add_argument("--dry-run", action="store_true", help="only say what would be done (specsweep plan)")
    sub.set_defaults(trials=PLANNED_TRIALS, json=False)


def _stop_options(sub: argparse.ArgumentParser) -> None:
    words = "abandon the launch under way instead of finishing it"
    sub.add_argument("--now", action="store_true", help=words)
    words = "start again the server that a sweep has stopped"
    sub.add_argument("--restore", action="store_true", help=words)


def _status_options(sub: argparse.ArgumentParser) -> None:
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


def _init_options(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("folder", nargs="?", default=".", metavar="DIR", help="where to write (default: here)")
    for name, metavar, text in (
        ("--host", "NAME", "local, or where ssh goes"),
        ("--engine", "NAME", "sglang, vllm or llamacpp"),
        ("--model", "PATH", "the model, on the host"),
        ("--prompts", "FILE", "a file of prompts, or a packaged set"),
    ):
        sub.add_argument(name, metavar=metavar, help=text)
    sub.add_argument(
        "--drafter", action="append", default=[], metavar="PATH", help="a draft model; may be repeated"
    )
    sub.add_argument("--yes", action="store_true", help="take the defaults of what is not given; ask nothing")
    sub.add_argument("--force", action="store_true", help="overwrite files that exist")


def _plan_options(sub: argparse.ArgumentParser) -> None:
    words = "how many trials of the search to show (default: %(default)s)"
    sub.add_argument("--trials", type=int, default=PLANNED_TRIALS, metavar="N", help=words)


def _schema_options(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--write", metavar="DIR", help="the folder of your own groups, as for --config-dir")


def _completion_options(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("shell", nargs="?", choices=SHELLS, help="for which shell")
    words = "what may stand in place of the last of these words; the scripts ask it"
    sub.add_argument("--words", nargs=argparse.REMAINDER, metavar="WORD", help=words)


USAGES: Mapping[str, Usage] = {
    "run": Usage(texts.RUN_HELP, _run_options),
    "init": Usage(texts.INIT_HELP, _init_options, settings=False),
    "plan": Usage(texts.PLAN_HELP, _plan_options, json="what the run would do"),
    "doctor": Usage(texts.DOCTOR_HELP, json="all findings"),
    "resume": Usage(texts.RESUME_HELP, _run_options, also_asked="; NAME: of the study"),
    "status": Usage(texts.STATUS_HELP, _status_options, json="with --watch one line each time"),
    "studies": Usage(texts.STUDIES_HELP, json="one entry for each study"),
    "stop": Usage(texts.STOP_HELP, _stop_options, json="what was stopped"),
    "report": Usage(texts.REPORT_HELP, _report_options, json="verdict and trials; writes no page"),
    "predict": Usage(texts.PREDICT_HELP, also_asked="; about the server: NAME=VALUE", json="the prediction"),
    "import": Usage(texts.IMPORT_HELP, _import_options, also_asked="; files to import"),
    "export": Usage(
        texts.EXPORT_HELP,
        _export_options,
        also_asked="; which one: trial=N, best or baseline",
        json="the files that were written",
    ),
    "ui": Usage(texts.UI_HELP, _ui_options),
    "schema": Usage(texts.SCHEMA_HELP, _schema_options, also_asked="; names of schemas to print"),
    "completion": Usage(texts.COMPLETION_HELP, _completion_options, settings=False),
}
