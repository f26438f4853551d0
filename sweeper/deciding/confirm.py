"""Which confirming launches are still to be made: in turn with the baseline, until the answer is clear. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

from sweeper.deciding.fresh import MIN_ROUNDS, Before, Confirmed, attempts, compare
from sweeper.records import Purpose, TrialRecord
from sweeper.statistics.ratios import NORMAL, Ratio

LOOK_ALPHA = 0.001
"""A gain ends the confirmation early only when chance would show it this rarely: looking several times is then
nearly free (Haybittle and Peto), and the end is judged as if nobody had looked."""

BEHIND_ALPHA = 0.01
"""Once there is a winner, whoever is this surely slower is not launched again: at most a tie would be missed."""

FUTILE = 0.005
"""A finalist is dropped when it would still be confirmed with less than this probability."""


def confirmations(
    baseline: TrialRecord,
    chosen: Sequence[TrialRecord],
    rounds: int,
    objective: str,
    before: Before,
) -> list[int]:
    """Trial numbers of the confirming launches still to make: `rounds` of each, unless it becomes clear before.

    Baseline and finalists take turns, every other time in reverse, so that a
    drift of the host meets all alike. Who was dropped stays out when there are more `rounds` later: launches of
    another day, without the baseline's beside them, are compared with nothing. Who was never confirmed begins:
    from then on it is on record that earlier confirmations are over (`fresh_since`).
    """
    if not chosen:
        return []
    made = {trial.number: len(attempts(trial, before.since)) for trial in (baseline, *chosen)}
    in_play = [trial.number for trial in chosen if made[trial.number] >= made[0] - 1]  # others were dropped
    for looked in range(MIN_ROUNDS, rounds):
        if min(made[number] for number in (0, *in_play)) < looked:
            break
        so_far = compare(baseline, chosen, objective, before, first=looked)
        in_play = in_play if so_far is None else _still_in_play(so_far, in_play, looked / rounds)
        if not in_play:
            return []
    order = [0, *in_play]
    confirmed = {trial.number for trial in (baseline, *chosen) if _was_confirmed(trial)}
    turns = [sorted(order, key=confirmed.__contains__), *(order[:: (-1) ** turn] for turn in range(1, rounds))]
    return [number for turn, numbers in enumerate(turns) for number in numbers if made[number] <= turn]


def _was_confirmed(trial: TrialRecord) -> bool:
    return any(launch.purpose is Purpose.CONFIRM for launch in trial.launches)


def _still_in_play(so_far: Confirmed, in_play: Sequence[int], share: float) -> list[int]:
    """Who is to be launched again, after this `share` of the launches; empty when the answer is clear.

    Clear: the fastest is a winner and nobody comes near it, or nobody can win any more.
    """
    hopeful = [n for n in in_play if n not in so_far.ratios or not is_futile(so_far.ratios[n], share)]
    best = so_far.fastest_first[0]
    p = so_far.ratios[best].p
    if p is not None and p < LOOK_ALPHA:
        near = so_far.as_fast_as(best, BEHIND_ALPHA)
        hopeful = [number for number in hopeful if number in near or number not in so_far.ratios]
        return hopeful if len(hopeful) > 1 else []
    return hopeful


def is_futile(ratio: Ratio, share: float) -> bool:
    """Whether a finalist with this `ratio` will hardly be confirmed at the end (stochastic curtailment).

    `share`: so much of the launches has been made, above 0 and at most 1. The estimate at the end lies around the
    present one, with the variance that the launches still to come take away from it, and would have to be enough.
    """
    if ratio.t is None or math.isinf(ratio.t):
        return ratio.t is not None and ratio.t < 0
    needed = ratio.enough * math.sqrt(share)
    return ratio.t < needed + NORMAL.inv_cdf(FUTILE) * math.sqrt(1 - share)
