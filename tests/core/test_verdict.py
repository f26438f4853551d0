from __future__ import annotations

import pytest

from sweeper.deciding.verdict import VerdictKind, decide
from sweeper.errors import FailureKind
from sweeper.records import Purpose, TrialState
from sweeper.spec import ServerConfig
from tests.fakes import launch, trial

OBJECTIVE = "output_throughput"


def fewest_drafts(config: ServerConfig) -> tuple[float, ...]:
    return (float(config.flags.get("m", 0)),)


def test_the_published_night_is_no_gain() -> None:
    verdict = decide(
        [
            trial(0, [90.1], confirm=[90.0, 89.8]),
            trial(1, [82.3], confirm=[82.1, 82.5], steps=3),
            trial(2, [81.7], confirm=[81.5, 81.9], steps=2),
        ],
        OBJECTIVE,
        fewest_drafts,
    )
    assert verdict.kind is VerdictKind.NO_GAIN
    assert verdict.confirmed
    assert verdict.advised == 0
    assert "82.3 against 89.9 tok/s" in verdict.text
    assert "not significant" not in verdict.text


def test_a_clear_gain_is_a_winner() -> None:
    verdict = decide(
        [
            trial(0, [50.0], confirm=[50.2, 49.9]),
            trial(1, [69.0], confirm=[68.7, 69.3], m=4),
            trial(2, [58.0], confirm=[58.2, 57.9], m=5),
        ],
        OBJECTIVE,
        fewest_drafts,
    )
    assert (verdict.kind, verdict.advised, verdict.tied) == (VerdictKind.WINNER, 1, ())
    assert verdict.comparisons[0].low is not None
    assert verdict.comparisons[0].low > 1.3
    assert "90 % interval" in verdict.text


def test_a_faster_one_that_is_not_significant_does_not_hide_one_that_is() -> None:
    shaky = trial(1, [71.0], confirm=[45.0, 82.7], m=4)
    sure = trial(2, [60.0], confirm=[60.0, 60.1, 59.9, 60.0, 60.1, 59.9, 60.0, 60.1], m=5)
    base = trial(0, [50.0], confirm=[50.0, 50.1, 49.9, 50.0, 50.1, 49.9, 50.0, 50.1])
    verdict = decide([base, shaky, sure], OBJECTIVE, fewest_drafts)
    assert verdict.comparisons[0].trial_number == 1
    assert (verdict.kind, verdict.advised) == (VerdictKind.WINNER, 2)
    assert "Winner: trial 2, m5. 60.0 against 50.0" in verdict.text


def test_of_two_that_cannot_be_told_apart_the_simplest_is_advised() -> None:
    verdict = decide(
        [
            trial(0, [50.0], confirm=[50.5, 49.5]),
            trial(1, [70.0], confirm=[70.5, 69.5], m=16),
            trial(2, [69.5], confirm=[70.1, 69.2], m=4),
        ],
        OBJECTIVE,
        fewest_drafts,
    )
    assert (verdict.kind, verdict.advised, set(verdict.tied)) == (VerdictKind.TIE, 2, {1, 2})
    assert "cannot be told apart" in verdict.text


def test_a_difference_inside_the_noise_is_not_called_a_win() -> None:
    verdict = decide(
        [trial(0, [80.0], confirm=[78.0, 82.0]), trial(1, [83.0], confirm=[84.0, 80.0], m=4)],
        OBJECTIVE,
        fewest_drafts,
    )
    assert verdict.kind is VerdictKind.NO_GAIN
    assert "not significant" in verdict.text


def test_the_selected_maximum_is_judged_by_fresh_launches_only() -> None:
    verdict = decide(
        [trial(0, [50.0], confirm=[50.1, 49.9]), trial(1, [90.0], confirm=[50.2, 49.8], m=4)],
        OBJECTIVE,
        fewest_drafts,
    )
    assert verdict.kind is VerdictKind.NO_GAIN
    assert verdict.comparisons[0].value == pytest.approx(50.0, rel=1e-4)


def test_without_fresh_launches_nothing_is_called_a_winner_however_even_the_passes_were() -> None:
    verdict = decide(
        [trial(0, [50.0], repeats=[50.1, 49.9]), trial(1, [70.0], repeats=[70.3, 69.7], m=4)],
        OBJECTIVE,
        fewest_drafts,
    )
    assert (verdict.kind, verdict.confirmed) == (VerdictKind.NO_GAIN, False)
    assert "70.0 in its single launch against 50.0 tok/s of the baseline (1.400 x, spread unknown)" in verdict.text


def test_only_launches_after_the_last_finalist_was_found_confirm() -> None:
    stale = trial(0, [50.0], confirm=[50.2, 49.9])  # made before trial 7 was first measured
    late = trial(7, [90.0], confirm=[89.0, 91.0], m=4)
    assert not decide([stale, late], OBJECTIVE, fewest_drafts).confirmed
    again = [launch(v, trial=9, number=i, purpose=Purpose.CONFIRM) for i, v in enumerate((50.1, 49.8))]
    renewed = stale.model_copy(update={"launches": (*stale.launches, *again)})
    verdict = decide([renewed, late], OBJECTIVE, fewest_drafts)
    assert (verdict.kind, verdict.confirmed, verdict.advised) == (VerdictKind.WINNER, True, 7)


def test_before_anything_else_was_tried_nothing_is_said_to_be_impossible() -> None:
    assert "nothing else has been measured yet" in decide([trial(0, [50.0])], OBJECTIVE, fewest_drafts).text


def test_a_single_number_each_is_never_a_win() -> None:
    verdict = decide([trial(0, [50.0]), trial(1, [500.0], m=4)], OBJECTIVE, fewest_drafts)
    assert verdict.kind is VerdictKind.NO_GAIN
    assert "spread unknown" in verdict.text


def test_with_every_rival_failed_the_baseline_is_advised() -> None:
    failed = trial(1, state=TrialState.INFEASIBLE, failure=FailureKind.OUT_OF_MEMORY, m=4)
    verdict = decide([trial(0, [50.0]), failed], OBJECTIVE, fewest_drafts)
    assert (verdict.kind, verdict.advised) == (VerdictKind.NO_GAIN, 0)
    assert "nothing else could be measured (out_of_memory 1 x)" in verdict.text


@pytest.mark.parametrize("trials", [[], [trial(0, state=TrialState.RUNNING)]])
def test_without_a_baseline_there_is_no_verdict(trials: list) -> None:  # type: ignore[type-arg]
    assert decide(trials, OBJECTIVE, fewest_drafts).advised is None


def test_a_launch_that_produced_nothing_cannot_break_the_verdict() -> None:
    verdict = decide([trial(0, [50.0]), trial(1, [0.0], m=1), trial(2, [60.0], m=2)], OBJECTIVE, fewest_drafts)
    assert [row.trial_number for row in verdict.comparisons] == [2]
    assert decide([trial(0, [0.0]), trial(1, [60.0], m=1)], OBJECTIVE, fewest_drafts).advised is None


def test_an_objective_that_a_launch_lacks_is_not_compared() -> None:
    assert decide([trial(0, [50.0]), trial(1, [60.0], m=1)], "decode_throughput", fewest_drafts).advised is None


def test_every_other_one_given_up_early_is_said_with_the_best_of_them() -> None:
    early = trial(1, [40.0], m=1)
    early = early.model_copy(
        update={"launches": (early.launches[0].model_copy(update={"estimated": "stopped after 1 of 5 prompts"}),)}
    )
    verdict = decide([trial(0, [50.0]), early], OBJECTIVE, fewest_drafts)
    assert "every other configuration was given up early as too slow" in verdict.text
    assert "about 40.0 against 50.0 tok/s of the baseline (0.80 x)" in verdict.text
    assert verdict.comparisons[0].estimated


def test_the_winner_says_what_is_sure_and_what_it_is_drawn_from() -> None:
    trials = [trial(0, [50.0], confirm=[50.2, 49.9, 50.0]), trial(1, [60], confirm=[60.0, 60.3], m=4)]
    verdict = decide(trials, OBJECTIVE, fewest_drafts)
    assert "1.202 x, at least 19.4 % faster (95 % confidence; 90 % interval 1.194 to 1.211)" in verdict.text
    assert verdict.text.endswith("From 2 fresh launches, 3 of the baseline.")
    assert "speculation" not in verdict.text


def test_a_gain_that_is_not_significant_has_an_upper_limit() -> None:
    trials = [trial(0, [80.0], confirm=[78.0, 82.0]), trial(1, [83.0], confirm=[84.0, 80.0], m=4)]
    assert "not significant, at most" in decide(trials, OBJECTIVE, fewest_drafts).text


def test_a_verdict_knows_its_noise_and_drift() -> None:
    verdict = decide([trial(0, [50.0], confirm=[50.2, 49.9, 50.1])], OBJECTIVE, fewest_drafts)
    assert verdict.noise.launches is not None
    assert verdict.drift.num_launches == 4
    assert type(verdict).model_validate(verdict.model_dump(mode="json")) == verdict


def test_a_mean_of_several_launches_is_not_called_a_single_one_and_its_spread_is_known() -> None:
    verdict = decide([trial(0, [50.0]), trial(1, [60.0, 61.0, 62.0], m=4)], OBJECTIVE, fewest_drafts)
    assert not verdict.confirmed
    assert "trial 1, m4, did 61.0 in the mean of 3 launches against 50.0 tok/s of the baseline" in verdict.text
    assert "(1.220 x, starts of one configuration differ by 1.6 %): not confirmed." in verdict.text
    assert "budget.confirm_launches (5, say) of each of the best, at the end" in verdict.text
    assert "single" not in verdict.text
    assert "spread unknown" not in verdict.text


def test_finalists_of_which_only_confirming_launches_can_be_compared_still_have_a_verdict() -> None:
    winner = trial(1, [], confirm=[60.1, 59.9, 60.0], m=1)
    found = decide([trial(0, [50.0], confirm=[50.1, 49.9, 50.0]), winner], OBJECTIVE, lambda _: (0.0,))
    assert found.kind is VerdictKind.WINNER


def test_what_starts_differ_by_is_learnt_from_all_that_were_launched_again() -> None:
    unsure = [trial(0, [50], confirm=[50.0, 50.5]), trial(1, [53], confirm=[52.4, 52.9], m=1)]
    others = [trial(n, [40.0 + n, 40.4 + n, 40.2 + n], m=n) for n in range(2, 8)]
    alone, beside = (
        decide(trials, OBJECTIVE, fewest_drafts).comparisons[0] for trials in (unsure, [*unsure, *others])
    )
    assert alone.speedup == beside.speedup
    assert (beside.low or 0) > (alone.low or 0) + 0.01
