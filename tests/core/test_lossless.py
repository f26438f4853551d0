"""Who may not win because it may write other text than the baseline, or does."""

from __future__ import annotations

from sweeper.deciding.lossless import Gate
from sweeper.deciding.shortlist import shortlist
from sweeper.deciding.verdict import Verdict, VerdictKind, decide
from sweeper.records import TrialRecord
from sweeper.spec import BudgetSpec, ServerConfig
from sweeper.text_marks import marks
from tests.fakes import trial

OBJECTIVE = "output_throughput"
TEXTS = {
    f"p{number}#0": f"The answer to question {number} is long enough to be compared. " * 4 for number in range(10)
}
THRESHOLD = "speculative_accept_threshold_single=0.5: drafts are accepted that the model would not have written"


def simple(config: ServerConfig) -> tuple[float, ...]:
    return (float(config.flags.get("m", 0)),)


def writing(record: TrialRecord, texts: dict[str, str], lossy: tuple[str, ...] = ()) -> TrialRecord:
    kept = {key: marks(text) for key, text in texts.items()}
    launches = tuple(one.model_copy(update={"outputs": kept, "lossy": lossy}) for one in record.launches)
    return record.model_copy(update={"launches": launches})


def night(*, lossy: tuple[str, ...] = (), texts: dict[str, str] | None = None) -> list[TrialRecord]:
    """Trial 2 is the fastest, and perhaps not lossless; trial 1 is faster than the baseline."""
    return [
        writing(trial(0, [50.0], confirm=[50.1, 49.9, 50.0]), TEXTS),
        writing(trial(1, [60.0], confirm=[60.1, 59.9, 60.0], m=1), TEXTS),
        writing(trial(2, [70.0], confirm=[70.1, 69.9, 70.0], m=2), texts or TEXTS, lossy),
    ]


def verdict(trials: list[TrialRecord], gate: Gate = Gate()) -> Verdict:  # noqa: B008  (frozen)
    return decide(trials, OBJECTIVE, simple, gate)


def test_a_lossy_configuration_wins_only_when_asked_for() -> None:
    trials = night(lossy=(THRESHOLD,))
    strict = verdict(trials)
    assert (strict.kind, strict.advised) == (VerdictKind.WINNER, 1)
    assert [row.trial_number for row in strict.excluded] == [2]
    assert strict.text.endswith(f"{THRESHOLD}. verdict.allow_lossy=true lets it win.")
    assert "Trial 2, m2, is faster (70.0 tok/s in the mean of 4 launches), but" in strict.text
    asked = verdict(trials, Gate(allow_lossy=True))
    assert (asked.advised, asked.excluded) == (2, ())


def test_one_that_writes_something_else_from_the_first_words_on_does_not_win() -> None:
    other = {key: f"Banana {text}" for key, text in TEXTS.items()}
    found = verdict(night(texts=other))
    assert found.advised == 1
    assert "this is no rounding" in found.text


def test_a_late_difference_is_said_and_excludes_nothing() -> None:
    late = dict(TEXTS)
    late["p3#0"] = late["p3#0"][:200] + "and then it says something else altogether"
    found = verdict(night(texts=late))
    assert found.advised == 2
    assert "Trial 2: 1 of 10 greedy outputs differ from the baseline's" in found.text


def test_a_slow_lossy_one_is_not_mentioned() -> None:
    trials = night(lossy=(THRESHOLD,))
    trials[2] = writing(trial(2, [55.0], m=2), TEXTS, (THRESHOLD,))
    assert "allow_lossy" not in verdict(trials).text


def test_who_may_not_win_is_no_finalist() -> None:
    budget = BudgetSpec(trials=3, finalists=2, confirm_launches=2)
    trials = night(lossy=(THRESHOLD,))
    assert shortlist(trials, budget, OBJECTIVE, Gate().admits(trials)).finalists == (1,)
    assert shortlist(trials, budget, OBJECTIVE, Gate(True).admits(trials)).finalists == (2, 1)


def test_with_only_lossy_ones_there_is_nothing_else() -> None:
    trials = night(lossy=(THRESHOLD,))
    found = verdict([trials[0], trials[2].model_copy(update={"number": 1})])
    assert found.kind is VerdictKind.NO_GAIN
    assert "nothing else that writes the same text" in found.text


def excluded_at(value: float, **changes: object) -> str:
    """The verdict where the only other configuration is lossy and did `value` against 50.0."""
    rival = writing(trial(1, [value], m=1), TEXTS, (THRESHOLD,))
    launches = tuple(launch.model_copy(update=changes) for launch in rival.launches)
    return verdict([writing(trial(0, [50.0]), TEXTS), rival.model_copy(update={"launches": launches})]).text


def test_what_lies_within_the_noise_of_a_launch_is_not_called_faster() -> None:
    assert "Trial 1, m1, is as fast (50.2 tok/s in its single launch), but" in excluded_at(50.2)
    assert "is as fast (50.7" in excluded_at(50.7)
    assert "is faster (50.8" in excluded_at(50.8)  # with nothing seen twice, starts are taken to differ by 1.5 %


def test_an_estimate_that_is_left_out_is_called_one() -> None:
    text = excluded_at(60.0, estimated="stopped after 1 of 5 prompts")
    assert "is faster (≈ 60.0 tok/s estimated in its single launch), but" in text
