"""In words: how the search goes, where the study stands, and what only the host can tell. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sweeper.deciding.plan import Progress
from sweeper.records import TrialRecord, TrialState
from sweeper.samplers.choice import PHYSICS
from sweeper.searching.choice import Search
from sweeper.spec import SweepSpec

_WAYS: Mapping[str, str] = {
    PHYSICS: "models accept_len and the time of a verify step apart; after the baseline it probes each drafter, "
    "then launches what promises the most gain for a restart",
    "tpe": "draws the first {startup} at random, then prefers what good trials have in common (Optuna's TPE)",
    "gp": "draws the first {startup} at random, then follows a Gaussian process of the objective (Optuna's GP)",
    "random": "draws at random; learns nothing from what it measures",
    "grid": "goes through the space in the order in which it is written",
    "brute_force": "goes through the whole space at random",
}


def search_words(spec: SweepSpec, search: Search, notes: Sequence[str]) -> tuple[str, ...]:
    """What the sampler does, what ends the search, and what follows it."""
    budget = spec.budget
    way = _WAYS[search.sampler].format(startup=spec.study.startup_trials)
    lines = [f"{search.sampler} ({search.words}): {way}"]
    if search.sampler == PHYSICS and budget.least_gain_pct:
        lines.append(
            f"ends before {budget.trials} trials when twice running nothing untested is expected to bring "
            f"{budget.least_gain_pct:g} % (budget.least_gain_pct)"
        )
    if budget.baseline_every:
        lines.append(f"the baseline again after every {budget.baseline_every} launches of others (drift)")
    if budget.confirm_launches:
        lines.append(
            f"then those too close to the best are launched again until {budget.finalists} are left; these and "
            f"the baseline in turn, up to {budget.confirm_launches} fresh launches each, fewer when it is clear"
        )
    else:
        lines.append("no confirmation (budget.confirm_launches=0): the verdict will be unconfirmed")
    return (*lines, *notes)


def standing_words(trials: Sequence[TrialRecord], progress: Progress, *, is_new: bool, is_complete: bool) -> str:
    """`new`, `goes on: 7 of 12 trials done (6 complete, 1 infeasible)`, `complete`."""
    if is_new or not trials:
        return "new: nothing has been measured"
    states = {state: sum(trial.state is state for trial in trials) for state in TrialState}
    counted = ", ".join(f"{count} {state.value}" for state, count in states.items() if count)
    done = f"{progress.trials_done} of {progress.trials_total} trials done ({counted})"
    if is_complete:
        return f"complete: {done}; nothing would be launched, a larger budget.trials goes on"
    return f"goes on: {done}"


def unchecked(spec: SweepSpec, *, has_own_facts: bool, has_path: bool) -> tuple[str, ...]:
    """What a start reads from the host before the first launch, and a plan does not."""
    lines = [
        "the host: whether it is reached, idle and has the GPUs"
        if spec.host.kind == "ssh"
        else "this machine: whether it is idle",
        f"the server's program {' '.join(spec.engine.command)!r}: whether it runs, its version, its flags",
        "model and drafters: whether they are there, and their config.json",
    ]
    if has_own_facts:
        lines.append("whether any of these has changed since the study's last start")
    if not has_path:
        lines.append("the model's path, which model.prepare prints: MODEL_PATH stands for it")
    return tuple(lines)
