"""Who writes what the baseline writes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from analysis.reading import read
from analysis.sections.lossless import lossless
from sweeper.records import LaunchRecord
from sweeper.text_marks import marks
from tests.analysis import builders as b
from tests.analysis.studies import text_of as shown

TEXTS = {f"p{number}#0": f"The answer to question {number} is as follows. " * 9 for number in range(12)}
FLIPPED = {**TEXTS, "p3#0": TEXTS["p3#0"][:200] + "Otherwise, " + TEXTS["p3#0"][200:]}
OTHER = {key: f"Something else, {key}: {text[::-1]}" for key, text in TEXTS.items()}


def wrote(night: b.Night, texts: Mapping[str, str], **changes: object) -> LaunchRecord:
    outputs = {key: marks(text) for key, text in texts.items()}
    return b.measured(night, 40.0).model_copy(update={"outputs": outputs, **changes})


def text_of(folder: Path, *launches: list[LaunchRecord], **facts: str) -> str:
    trials = [
        b.trial(number, b.ngram(3, number) if number else b.plain_config(), made)
        for number, made in enumerate(launches)
    ]
    known = {**b.FINGERPRINT, **{name.replace("__", "."): value for name, value in facts.items()}}
    return shown(lossless(read(b.fill(b.in_memory(folder), trials, known), b.simplicity)))


def test_equal_texts_are_one_sentence(tmp_path: Path) -> None:
    night = b.new_night()
    text = text_of(tmp_path, [wrote(night, TEXTS), wrote(night, TEXTS)], [wrote(night, TEXTS)])
    assert "1 of 1 configuration wrote exactly what the baseline wrote." in text
    assert "The baseline repeated itself in all of 12 outputs." in text
    assert "|" not in text


def test_differences_are_shown_with_their_place_the_worst_first(tmp_path: Path) -> None:
    night = b.new_night()
    base = [wrote(night, TEXTS), wrote(night, TEXTS)]
    text = text_of(tmp_path, base, [wrote(night, FLIPPED)], [wrote(night, OTHER)], [wrote(night, TEXTS)])
    assert "1 of 3 configurations wrote exactly" in text
    assert "| 2 | ngram-simple n3 m2 | 12 | 12 | 0 | another text from the first words on" in text
    assert "| 1 | ngram-simple n3 m1 | 1 | 12 | 128 | more than the baseline differs from itself" in text
    assert text.index("| 2 |") < text.index("| 1 | ngram")


def test_a_baseline_that_was_launched_once_says_nothing_of_itself(tmp_path: Path) -> None:
    night = b.new_night()
    text = text_of(tmp_path, [wrote(night, TEXTS)], [wrote(night, FLIPPED)])
    assert "is not known: it was launched once" in text
    assert "| not significantly more than the baseline differs from itself |" in text


def test_drawn_texts_are_not_compared_and_why_is_said(tmp_path: Path) -> None:
    night = b.new_night()
    drawn = [wrote(night, {})]  # as is measured above 0: no texts are kept
    text = text_of(tmp_path, drawn, drawn, workload__temperature="0.7")
    assert "Not compared: workload.temperature is 0.7. Above 0 texts are drawn." in text
    assert "|" not in text


def test_a_further_workload_whose_texts_are_drawn_is_named(tmp_path: Path) -> None:
    night = b.new_night()
    launches = [wrote(night, TEXTS)], [wrote(night, TEXTS)]
    text = text_of(tmp_path, *launches, workload__temperature="0.0", more_workloads__busy__temperature="1.0")
    assert "1 of 1 configuration wrote exactly" in text
    assert "Not compared: more_workloads.busy.temperature is 1.0." in text


def test_a_further_workload_that_is_greedy_is_compared_though_the_first_is_not(tmp_path: Path) -> None:
    night = b.new_night()
    temperatures = {"workload__temperature": "0.7", "more_workloads__cold__temperature": "0"}
    text = text_of(tmp_path, [wrote(night, TEXTS)], [wrote(night, OTHER)], **temperatures)
    assert "Not compared: workload.temperature is 0.7." in text
    assert "another text from the first words on" in text


def test_a_faster_one_that_may_not_win_is_named_with_the_reason(tmp_path: Path) -> None:
    night = b.new_night()
    fast = b.measured(night, 60.0).model_copy(update={"lossy": ("kv fp8: rounds",)})
    text = text_of(tmp_path, [wrote(night, {})], [fast])
    assert "- trial 1, ngram-simple n3 m1, faster: 60.0 tok/s in 1 launch (kv fp8: rounds)" in text


def test_settings_that_may_change_the_text_are_listed_with_their_trials(tmp_path: Path) -> None:
    night = b.new_night()
    rounding = ("cache_type_k q4_0: keys are rounded",)
    text = text_of(
        tmp_path,
        [wrote(night, {})],
        [wrote(night, {}, lossy=rounding)],
        [wrote(night, {}, lossy=rounding)],
        [wrote(night, {})],
    )
    assert "- cache_type_k q4_0: keys are rounded (trials 1, 2)" in text
    assert "no winner unless `verdict.allow_lossy=true`" in text


def test_without_texts_and_lossy_settings_there_is_no_such_part(tmp_path: Path) -> None:
    night = b.new_night()
    assert text_of(tmp_path, [wrote(night, {})], [wrote(night, {})]) == ""
