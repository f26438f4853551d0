"""Whom a launch is compared with while it is measured, so that one without hope can end early."""

from __future__ import annotations

import math
from collections.abc import Sequence

from sweeper.deciding.drift import drift_of
from sweeper.deciding.launches import first_pass
from sweeper.deciding.lossless import Admits, everyone
from sweeper.deciding.noise import noise_expected_of, prompt_means, prompt_ratios
from sweeper.deciding.values import values_of
from sweeper.records import Reference, TrialRecord, TrialState

PRIOR_RATIO_PCT = 10.0
"""How much a gain differs from prompt to prompt, before that was seen: drafts suit some texts better."""

PRIOR_DEGREES = 4
"""So many prompts is the guess worth: a pass over five."""


def reference(trials: Sequence[TrialRecord], objective: str, admits: Admits = everyone) -> Reference | None:
    """The best of the measured trials, the baseline among them; None before the baseline, or without prompts.

    Only those that may win (`admits`) end the others' hopes.

    Estimates are never referred to. What the host drifts by is not taken out: it is far below any gap that ends a
    launch early, and the noise between starts holds it.
    """
    groups = {trial.number: values_of(trial, objective) for trial in trials}
    complete = [t for t in trials if t.is_baseline or (t.state is TrialState.COMPLETE and admits(t))]
    known = {trial.number: groups[trial.number] for trial in complete}
    if not known.get(0):
        return None
    means = {
        number: math.fsum([each.value for each in values]) / len(values)
        for number, values in known.items()
        if values
    }
    best = max(means, key=lambda number: (means[number], -number))
    theirs = prompt_means([first_pass(each.launch) for each in known[best]])
    if not theirs:
        return None
    others = [first_pass(x.launch) for number, values in known.items() if number != best for x in values]
    seen = prompt_ratios(others, theirs)
    degrees, squares = PRIOR_DEGREES, PRIOR_DEGREES * PRIOR_RATIO_PCT**2
    if seen is not None:
        degrees, squares = degrees + seen.degrees, squares + seen.degrees * seen.pct**2
    noise = noise_expected_of([*groups.values()], drift_of(trials[0].launches, objective))
    return Reference(
        trial_number=best,
        value=means[best],
        prompt_throughputs=theirs,
        launch_noise_pct=noise.pct,
        launch_noise_degrees=noise.degrees,
        prompt_spread_pct=math.sqrt(squares / degrees),
    )
