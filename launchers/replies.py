"""The text that goes to a host's shell and the replies that come back: quoting, framing, strict parsing."""

from __future__ import annotations

import re
import secrets
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.resources import files

from launchers.base import LaunchSpec, Shell
from launchers.errors import HostLost, LinkLost, StartFailed

_PROCESSES, _GPUS, _SUPERVISOR, _STANDING, LEADER, LOOKING = (
    files("launchers").joinpath(name).read_text(encoding="utf-8")
    for name in ("processes.sh", "gpus.sh", "supervisor.sh", "standing.sh", "leader.sh", "looking.sh")
)
MARKER = "SPECSWEEP_SERVER"
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
SERVER_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True)
class Reply:
    """One framed answer of supervisor.sh: what kind, its bytes as they came, and the code of `run`'s command."""

    kind: str
    body: bytes
    code: int

    def text(self) -> str:
        """The body for a message: undecodable bytes are shown as escapes."""
        return self.body.decode("utf-8", "backslashreplace").strip()

    def fields(self, pattern: str) -> tuple[str, ...]:
        """The groups of `pattern`, which must match the whole body. Raises HostLost when it does not."""
        found = re.fullmatch(pattern, self.body.decode("utf-8", "backslashreplace"), re.DOTALL)
        if found is None:
            raise HostLost(f"the answer `{self.kind}` makes no sense: {self.body[:200]!r}")
        return found.groups()


def quote(word: str) -> str:
    """`word` as one word of a POSIX shell. Raises ValueError when it holds a NUL, which no argument can."""
    if "\0" in word:
        raise ValueError(f"a NUL cannot stand in a shell word: {word[:60]!r}")
    return shlex.quote(word)


def call_script(nonce: str, state_dir: str, verb: str, arguments: Iterable[str], more: str = "") -> str:
    """The script that asks one thing of supervisor.sh; cut short on its way it is a syntax error.

    `more`: functions beside those of supervisor.sh, or in their place.
    """
    words = " ".join(quote(word) for word in (nonce, state_dir, verb, *arguments))
    return f"{_PROCESSES}\n{_GPUS}\n{_SUPERVISOR}\n{_STANDING}\n{more}\n{{ main {words}; }} </dev/null\n"


def parse_reply(stdout: bytes, nonce: str) -> Reply:
    """The reply framed with `nonce`; whatever stands around it (a login banner) is ignored.

    Raises HostLost unless there is exactly one begin and one end.
    """
    frame = rb"\n@specsweep " + re.escape(nonce.encode()) + rb" "
    begins = list(re.finditer(frame + rb"begin ([a-z]+)\n", stdout))
    ends = list(re.finditer(frame + rb"end ([0-9]{1,3})\n", stdout))
    if len(begins) != 1 or len(ends) != 1 or ends[0].start() < begins[0].end():
        raise HostLost(f"the answer is not a whole reply ({len(stdout)} bytes, ending in {stdout[-200:]!r})")
    body = stdout[begins[0].end() : ends[0].start()]
    return Reply(begins[0][1].decode("ascii"), body, int(ends[0][1]))


def ask(shell: Shell, state_dir: str, verb: str, arguments: tuple[str, ...], timeout_s: float) -> Reply:
    """Call one verb of supervisor.sh. Raises HostLost when there is no sensible answer.

    After a broken connection every verb is asked once more, but `start` and `restore`: they may have run already.
    """
    nonce = secrets.token_hex(8)
    script = call_script(nonce, state_dir, verb, arguments)
    try:
        result = shell.run(script, timeout_s)
    except LinkLost:
        if verb in ("start", "restore"):
            raise
        result = shell.run(script, timeout_s)
    try:
        reply = parse_reply(result.stdout, nonce)
        if reply.kind == "unknown":
            raise HostLost(reply.text())
    except HostLost as error:
        stderr = result.stderr[-300:].decode("utf-8", "backslashreplace").strip()
        raise HostLost(f"{shell.name}, `{verb}`: {error}; exit {result.exit_code}: {stderr}") from error
    return reply


def expect(reply: Reply, kind: str) -> Reply:
    """`reply`, which must be of that kind. Raises HostLost."""
    if reply.kind != kind:
        raise HostLost(f"instead of `{kind}` the host answered `{reply.kind}`: {reply.text()[:500]}")
    return reply


def export_lines(env: Mapping[str, str]) -> str:
    """Shell lines that set these variables for what follows. Raises StartFailed for names that cannot be used."""
    if wrong := [name for name, value in env.items() if not _is_usable(name) or "\0" in value]:
        raise StartFailed(f"environment {', '.join(map(repr, wrong))} cannot be set")
    return "".join(f"export {name}={quote(value)}\n" for name, value in env.items())


def _is_usable(name: str) -> bool:
    return bool(_ENV_NAME.fullmatch(name)) and name != MARKER


def command_text(spec: LaunchSpec) -> str:
    """Shell lines that set a server's environment and put its program and arguments in "$@".

    `unset_env` wins over `env`. Raises StartFailed with everything that is wrong with `spec`.
    """
    if problems := list(_problems(spec)):
        raise StartFailed(f"server {spec.nonce[:100]!r} cannot be started: {'; '.join(problems)}")
    lines = [f"export {name}={quote(value)}" for name, value in spec.env.items()]
    lines += [f"unset {name}" for name in spec.unset_env]
    return "\n".join([*lines, f"set -- {' '.join(quote(word) for word in spec.argv)}"])


def _problems(spec: LaunchSpec) -> Iterable[str]:
    if not SERVER_ID.fullmatch(spec.nonce):
        yield f"nonce {spec.nonce[:100]!r}: letters, digits, '_', '-' and '.' only, at most 100"
    if not spec.argv or not spec.argv[0] or spec.argv[0].startswith("-"):
        yield f"argv {spec.argv[:1]!r} does not begin with a program"
    if not 1 <= spec.port <= 65535:
        yield f"port {spec.port} is not between 1 and 65535"
    for name in (*spec.env, *spec.unset_env):
        if not _is_usable(name):
            yield f"environment name {name!r} cannot be used"
    if any("\0" in word for word in (*spec.argv, *spec.env.values())):
        yield "an argument or an environment value holds a NUL"
