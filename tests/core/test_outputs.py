"""Whether a configuration writes what the baseline writes, told from marks of the texts alone."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeper.outputs import OutputComparison, compare_outputs
from sweeper.records import LaunchRecord, Purpose, TrialRecord, TrialState, WorkloadResult
from sweeper.spec import ServerConfig
from sweeper.text_marks import divergence, length_of, marks

WORDS = "the cat sat on the mat by the door and the dog lay on the log by the gate while the rain fell " * 12
Texts = Mapping[str, str]


def story(number: int) -> str:
    """A text of 600 characters that no other number has."""
    return f"Story {number}. {WORDS}"[:600]


def flipped(text: str, at: int) -> str:
    """The same until `at`; then it goes on otherwise, as after a near-tie."""
    return text[:at] + f"~{text[at:][::-1]}"


def answers(count: int = 5, passes: int = 2) -> dict[str, str]:
    return {f"p{n}#{r}": story(10 * r + n) for r in range(passes) for n in range(count)}


def but(texts: Texts, changed: Mapping[str, int]) -> dict[str, str]:
    """`texts`, of which some differ from a character on."""
    return {**texts, **{key: flipped(texts[key], at) for key, at in changed.items()}}


def launch(texts: Texts, others: Mapping[str, Texts] | None = None) -> LaunchRecord:
    kept = {key: marks(text) for key, text in texts.items()}
    now = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    return LaunchRecord(
        trial_number=0,
        launch_number=0,
        purpose=Purpose.SEARCH,
        requested=ServerConfig(),
        canonical=ServerConfig(),
        host="gpu1",
        started_at=now,
        ended_at=now,
        outputs=kept,
        others={
            name: WorkloadResult(outputs={key: marks(text) for key, text in written.items()})
            for name, written in (others or {}).items()
        },
    )


def trial(number: int, launches: Sequence[LaunchRecord]) -> TrialRecord:
    config = ServerConfig()
    return TrialRecord(
        number=number,
        key=config.key(),
        state=TrialState.COMPLETE,
        requested=config,
        canonical=config,
        launches=tuple(launches),
    )


def compared(ours: Sequence[Texts], theirs: Sequence[Texts]) -> OutputComparison:
    return compare_outputs(
        trial(1, [launch(texts) for texts in ours]), trial(0, [launch(texts) for texts in theirs])
    )


# Marks.


@given(text=st.text(max_size=300))
def test_a_text_does_not_part_from_itself(text: str) -> None:
    assert divergence(marks(text), marks(text)) is None


@given(start=st.text(max_size=200), one=st.text(max_size=100), other=st.text(max_size=100))
def test_the_first_difference_lies_where_the_marks_say(start: str, one: str, other: str) -> None:
    a, b = start + one, start + other
    found = divergence(marks(a), marks(b))
    equal = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    if a == b:
        assert found is None
    else:
        assert found is not None
        low, high = found
        assert low <= equal < high
        assert high <= max(1, 2 * low + 1)  # located within a factor of two
    assert divergence(marks(b), marks(a)) == found


def test_half_a_surrogate_pair_has_marks() -> None:
    assert divergence(marks("a\ud800"), marks("a\ud801")) == (1, 2)


def test_marks_are_short() -> None:
    assert len(marks("word " * 800)) < 120


def test_marks_of_earlier_records_are_still_compared() -> None:
    """They begin with 16 characters: of a shorter text there is one digest, of all of it."""
    new = marks(story(1))
    length, _, digests = new.partition(":")
    old = f"{length}:{digests[4 * 8 :]}"
    assert length_of(old) == length_of(new) == 600
    assert divergence(old, new) is None
    assert divergence(old, marks(flipped(story(1), 200))) == (128, 256)
    yes = f"3:{marks('Yes')[-8:]}"
    assert divergence(yes, marks("Yes")) is None
    assert divergence(yes, marks("Yes.")) == (0, 4)


@pytest.mark.parametrize("text", ["", "5", "5:", "5:zz", "5:0123456", "-1:01234567", "40:01234567", "9" * 5000])
def test_what_are_no_marks_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match="no marks of a text"):
        divergence(text, marks("a"))


# Comparisons.


def test_equal_texts_leave_nothing_to_say() -> None:
    found = compared([answers()], [answers(), answers()])
    assert found == OutputComparison(num_compared=10, own_compared=10)


def test_only_requests_with_the_same_text_are_compared() -> None:
    assert compared([answers(passes=4)], [answers(count=3, passes=1)]).num_compared == 3


def test_near_ties_of_a_gpu_are_a_flag_and_no_corruption() -> None:
    """EAGLE on a GPU: 30 of 80 greedy texts flip somewhere, as rounding decides a near-tie."""
    texts = answers(count=40)
    late = {key: 90 + 7 * n for n, key in enumerate(list(texts)[:30])}
    found = compared([but(texts, late)], [texts, texts])
    assert (found.num_different, found.num_compared, found.own_different) == (30, 80, 0)
    assert (found.beyond_own, found.corrupt, found.first_difference) == (True, False, 64)
    assert found.text == (
        "30 of 80 greedy outputs differ from the baseline's, the earliest after 64 characters or a few more; "
        "the baseline repeated itself in all of 80: more than by chance; near-ties that rounding decides do that, "
        "and so may a fault"
    )


def test_one_late_flip_is_the_configurations_where_the_baseline_always_repeats_itself() -> None:
    """llama.cpp: the baseline writes the same each time, n-grams another word after 399 characters."""
    texts = answers()
    found = compared([but(texts, {"p2#1": 399})], [texts, texts])
    assert (found.num_different, found.beyond_own, found.corrupt) == (1, True, False)
    assert found.first_difference == 256


def test_a_baseline_that_differs_from_itself_excuses_as_much() -> None:
    texts = answers()
    again = but(texts, {"p0#0": 200, "p1#0": 300, "p3#1": 120})
    found = compared([but(texts, {"p2#0": 250, "p4#0": 90, "p4#1": 500})], [texts, again])
    assert (found.num_different, found.own_different, found.beyond_own) == (3, 3, False)
    assert "the baseline differs from itself in 3 of 10" in found.text


def test_far_more_differences_than_the_baselines_own_are_told() -> None:
    texts = answers()
    found = compared([but(texts, dict.fromkeys(texts, 200))], [texts, but(texts, {"p0#0": 300})])
    assert (found.num_different, found.own_different, found.beyond_own) == (10, 1, True)


def test_an_engine_that_flips_now_and_then_is_not_blamed_on_who_was_launched_often() -> None:
    """Each launch, the baseline's too, differs in one text of ten: in ten launches nearly all have differed."""
    texts = answers()
    keys = list(texts)
    ours = [but(texts, {keys[n]: 200}) for n in range(10)]
    theirs = [texts, but(texts, {keys[3]: 300}), but(texts, {keys[5]: 300})]
    found = compared(ours, theirs)
    assert (found.num_different, found.own_different, found.beyond_own) == (10, 2, False)


def as_of_an_earlier_version(record: LaunchRecord) -> LaunchRecord:
    """Its marks begin with 16 characters."""
    kept = (marked.partition(":") for marked in record.outputs.values())
    older = (f"{length}:{digests[4 * 8 :]}" for length, _, digests in kept)
    return record.model_copy(update={"outputs": dict(zip(record.outputs, older, strict=True))})


def test_a_study_of_an_earlier_version_goes_on_with_the_same_texts() -> None:
    now, earlier = launch(answers()), as_of_an_earlier_version(launch(answers()))
    for ours, theirs in (([now], [earlier, now]), ([earlier], [now, earlier]), ([now, earlier], [earlier])):
        found = compare_outputs(trial(1, ours), trial(0, theirs))
        assert (found.num_different, found.own_different, found.beyond_own, found.corrupt) == (0, 0, False, False)
    other = compare_outputs(trial(1, [launch(but(answers(), {"p0#0": 200}))]), trial(0, [earlier, now]))
    assert (other.num_different, other.beyond_own) == (1, True)


def test_what_any_launch_of_the_baseline_wrote_is_no_difference() -> None:
    texts = answers()
    again = but(texts, {"p0#0": 200})
    assert compared([again], [texts, again]).num_different == 0


def test_with_one_launch_of_the_baseline_nothing_is_beyond_its_own() -> None:
    texts = answers()
    found = compared([but(texts, {"p0#0": 200})], [texts])
    assert (found.num_different, found.own_compared, found.beyond_own) == (1, 0, False)
    assert "has not been launched twice yet" in found.text


def test_a_wrong_tree_mask_is_corruption_even_before_the_baseline_is_repeated() -> None:
    texts = answers(passes=1)
    garbage = but(texts, {"p0#0": 8, "p1#0": 21, "p2#0": 40})
    for baseline in ([texts], [texts, texts]):
        found = compared([garbage], baseline)
        assert found.corrupt
        assert "the server writes something else" in found.text


@pytest.mark.parametrize(("at", "corrupt"), [(3, True), (36, False)])
def test_the_end_of_a_short_answer_is_not_its_first_words(at: int, corrupt: bool) -> None:
    short = {key: text[:39] for key, text in answers().items()}
    assert compared([but(short, dict.fromkeys(short, at))], [short, short]).corrupt is corrupt


def test_short_answers_that_end_a_word_earlier_are_not_corrupt() -> None:
    short = {key: text[:39] for key, text in answers().items()}
    assert not compared([{key: text[:34] for key, text in short.items()}], [short, short]).corrupt


@pytest.mark.parametrize(("count", "corrupt"), [(5, False), (6, True)])
def test_most_texts_must_differ_early(count: int, corrupt: bool) -> None:
    texts = answers()
    assert compared([but(texts, dict.fromkeys(list(texts)[:count], 8))], [texts, texts]).corrupt is corrupt


@pytest.mark.parametrize(
    ("num_texts", "at", "corrupt"), [(2, 3, True), (1, 3, True), (2, 20, False), (1, 20, False)]
)
def test_of_few_texts_all_must_differ_at_once(num_texts: int, at: int, corrupt: bool) -> None:
    texts = answers(count=num_texts, passes=1)
    assert compared([but(texts, dict.fromkeys(texts, at))], [texts]).corrupt is corrupt


SHORT = ("Yes", "No", "Paris", "4", "B")


def said(*texts: str) -> dict[str, str]:
    return {f"p{n}#0": text for n, text in enumerate(texts)}


@pytest.mark.parametrize(
    "ours",
    [
        ("Yes.", "No.", "Paris.", "4.", "B."),
        ("Yes\n", "No\n", "Paris\n", "4\n", "B\n"),
        ("Yes, it is", "No, not so", "Paris, in France", "4", "B) Paris"),
    ],
)
def test_where_a_short_answer_ends_is_no_corruption(ours: tuple[str, ...]) -> None:
    """One near-tie that all of them share: to end there or not. It differs, and that is told."""
    for texts, other in ((said(*SHORT), said(*ours)), (said(*ours), said(*SHORT))):
        found = compared([other], [texts, texts])
        assert not found.corrupt
        assert found.num_different >= 4


@pytest.mark.parametrize(
    "ours",
    [
        ("!!!", "!!", "!!!!!", "!", "!"),
        ("!" * 400,) * 5,
        ("", "", "", "", ""),
        ("No", "Yes", "Rome", "5", "A"),
    ],
)
def test_short_answers_of_other_words_are_corruption(ours: tuple[str, ...]) -> None:
    assert compared([said(*ours)], [said(*SHORT)] * 2).corrupt


@pytest.mark.parametrize("ours", ["", "S", "Story", "Story 1"])
def test_long_answers_that_end_after_their_first_words_are_corruption(ours: str) -> None:
    texts = answers()
    assert compared([dict.fromkeys(texts, ours)], [texts, texts]).corrupt


@pytest.mark.parametrize(
    ("before", "after", "corrupt"),
    [
        ("Yes", "Yes.", False),
        ("Yes", "No", False),
        ("It is Paris.", "Paris.", False),
        ("Yes", "!" * 400, True),
        (story(1), "Yes", True),
        (story(1), f"Sure. {story(1)}", True),
    ],
)
@pytest.mark.parametrize("count", [1, 2])
def test_one_or_two_short_answers_say_little(before: str, after: str, corrupt: bool, count: int) -> None:
    assert compared([said(*[after] * count)], [said(*[before] * count)]).corrupt is corrupt


def test_one_of_two_texts_is_not_all() -> None:
    texts = answers(count=2, passes=1)
    assert not compared([but(texts, dict.fromkeys(list(texts)[:1], 3))], [texts]).corrupt


def test_early_flips_of_the_baseline_itself_excuse_early_flips() -> None:
    texts = answers()
    wild = but(texts, dict.fromkeys(list(texts)[:6], 10))
    assert not compared([but(texts, dict.fromkeys(texts, 20))], [texts, wild]).corrupt


def test_an_answer_cut_short_parts_at_its_end() -> None:
    found = compared([{"p#0": story(1)[:300]}], [{"p#0": story(1)}])
    assert (found.num_different, found.first_difference) == (1, 256)


def test_launches_repeat_each_other_and_count_once() -> None:
    texts = answers(count=4, passes=1)
    same = but(texts, {"p0#0": 200})
    found = compared([same] * 5, [texts] * 5)
    assert (found.num_compared, found.num_different, found.beyond_own) == (4, 1, False)


def test_the_baseline_is_not_compared_with_itself_as_a_trial() -> None:
    texts = answers()
    base = trial(0, [launch(texts), launch(but(texts, {"p0#0": 99}))])
    found = compare_outputs(base, base)
    assert (found.num_compared, found.own_compared, found.own_different, found.text) == (0, 10, 1, "")


def test_further_workloads_count_under_their_own_names() -> None:
    ours = trial(1, [launch({"p#0": story(1)}, {"busy": {"p#0": flipped(story(2), 200)}})])
    base = trial(0, [launch({"p#0": story(1)}, {"busy": {"p#0": story(2)}})])
    found = compare_outputs(ours, base)
    assert (found.num_compared, found.num_different) == (2, 1)


def test_a_record_that_cannot_be_read_is_not_compared() -> None:
    damaged = launch({}).model_copy(update={"outputs": {"p#0": "what is this"}})
    assert compare_outputs(trial(1, [damaged]), trial(0, [launch({"p#0": story(1)})])) == OutputComparison()
