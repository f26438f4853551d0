"""When a sweep stops, whom it tells, and what it leaves behind: parts of a specification."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, ValidationInfo, field_validator

from sweeper.deadline import read_until
from sweeper.frozen import MAX_COUNT, MAX_SECONDS, MAX_TRIALS, Frozen, once

MAX_FINALISTS = 8
"""Each further one makes all of them harder to confirm."""

MAX_HOURS = MAX_SECONDS / 3600
OnFinish = Literal["stop", "serve_best", "restore"]
Event = Literal["first_winner", "finished", "interrupted", "aborted"]


class BudgetSpec(Frozen):
    """When to stop. `trials` is a total over all starts of this study, the baseline included.

    `until`: the local time at which the night ends (deadline.py). `hours` of launches on each host and
    `energy_kwh` of the GPUs are totals over all starts, as `trials` is. No launch is begun that would not end
    within them, and so much is kept back that the finalists can be confirmed.

    During the search the baseline is launched again after every `baseline_every` launches of others (0: never).
    Of what the search found, those that the noise of a launch cannot tell from the best, `shortlist` at most, are
    launched again, ever fewer, until `finalists` are left. These and the baseline are then launched in turn until
    the verdict is clear, or each has `confirm_launches` fresh launches; 0 leaves the confirmation away.

    The search ends early when no untested configuration is expected to bring more than `least_gain_pct` over the
    best so far; 0: never. Only a search that foretells gains (physics) can end so.
    """

    trials: int = Field(gt=0, le=MAX_TRIALS)
    baseline_every: int = Field(default=0, ge=0, le=MAX_TRIALS)
    shortlist: int = Field(default=0, ge=0, le=MAX_TRIALS)
    finalists: int = Field(ge=1, le=MAX_FINALISTS)
    confirm_launches: int = Field(ge=0, le=MAX_TRIALS)
    least_gain_pct: float = Field(default=0.0, ge=0, le=100)
    until: str | None = None
    hours: float | None = Field(default=None, gt=0, le=MAX_HOURS)
    energy_kwh: float | None = Field(default=None, gt=0, le=MAX_COUNT)

    @field_validator("until")
    @classmethod
    def _a_moment(cls, until: str | None) -> str | None:
        if until is not None:
            read_until(until)
        return until


class LimitsSpec(Frozen):
    """How long to wait, and when to give up.

    So many `identical_failures` in a row that are the host's or our own stop the sweep, or twice as many trials.
    So does a GPU that was hotter than `gpu_temperature_c` in a launch, a disk with less than `free_gib` GiB (on
    the host, or where the study is), and, with `gpu_errors`, an error of a GPU's hardware. 0 or None: no limit.
    """

    start_s: float = Field(gt=0, le=MAX_SECONDS)
    stop_grace_s: float = Field(ge=0, le=MAX_SECONDS)
    identical_failures: int = Field(gt=1, le=MAX_COUNT)
    gpu_temperature_c: float | None = Field(default=None, gt=0, le=200)
    gpu_errors: bool = True
    free_gib: float = Field(default=0, ge=0, le=MAX_COUNT)


class NotifySpec(Frozen):
    """Who is told of `events`, in a thread of its own: `command` (its stdin has the message), a webhook, or both.

    `webhook`: a URL; `webhook_env`: the environment variable that holds it, which keeps it out of all files. Each
    is tried `tries` times, `timeout_s` seconds each.
    """

    command: tuple[str, ...] = ()
    webhook: str = ""
    webhook_env: str = Field(default="", validate_default=True)
    events: Annotated[tuple[Event, ...], AfterValidator(once)] = (
        "first_winner",
        "finished",
        "interrupted",
        "aborted",
    )
    timeout_s: float = Field(default=10, gt=0, le=600)
    tries: int = Field(default=4, ge=1, le=10)

    @field_validator("command")
    @classmethod
    def _a_program(cls, command: tuple[str, ...]) -> tuple[str, ...]:
        if command and (not command[0] or any("\0" in word for word in command)):
            raise ValueError("should be a list that begins with a program: [mail, -s, specsweep, me@example.org]")
        return command

    @field_validator("webhook")
    @classmethod
    def _a_url(cls, webhook: str) -> str:
        if webhook and not re.fullmatch(r"https?://[^\s/]+\S*", webhook):
            raise ValueError("should begin with https:// or http://")
        return webhook

    @field_validator("webhook_env")
    @classmethod
    def _a_name(cls, name: str, info: ValidationInfo) -> str:
        if name and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            raise ValueError("should be the name of an environment variable, not the URL itself")
        if name and info.data.get("webhook"):
            raise ValueError("and notify.webhook are both given: one of them is enough")
        return name
