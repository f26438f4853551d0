"""The space under an engine's rules, counted."""

from __future__ import annotations

from sweeper.planning.survey import NUM_SAMPLES, survey
from sweeper.spec import Choice, Interval, Parameter, ServerConfig, SpaceSpec
from tests.core.drafting import BASE, ENGINE, FACTS, SPACE, candidates_of

BASELINE = ENGINE.baseline(BASE, FACTS)


def chains(tokens: tuple[int, ...], topk: tuple[int, ...] = (1,)) -> SpaceSpec:
    return SpaceSpec(
        parameters=(
            Parameter(name="speculative_algorithm", domain=Choice(values=("EAGLE3",))),
            Parameter(name="speculative_num_steps", domain=Choice(values=(2, 3))),
            Parameter(name="speculative_eagle_topk", domain=Choice(values=topk)),
            Parameter(name="speculative_num_draft_tokens", domain=Choice(values=tokens)),
        )
    )


def test_every_configuration_is_illegal_the_same_as_another_or_counted_once() -> None:
    found = survey(candidates_of(), BASELINE, ENGINE.speculation())
    assert found.asked == found.looked_at == 292
    assert found.product == 2 * 8 * 3 * 3 * 2 * 2
    assert found.illegal + found.same + found.distinct == found.asked
    enumerated = candidates_of().enumerated
    assert enumerated is not None
    assert found.distinct == len(enumerated)
    assert found.to_try == found.distinct - found.has_baseline


def test_a_rule_is_counted_under_one_name_whatever_the_numbers_with_an_example_that_breaks_it() -> None:
    found = survey(candidates_of(), BASELINE, ENGINE.speculation())
    trees = next(rule for rule in found.rules if "a tree of N steps with topk N" in rule.rule)
    steps, topk, tokens = range(1, 9), (2, 4), (4, 8, 16)
    broken = sum(s * k + 1 < t for s in steps for k in topk for t in tokens)
    assert trees.count == broken * 4  # two values of each of the other two parameters
    assert "topk" in trees.example
    assert "N" not in trees.reason.split("a tree")[1]
    assert [rule.count for rule in found.rules] == sorted((r.count for r in found.rules), reverse=True)


def test_what_the_short_filter_would_have_missed_is_what_none_of_its_spellings_passes() -> None:
    found = survey(candidates_of(chains((8, 16))), BASELINE, ENGINE.speculation())
    assert found.distinct == 2  # chains of 2 and of 3 steps: their draft tokens are rewritten
    assert found.short_filter is not None
    assert found.short_filter.missed == 2
    assert "steps2" in found.short_filter.example
    kept = survey(candidates_of(chains((3, 8))), BASELINE, ENGINE.speculation()).short_filter
    assert kept is not None
    assert (kept.missed, kept.example) == (0, "")


def test_what_the_short_filter_lets_through_and_launches_twice_is_counted() -> None:
    found = survey(candidates_of(chains((2, 3, 4), topk=(1, 2))), BASELINE, ENGINE.speculation())
    assert found.short_filter is not None
    assert (
        found.short_filter.let_through == 3
    )  # trees with no more draft tokens than steps: (2, 2), (3, 2), (3, 3)
    assert found.short_filter.repeated == 3  # chains: 2 and 3 tokens for 2 steps; 2, 3 and 4 for 3 steps


def test_a_space_without_those_flags_has_no_short_filter() -> None:
    space = SpaceSpec(parameters=(Parameter(name="disable_cuda_graph", domain=Choice(values=(False, True))),))
    found = survey(candidates_of(space), BASELINE, ENGINE.speculation())
    assert found.short_filter is None
    assert found.has_baseline
    assert found.to_try == 1


def test_a_continuous_parameter_makes_the_space_endless_and_the_counts_those_of_a_sample() -> None:
    real = Parameter(name="mem_fraction_static", domain=Interval(low=0.7, high=0.9))
    found = survey(candidates_of(SpaceSpec(parameters=(*SPACE.parameters, real))), BASELINE, ENGINE.speculation())
    assert found.asked is None
    assert found.product is None
    assert found.is_sample
    assert found.looked_at == NUM_SAMPLES
    assert found.continuous == ("mem_fraction_static",)
    assert found.to_try is None
    assert found.rules


def test_more_than_can_be_listed_is_counted_and_sampled() -> None:
    many = Parameter(name="chunked_prefill_size", domain=Choice(values=tuple(range(512, 1024))))
    found = survey(candidates_of(SpaceSpec(parameters=(*SPACE.parameters, many))), BASELINE, ENGINE.speculation())
    assert found.asked == 292 * 512
    assert found.is_sample
    assert found.short_filter is None


def test_the_engine_without_drafts_in_steps_has_no_short_filter() -> None:
    assert survey(candidates_of(), ServerConfig(), None).short_filter is None
