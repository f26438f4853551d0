"""Writes the reference pages from the code: `python -m tests.docs.written`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib import resources
from itertools import groupby

from sweeper.engines.flag_types import FlagType, flag_types
from sweeper.engines.registry import ENGINE_NAMES
from sweeper.errors import FailureKind
from sweeper.metrics import METRICS
from sweeper.policy import POLICY, Fault
from sweeper.schemas.comments import head, packaged
from sweeper.schemas.keys import Key, in_words, keys, written
from sweeper.usage.table import EXIT_CODES
from tests.docs.pages import DOCS

FOLDER = DOCS / "reference"
GROUPS = ("preset", "engine", "host", "model", "space", "workload", "study", "study/sampler", "tracking")
_NOTE = "\n<!-- Written by `python -m tests.docs.written`: change what it is written from. -->\n"

ENVIRONMENT: Mapping[str, str] = {
    "SPECSWEEP_SSH_PASSWORD": "a password for SSH, if there must be one (`host.ssh.password_env` names another)",
    "SPECSWEEP_SSH_PASSPHRASE": "the passphrase of a key (`host.ssh.passphrase_env`)",
    "PGPASSWORD": "PostgreSQL's password; `~/.pgpass` and a service file work, too (libpq's own rules)",
    "MLFLOW_TRACKING_USERNAME": "MLflow's login, with `MLFLOW_TRACKING_PASSWORD`; `MLFLOW_TRACKING_TOKEN` instead",
    "XDG_STATE_HOME": "where this machine's pid records, server logs and lock are; else `~/.local/state`",
    "XDG_CACHE_HOME": "where prepared models are; else `~/.cache`",
    "TZ": "whose seven o'clock `budget.until=07:00` means",
    "NO_COLOR": "no colours",
    "SERVER_HOST": "in exported scripts: where the server listens, with `SERVER_PORT`",
}
"""Variables that specsweep reads; a test looks for each in the code."""

FILES = (
    ("`sweeps/` (`study.dir`)", ""),
    ("`optuna.db`", "the study: every launch's record. All else can be made from it, and from the artifacts"),
    ("`artifacts/STUDY/`", "raw requests (`trial-7-launch-0-requests.jsonl`) and server logs"),
    ("`artifacts/STUDY-1f2e3d/`", "the same of another study of that name, in another database"),
    (
        "`STUDY.log`",
        "what happened, line by line, in local time; of a shared study one per host, `STUDY.HOST.log`",
    ),
    ("`STUDY-status/`", "what each running process does at the moment, for `specsweep status`"),
    ("`STUDY.lock`", "held by the process that works on a study in a file"),
    ("`STUDY-report.html`, `.md`", "the report; `STUDY-comparison.html`, `.md` with `--with`"),
    ("`STUDY-export/`", "what `specsweep export` wrote"),
    ("`mlflow.db`, `mlflow-artifacts/`", "MLflow's view; it can be deleted and is rebuilt by the next run"),
    ("on the host (`host.state_dir`)", ""),
    ("`lock`", "held while a sweep has the host"),
    ("`servers/ID/`", "a server's pid record, command and log, mode 600; the newest 20 are kept"),
    ("`replaced/PORT`", "how to start again a server of yours that was stopped; deleted when it runs again"),
    ("elsewhere", ""),
    ("`~/.cache/specsweep/`", "models that were prepared"),
    ("`specsweep-error.log`", "the traceback of a bug, in the current folder"),
)


def configuration() -> str:
    """Every key, by group, and the options of every group."""
    lines = [
        "# Configuration",
        _NOTE,
        "Set a key on the command line (`budget.trials=20`), in a preset, or in a file of its group. Defaults are",
        "those of the packaged files; a preset may change them. `${...}` refers to another key.",
        "Types and limits are checked before anything is started.",
        "",
        "## Options of each group",
        "",
        "`GROUP=OPTION` takes the file `conf/GROUP/OPTION.yaml`, or [yours](../spaces.md#a-folder-of-your-own).",
        "",
        "| group | option | what it is |",
        "|---|---|---|",
    ]
    for group in GROUPS:
        lines += [_option(group, option) for option in _options(group)]
    listed = [
        key for key in keys().values() if not isinstance(key.default, dict) or key.path.startswith("engine.")
    ]
    ordered = sorted(listed, key=lambda key: "." in key.path)
    for group, members in groupby(ordered, lambda key: key.path.partition(".")[0] if "." in key.path else ""):
        title = f"`{group}`" if group else "The sweep as a whole"
        lines += ["", f"## {title}", "", "| key | type | default | meaning |", "|---|---|---|---|"]
        lines += [_row(key) for key in members]
    for engine in ENGINE_NAMES:
        if types := flag_types(engine):
            lines += ["", f"## Flags of `{engine}`", "", *_flags(types)]
    return "\n".join(lines) + "\n"


def _option(group: str, option: str) -> str:
    return f"| `{group}` | `{option}` | {_cell(_first(head(packaged(f'{group}/{option}.yaml'))))} |"


def _options(group: str) -> list[str]:
    folder = resources.files("conf").joinpath(group)
    names = (file.name for file in folder.iterdir())
    return sorted(name.removesuffix(".yaml") for name in names if name.endswith(".yaml"))


def _row(key: Key) -> str:
    default = "**must be given**" if key.required else f"`{written(key.default)}`"
    kind = in_words(key.schema) + (f" ({key.unit})" if key.unit else "")
    return f"| `{key.path}` | {_cell(kind)} | {_cell(default)} | {_cell(key.meaning)} |"


def _flags(types: Mapping[str, FlagType]) -> Iterable[str]:
    yield "What is known of single flags. Others may be used, too: the server's own help says whether they exist."
    yield from ("", "| flag | values | |", "|---|---|---|")
    words = {"whole": "whole number", "real": "number", "bare": "`true`, `false`", "text": "text"}
    for name, kind in types.items():
        values = words.get(kind.kind, "whole numbers with spaces" if kind.kind == "numbers" else "")
        if kind.choices:
            values = ", ".join(f"`{choice}`" for choice in kind.choices)
        if kind.low is not None and kind.high is not None:
            values += (
                f", {kind.low:,g} to {kind.high:,g}" if kind.high < 2**31 - 1 else f", at least {kind.low:,g}"
            )
        yield f"| `{name}` | {values or 'refused'} | {_cell(kind.note)} |"


def metrics() -> str:
    """The table METRICS."""
    lines = [
        "# Metrics",
        _NOTE,
        "What is recorded of each launch. What was not measured is absent, never 0. MLflow has these names;",
        "`accept_length` is there as `accept_len`, too. The objective may be any that is marked.",
        "",
        "| name | unit | meaning | better | objective |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| `{m.name}` | {m.unit} | {_cell(m.meaning)} | {m.better} | {'yes' if m.objective else ''} |"
        for m in METRICS.values()
    ]
    return "\n".join(lines) + "\n"


def failures() -> str:
    """Failure kinds and what the study makes of them; exit codes."""
    fault = {
        Fault.CONFIGURATION: "the configuration's: the search keeps away from it",
        Fault.TOOLING: "specsweep's own: never held against the configuration",
        Fault.HOST: "the host's: the launch is made again",
    }
    lines = ["# Failures and exit codes", _NOTE, "## Kinds of failure", ""]
    lines.append("A launch without a score has one of these kinds, with the lines that show the cause.")
    for kind in FailureKind:
        policy = POLICY[kind]
        tries = "as often as it takes" if policy.max_launches is None else f"{policy.max_launches} in all"
        lines += ["", f"### {kind.value}", "", f"{policy.meaning[0].upper()}{policy.meaning[1:]}.", ""]
        lines += [f"Whose fault: {fault[policy.fault]}. Launches before it counts: {tries}."]
    lines += ["", "## Exit codes", "", "```text", EXIT_CODES.rstrip(), "```"]
    return "\n".join(lines) + "\n"


def environment() -> str:
    """The variables that specsweep reads."""
    lines = ["# Environment variables", _NOTE, "| variable | what it is for |", "|---|---|"]
    lines += [f"| `{name}` | {_cell(meaning)} |" for name, meaning in ENVIRONMENT.items()]
    lines += [
        "",
        "Those of a server are set under `engine.env`, or searched under `space.env`. A variable that a webhook",
    ]
    lines += ["or a login needs is named in the configuration (`notify.webhook_env`)."]
    return "\n".join(lines) + "\n"


def files() -> str:
    """What specsweep writes, and where."""
    lines = ["# Files", _NOTE, "| file | what it is |", "|---|---|"]
    lines += [f"| {name} | {meaning} |" if meaning else f"| **{name}** | |" for name, meaning in FILES]
    return "\n".join(lines) + "\n"


def _first(text: str) -> str:
    """The first sentence."""
    return text.partition(". ")[0].rstrip(".") + "."


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


PAGES: Mapping[str, Callable[[], str]] = {
    "configuration.md": configuration,
    "metrics.md": metrics,
    "failures.md": failures,
    "environment.md": environment,
    "files.md": files,
}

if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for page, text in PAGES.items():
        (FOLDER / page).write_text(text(), encoding="utf-8")
