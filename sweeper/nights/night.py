"""The night that a start belongs to: when it ends, what may still be launched, and what is said about that."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import replace

from sweeper.deadline import NightSpan, shown_end
from sweeper.deciding.affordable import CONFIRMATION, RECHECKS, SEARCH, Purse, afford, under
from sweeper.deciding.plan import Progress
from sweeper.nights.night_facts import NightFacts, require_power, required_span
from sweeper.nights.purses import Purses
from sweeper.rig import Rig
from sweeper.spec import BudgetSpec
from sweeper.study import Study
from sweeper.tally import spent

_JUMP_S = 60.0
"""A clock that is slewed by less is not worth a word."""

_SAID = {
    SEARCH: "the search ends here, so that the finalists can be confirmed",
    RECHECKS: "the close ones are not launched again, so that the finalists can be confirmed",
    CONFIRMATION: "too little is left to confirm anything: the verdict will be unconfirmed",
}
_LEFT_OUT = {
    SEARCH: "the rest of the search",
    RECHECKS: "launching the close ones again",
    CONFIRMATION: "the confirmation",
}


class Night:
    """Keeps the budgets of time and energy. Made by `begin`.

    The end counts from the moment of the start, by a clock that nobody sets: when the time of day jumps the night
    neither ends at once nor goes on for ever.
    """

    def __init__(self, rig: Rig, study: Study, span: NightSpan | None) -> None:
        self._rig = rig
        self._study = study
        self._asked = rig.spec.budget
        self._span = span
        self._facts = NightFacts(study.store, rig.launcher.host)
        self._purses = Purses(rig.spec, rig.launcher.host)
        self._cut = self._facts.cut(self._asked, span)
        self._began_at, self._began_s = rig.clock.now(), rig.clock.boottime_s()
        self._jump_s = 0.0
        self._is_over = False

    @classmethod
    def begin(cls, rig: Rig, study: Study) -> Night:
        """The night that this start belongs to, an interrupted one or a new one; says when it ends.

        Raises ConfigError for an end that is past, and for energy on a host that does not tell its power.
        """
        budget, now = rig.spec.budget, rig.clock.now()
        if budget.energy_kwh is not None:
            require_power(rig)
        facts = NightFacts(study.store, rig.launcher.host)
        last = facts.last()
        span = required_span(budget, rig.clock, last)
        night = cls(rig, study, span)
        if span is not None:
            facts.keep(span)
            again = "goes on and " if last == span else ""
            left_s = (span.ends_at - now).total_seconds()
            rig.view.notice(f"the night {again}ends {night._ends()}, in {spent(max(0.0, left_s))}")
        return night

    def budget(self) -> BudgetSpec | None:
        """What the next launch is chosen under; None when none fits any more. Says what is left out, and why."""
        self._watch_clock()
        trials = self._study.trials()
        purses = self._purses.of(trials, self._span, self._until_s())
        decision = afford(self._study.next_step, self._asked, trials, purses, self._cut)
        short = " and ".join(decision.short_of)
        for what in sorted(decision.cut - self._cut, key=list(_SAID).index):
            self._rig.view.notice(f"{short}: {_SAID[what]}")
        if decision.budget is None and not self._is_over:
            self._is_over = True
            self._rig.view.notice(f"{short}: no further launch would end in time{_least(purses)}")
        if decision.cut != self._cut:
            self._cut = decision.cut
            self._facts.keep_cut(self._asked, self._span, self._cut)
        return decision.budget

    def left_s(self) -> float | None:
        """Seconds until the server of a launch must be stopped; None without an end."""
        left_s = self._purses.time_left_s(self._study.trials(), self._span, self._until_s())
        return None if left_s is None else left_s - self._rig.spec.limits.stop_grace_s

    def progress(self) -> Progress:
        """Where the sweep stands, with the end of the night."""
        asked = under(self._asked, self._study.trials(), self._cut)
        until_s = self._until_s()
        ends = self._ends() if self._span else ""
        return replace(self._study.progress(asked), night_left_s=until_s, night_ends=ends)

    def end(self) -> str:
        """The sweep has ended; what was left out, as a sentence for the verdict (empty: nothing).

        A night that ended because a person asked for it is gone on with by the next start.
        """
        stopped = self._rig.interrupts.finish_requested
        if self._span is not None and not stopped:
            self._facts.keep(replace(self._span, ended=True))
        if stopped:
            return ""
        cut = self._cut | ({SEARCH} if self._is_over and CONFIRMATION in self._cut else set())
        missing = [words for what, words in _LEFT_OUT.items() if what in cut]
        if not missing and self._study.next_step(self._asked) is None:
            return ""
        missing = missing or ["the rest"]
        return f"Cut short by {self._limits()}: left out {', '.join(missing)}. A later end goes on from here."

    def _limits(self) -> str:
        asked = self._asked
        set_ = {"until": asked.until, "hours": asked.hours, "energy_kwh": asked.energy_kwh}
        return ", ".join(f"budget.{name}={value}" for name, value in set_.items() if value is not None)

    def _ends(self) -> str:
        assert self._span is not None  # asked for only then
        now = self._rig.clock.now()
        ends_at = now + datetime.timedelta(seconds=self._until_s() or 0.0)
        return f"at {shown_end(ends_at, now, self._rig.clock.zone())}"

    def _until_s(self) -> float | None:
        """Seconds to the end of the night, the time in which this machine slept counted."""
        if self._span is None:
            return None
        elapsed_s = self._rig.clock.boottime_s() - self._began_s
        return (self._span.ends_at - self._began_at).total_seconds() - elapsed_s

    def _watch_clock(self) -> None:
        """Say when somebody set the clock of this machine since the start."""
        clock = self._rig.clock
        jump_s = (clock.now() - self._began_at).total_seconds() - (clock.boottime_s() - self._began_s)
        if abs(jump_s - self._jump_s) > _JUMP_S and self._span is not None:
            way = "forward" if jump_s > self._jump_s else "back"
            told = f"this machine's clock was set {spent(abs(jump_s - self._jump_s))} {way}"
            self._rig.view.notice(f"{told}; the night still ends in {spent(max(0.0, self._until_s() or 0.0))}")
            self._jump_s = jump_s


def _least(purses: Sequence[Purse]) -> str:
    """What a first launch needs, in words; empty once launches have taught what they take."""
    first_s = next((purse.first for purse in purses if purse.is_time and not purse.learned.known), None)
    if first_s is None:
        return ""
    settings = "limits.start_s, workload.warmup_max_s and limits.stop_grace_s"
    return f": before one has been measured {spent(first_s)} are needed ({settings})"
