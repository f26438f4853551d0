"""Several studies beside one another: what changed, how sure that is, and what must not be compared."""

from __future__ import annotations

import math
import random

import pytest

from analysis.comparing.differences import Weight, differences
from analysis.comparing.document import comparison
from analysis.comparing.numbers import Side, change, matched, overall, replaced
from analysis.page.html import html
from analysis.page.markdown import markdown
from analysis.reading import Reading, reading_of
from sweeper.errors import ConfigError
from sweeper.records import TrialRecord
from sweeper.spec import ServerConfig
from tests.analysis.builders import OBJECTIVE, measured, new_night, ngram, plain_config, simplicity, trial
from tests.analysis.large import large_night, stored
from tests.analysis.studies import changed, confirmed, section


def scaled(trials: list[TrialRecord], factor: float, **provenance: str) -> list[TrialRecord]:
    """The same night on a host that is so much faster."""

    def faster(record: TrialRecord) -> TrialRecord:
        launches = tuple(
            changed(
                n,
                metrics={**n.metrics, **({OBJECTIVE: n.metrics[OBJECTIVE] * factor} if n.ok else {})},
                provenance={**n.provenance, **provenance},
            )
            for n in record.launches
        )
        return record.model_copy(update={"launches": launches})

    return [faster(record) for record in trials]


def reading(trials: list[TrialRecord], name: str, **fingerprint: str) -> Reading:
    return reading_of(stored(trials, name, **fingerprint), simplicity)


def sides(*readings: Reading) -> list[Side]:
    return [Side(each.name, each) for each in readings]


def test_a_faster_version_is_told_with_its_interval_and_what_else_changed() -> None:
    before = reading(large_night(40), "before")
    after = reading(
        scaled(large_night(40, seed=8), 1.1, gpu_driver="580.1"), "after", **{"engine.version": "0.5.23"}
    )
    report = comparison([before, after])
    verdict = section(markdown(report), "Verdict")
    assert "Careful: the studies differ in engine.version, gpu_driver." in verdict
    assert "The best of after is " in verdict
    assert "% faster than the best of before" in verdict
    assert "Without speculation after is" in verdict
    assert "| engine.version | 0.5.15 | 0.5.23 |" in section(markdown(report), "What differs")
    assert 'class="statement careful"' in html(report)


def test_the_same_night_twice_shows_no_difference() -> None:
    report = markdown(comparison([reading(large_night(40), "a"), reading(large_night(40), "b")]))
    assert "0.0 % faster than the best of a" in report
    assert "not significant" in report
    assert "Nothing of what the studies have written down." in report
    assert "0 significantly faster in b, 0 significantly slower" in report


def test_an_interval_holds_the_true_change_nine_times_of_ten() -> None:
    held = 0
    for seed in range(100):
        chance, night = random.Random(seed), new_night()
        noisy = [[measured(night, 40 * math.exp(chance.gauss(0, 0.01))) for _ in range(4)] for _ in range(2)]
        one, other = (reading([trial(0, plain_config(), launches)], f"s{n}") for n, launches in enumerate(noisy))
        first, second = sides(one, other)
        found = change(first, second, (one.by_number[0], other.by_number[0]))
        assert found is not None
        held += found.low <= 1.0 <= found.high
    assert 82 <= held <= 99


def test_one_launch_each_still_has_an_interval() -> None:
    night = new_night()
    one, other = (
        reading(
            [trial(0, plain_config(), [measured(night, v)]), trial(1, ngram(3, 4), [measured(night, 1.2 * v)])], n
        )
        for n, v in (("a", 40.0), ("b", 42.0))
    )
    first, second = sides(one, other)
    found = change(first, second, (one.by_number[1], other.by_number[1]))
    assert found is not None
    assert found.ratio == pytest.approx(1.05)
    assert found.low < 1.05 < found.high
    assert found.high / found.low > 1.05


def test_other_prompts_are_not_compared_silently() -> None:
    one = reading(large_night(12), "a")
    other = reading(large_night(12), "b", **{"workload.prompts": "9 prompts, sha256 00"})
    found = differences(sides(one, other))
    assert [(each.name, each.weight) for each in found] == [("workload.prompts", Weight.WORK)]
    verdict = section(markdown(comparison([one, other])), "Verdict")
    assert "did not do the same work (workload.prompts differ): their numbers do not compare." in verdict
    assert "which says nothing." in verdict


def test_what_was_searched_is_no_reason_for_care() -> None:
    one = reading(large_night(12), "a", **{"space.topk": "choice(1, 2)"})
    other = reading(large_night(12), "b", **{"space.topk": "choice(1, 2, 4)"})
    assert {each.weight for each in differences(sides(one, other))} == {Weight.SEARCH}
    assert "Careful" not in markdown(comparison([one, other]))


def test_studies_ranked_by_other_numbers_are_refused() -> None:
    one, other = reading(large_night(12), "a"), reading(large_night(12), "b", objective="decode_throughput")
    with pytest.raises(ConfigError, match="ranked by decode_throughput and by output_throughput"):
        comparison([one, other])


def drafted(number: int, draft: str, value: float) -> TrialRecord:
    config = ServerConfig(flags={**ngram(3, number).flags, "draft": draft})
    return trial(number, config, [measured(new_night(), value)])


def test_configurations_are_paired_apart_from_a_replaced_drafter() -> None:
    base = [trial(0, plain_config(), [measured(new_night(), 40.0)])]
    one = reading([*base, *(drafted(n, "old", 50.0 + n) for n in (1, 2, 3))], "a")
    other = reading([*base, *(drafted(n, "new", 1.1 * (50.0 + n)) for n in (2, 3, 4))], "b")
    first, second = sides(one, other)
    assert replaced(first, second) == {"draft": (frozenset({"old"}), frozenset({"new"}))}
    pairs = matched(first, second)
    assert sorted((p.earlier.number, p.later.number) for p in pairs) == [(2, 2), (3, 3)]
    mean = overall(pairs)
    assert mean is not None
    assert mean.ratio == pytest.approx(1.1)
    assert "draft: old became new" in markdown(comparison([one, other]))


def test_the_average_of_pairs_is_geometric() -> None:
    base = [trial(0, plain_config(), [measured(new_night(), 40.0)])]
    one = reading([*base, drafted(1, "x", 50.0), drafted(2, "x", 50.0)], "a")
    other = reading([*base, drafted(1, "x", 100.0), drafted(2, "x", 25.0)], "b")
    mean = overall(matched(*sides(one, other)))
    assert mean is not None
    assert math.isclose(mean.ratio, 1.0)
    assert mean.low < 0.5 < 2 < mean.high


def test_studies_of_one_name_are_told_apart_by_their_hosts() -> None:
    here = reading(large_night(12), "night")
    there = reading([t.model_copy(update={"launches": tuple(changed(n, host="gpu2") for n in t.launches)})
                     for t in large_night(12)], "night")  # fmt: skip
    assert comparison([here, there]).title == "night on gpu2 against night on gpu1"
    assert comparison([here, here]).title == "night on gpu1 (2) against night on gpu1 (1)"


def test_a_study_that_measured_nothing_says_so() -> None:
    empty = reading([], "empty")
    report = markdown(comparison([reading(large_night(12), "a"), empty]))
    assert "empty: nothing to compare has been measured." in report


def test_hostile_names_stay_text() -> None:
    night = new_night()
    trials = [confirmed(night, 0, (40.0, 40.2)), confirmed(night, 4, (50.0, 50.4))]
    report = html(comparison([reading(trials, "<script>a"), reading(trials, "b | **c**")]))
    assert "<script>" not in report
    assert "<strong>c</strong>" not in report
