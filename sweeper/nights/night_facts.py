"""What the study remembers of a host's night, and whether that host tells its GPUs' power."""

from __future__ import annotations

import datetime

from launchers.clock import Clock
from sweeper.deadline import NightSpan, span_of
from sweeper.errors import ConfigError
from sweeper.rig import Rig
from sweeper.spec import BudgetSpec
from sweeper.storing.storage import StudyStore

_POWER_TIMEOUT_S = 30.0


class NightFacts:
    """Facts of one study about the night of one host: what a later start must know of it."""

    def __init__(self, store: StudyStore, host: str) -> None:
        self._store = store
        self._span, self._cut = f"night:{host}", f"night_cut:{host}"

    def last(self) -> NightSpan | None:
        """The night of the last start that had an end."""
        if (known := self._store.fact(self._span)) is None:
            return None
        moments = {name: datetime.datetime.fromisoformat(known[name]) for name in ("begun_at", "ends_at")}
        return NightSpan(until=known["until"], ended=known["ended"], **moments)

    def keep(self, span: NightSpan) -> None:
        """Write the night down."""
        moments = {"begun_at": span.begun_at.isoformat(), "ends_at": span.ends_at.isoformat()}
        self._store.set_fact(self._span, {"until": span.until, "ended": span.ended, **moments})

    def cut(self, budget: BudgetSpec, span: NightSpan | None) -> frozenset[str]:
        """What was left out in this very night, under this very budget; another one begins anew."""
        known = self._store.fact(self._cut)
        return frozenset(known["cut"]) if known and known["of"] == _named(budget, span) else frozenset()

    def keep_cut(self, budget: BudgetSpec, span: NightSpan | None, cut: frozenset[str]) -> None:
        """Write down what is left out."""
        self._store.set_fact(self._cut, {"of": _named(budget, span), "cut": sorted(cut)})


def _named(budget: BudgetSpec, span: NightSpan | None) -> str:
    ends_at = span.ends_at.isoformat() if span else ""
    return f"{ends_at} {budget.hours} {budget.energy_kwh} {budget.trials} {budget.confirm_launches}"


def required_span(budget: BudgetSpec, clock: Clock, last: NightSpan | None) -> NightSpan | None:
    """The night that a start now belongs to, the `last` one or a new one; None without an end.

    Raises ConfigError for an end that is past.
    """
    if budget.until is None:
        return None
    span = span_of(budget.until, clock.now(), clock.zone(), last)
    if span is None:
        now = clock.now().astimezone(clock.zone()).strftime("%Y-%m-%d %H:%M")
        raise ConfigError([f"budget.until: '{budget.until}' is past: it is now {now}; give a later one, or 07:00"])
    return span


def require_power(rig: Rig) -> None:
    """Raises ConfigError where `budget.energy_kwh` could not be kept: nobody would tell the GPUs' power."""
    what = f"budget.energy_kwh: {rig.spec.budget.energy_kwh:g}"
    if not rig.watch_gpus or rig.spec.host.gpu_sample_s == 0:
        setting = "host.gpu_sample_s is 0" if rig.watch_gpus else "host.watch_gpus is off for this engine"
        raise ConfigError([f"{what} cannot be kept: the GPUs' power is not read ({setting})"])
    argv = ("nvidia-smi", "--query-gpu=power.draw", "--format=csv,noheader,nounits")
    result = rig.launcher.run(argv, _POWER_TIMEOUT_S)
    told = result.stdout.decode("utf-8", "replace").split()
    if result.exit_code != 0 or not any(word.replace(".", "", 1).isdecimal() for word in told):
        raise ConfigError(
            [f"{what} cannot be kept: nvidia-smi on {rig.launcher.host} tells no power; leave it out"]
        )
