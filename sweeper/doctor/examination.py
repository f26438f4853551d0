"""Runs the table of checks over the hosts of a run; a check that fails never stops the others."""

from __future__ import annotations

import datetime
import sqlite3
from collections import Counter
from collections.abc import Iterable, Sequence

from launchers.errors import HostLost, LauncherError
from sweeper.doctor.context import Context
from sweeper.doctor.finding import PER_HOST, Check, Finding, Level, Said, error, setting
from sweeper.doctor.table import CHECKS, CONFIGURATION
from sweeper.errors import ConfigError, ExitCode, SpecsweepError
from sweeper.frozen import Frozen
from sweeper.known_secrets import KNOWN
from sweeper.storing.losses import STORAGE_ERRORS, reason_of
from sweeper.text import plain

_MAX_TEXT = 1000
_WORST_FIRST = (Level.ERROR, Level.WARNING, Level.WAITING, Level.OK)


class Report(Frozen):
    """Everything that was found. `fixes`: what to do about the errors, in the order of the way, each once.

    `exit_code`: 0 when a run can begin (warnings allowed), 2 when its settings must change first, else 5.
    """

    study: str
    hosts: tuple[str, ...]
    at: datetime.datetime
    took_s: float
    ready: bool
    exit_code: int
    counts: dict[Level, int]
    fixes: tuple[str, ...]
    findings: tuple[Finding, ...]


def examine(contexts: Sequence[Context], checks: Sequence[Check[Context]] = CHECKS) -> tuple[Finding, ...]:
    """All checks on the first host; on further hosts of the same server, what each has of its own."""
    own = [check for check in checks if check.place in PER_HOST]
    found = (_on_one(ctx, own if number else checks) for number, ctx in enumerate(contexts))
    return tuple(finding for findings in found for finding in findings)


def refused(mistake: ConfigError) -> tuple[Finding, ...]:
    """Settings that cannot be read: one finding for each mistake, and all other checks wait for that."""
    first = [_finding(_checks_by_name()[CONFIGURATION], "", each) for each in _mistakes(mistake)]
    others = [check for check in CHECKS if check.name != CONFIGURATION]
    return (*first, *(_finding(check, "", _waiting([CONFIGURATION])) for check in others))


def report_of(findings: Iterable[Finding], study: str, at: datetime.datetime, took_s: float) -> Report:
    """The findings, counted, with what follows from them."""
    found = tuple(findings)
    errors = [each for each in found if each.level is Level.ERROR]
    code = ExitCode.OK
    if errors:
        code = ExitCode.USAGE if any(each.is_setting for each in errors) else ExitCode.ABORTED
    counts = Counter(each.level for each in found)
    return Report(
        study=study,
        hosts=tuple(dict.fromkeys(each.host for each in found if each.host)),
        at=at,
        took_s=round(took_s, 1),
        ready=not errors,
        exit_code=int(code),
        counts={level: counts[level] for level in _WORST_FIRST},
        fixes=tuple(dict.fromkeys(_to_do(each) for each in errors)),
        findings=found,
    )


def worst_first(findings: Iterable[Finding]) -> list[Finding]:
    """Errors, then warnings; each kind in the order of the way."""
    told = [each for each in findings if each.level in (Level.ERROR, Level.WARNING)]
    return sorted(told, key=lambda each: _WORST_FIRST.index(each.level))


def _on_one(ctx: Context, checks: Sequence[Check[Context]]) -> list[Finding]:
    """The checks on one host; one that waits names the errors at which that began."""
    found: list[Finding] = []
    roots: dict[str, list[str]] = {}
    for check in checks:
        blocking = list(dict.fromkeys(root for name in check.needs for root in roots.get(name, ())))
        said = [_waiting(blocking)] if blocking else _said(check, ctx)
        if blocking or any(each.level is Level.ERROR for each in said):
            roots[check.name] = blocking or [check.name]
        host = ctx.host if check.place in PER_HOST else ""
        found += [_finding(check, host, each) for each in said]
    return found


def _said(check: Check[Context], ctx: Context) -> list[Said]:
    """What a check says, or what it came to grief on."""
    try:
        return list(check.look(ctx))
    except ConfigError as mistake:
        return _mistakes(mistake)
    except HostLost as lost:
        return [error(lost.reason, lost.fix or "see what the host does; `specsweep doctor` again")]
    except STORAGE_ERRORS as mistake:
        return [error(reason_of(mistake), "see to the study's database")]
    except (LauncherError, SpecsweepError, OSError, sqlite3.Error) as mistake:
        return [error(str(mistake) or type(mistake).__name__, "mend what the message names")]


def _mistakes(mistake: ConfigError) -> list[Said]:
    """One for each line, which begins with the setting that is wrong."""
    return [setting(line, f"correct {line.partition(': ')[0]}") for line in mistake.mistakes]


def _waiting(names: Sequence[str]) -> Said:
    return Said(Level.WAITING, f"waits for {', '.join(names)}")


def _finding(check: Check[Context], host: str, said: Said) -> Finding:
    """Whatever a host, a file or a database said is one bounded line without codes and secrets."""
    return Finding(
        place=check.place,
        host=host,
        check=check.name,
        level=said.level,
        reason=plain(KNOWN.hide(said.reason), _MAX_TEXT),
        fix=plain(KNOWN.hide(said.fix), _MAX_TEXT),
        is_setting=said.is_setting,
    )


def _to_do(finding: Finding) -> str:
    where = f"{finding.check} on {finding.host}" if finding.host else finding.check
    return f"{finding.fix or finding.reason} ({where})"


def _checks_by_name() -> dict[str, Check[Context]]:
    return {check.name: check for check in CHECKS}
