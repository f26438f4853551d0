"""A systemd unit, one per rank, and an example of its EnvironmentFile: secrets stand there, never in the unit.

Quoting: systemd.syntax(7) and systemd.service(5), "Command lines": `%` begins a specifier, `$` a variable (not in
Environment=), C escapes hold inside double quotes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from sweeper.exporting.comments import comments
from sweeper.exporting.handover import Handover, Setting, Word
from sweeper.text import plain

_SAFE = re.compile(r"[A-Za-z0-9_./:=,+-]+")
_PROGRAM = re.compile(r"/[A-Za-z0-9_./+-]+")
_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "%": "%%"})


def units(handover: Handover) -> dict[str, str]:
    """File name to text."""
    files = {f"{handover.name}{handover.suffix(rank)}.service": _unit(handover, rank) for rank in _ranks(handover)}
    return {**files, f"{handover.name}.env.example": _example(handover)}


def _ranks(handover: Handover) -> range:
    return range(handover.num_ranks)


def _unit(handover: Handover, rank: int) -> str:
    groups = handover.arguments(handover.host_setting, handover.port_setting, rank)
    settings = [word for group in groups for word in group if isinstance(word, Setting) and word.default]
    plain_env = {name: value for name, value in handover.env.items() if isinstance(value, str)}
    needed = "" if handover.secrets else "-"
    gpus = {"CUDA_VISIBLE_DEVICES": ",".join(map(str, handover.gpus))} if handover.gpus else {}
    command = " \\\n  ".join([_program(handover.serving.command), *(_words(group) for group in groups)])
    lines = [
        "[Unit]",
        f"Description={plain(handover.about[0], 200).translate(_ESCAPES)}",
        "Wants=network-online.target",
        "After=network-online.target",
        "",
        "[Service]",
        "Type=exec",
        *(_environment(s.name, s.default) for s in settings),
        *(_environment(name, value) for name, value in {**gpus, **plain_env}.items()),
        f"EnvironmentFile={needed}{environment_file(handover)}",
        *([f"UnsetEnvironment={' '.join(unset)}"] if (unset := handover.serving.unset_env) else []),
        f"ExecStart={command}",
        "Restart=on-failure",
        "RestartSec=10",
        "TimeoutStopSec=60",
        "KillMode=mixed",
        "LimitNOFILE=1048576",
        "LimitMEMLOCK=infinity",
        "",
        "[Install]",
        "WantedBy=multi-user.target",
    ]
    usage = (
        f"Copy to /etc/systemd/system; {environment_file(handover)} (see {handover.name}.env.example) sets "
        "address, port and secrets. Add User= with the account that may read the model."
    )
    return comments([*handover.about, "", usage]) + "\n".join(lines) + "\n"


def environment_file(handover: Handover) -> str:
    """Where the unit looks for what a person sets."""
    return f"/etc/{handover.name}.env"


def _example(handover: Handover) -> str:
    about = [
        f"Copy to {environment_file(handover)}, readable by root alone (mode 600).",
        "The server's address and port:",
    ]
    settings = [handover.host_setting, handover.port_setting]
    lines = [*(f"{s.name}={s.default}" for s in settings), *(f"{s.name}=" for s in handover.secrets)]
    return comments(about) + "\n".join(lines) + "\n"


def _program(command: tuple[str, ...]) -> str:
    """The program by its path; any other name is looked up by env, which systemd's own search path is not."""
    if _PROGRAM.fullmatch(command[0]):
        return _words(command)
    return _words(("/usr/bin/env", *command))


def _words(words: Iterable[Word]) -> str:
    return " ".join(map(command_word, words))


def command_word(word: Word) -> str:
    """One word of ExecStart."""
    if isinstance(word, Setting):
        return f"${{{word.name}}}"
    return word if _SAFE.fullmatch(word) else '"' + word.translate(_ESCAPES).replace("$", "$$") + '"'


def _environment(name: str, value: str) -> str:
    """One Environment= line; `$` means nothing there."""
    return f'Environment="{name}={value.translate(_ESCAPES)}"'
