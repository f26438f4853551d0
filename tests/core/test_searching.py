"""Which sampler a sweep gets, why, and which wish is refused with what would be right."""

from __future__ import annotations

import importlib.util

import pytest

from sweeper.engines.registry import engine_for
from sweeper.objective import ObjectiveSpec, Term
from sweeper.searching.choice import sampler_mistakes, search_of
from sweeper.spec import Choice, Domain, FlagValue, Interval, IntRange, Parameter, SpaceSpec, SweepSpec
from tests.core.specs import sweep_spec

EAGLE: dict[str, Domain] = {
    "speculative_algorithm": Choice(values=("EAGLE3", "none")),
    "speculative_num_steps": IntRange(low=1, high=8),
    "speculative_eagle_topk": Choice(values=(1, 2, 4)),
    "speculative_num_draft_tokens": Choice(values=(2, 4, 8)),
    "disable_cuda_graph": Choice(values=(False, True)),
}


def spec_of(
    sampler: str = "auto", engine: str = "sglang", metric: str = "output_throughput", **changes: Domain | FlagValue
) -> SweepSpec:
    """EAGLE3's space; a change is a domain, or a value that is fixed."""
    given = {**EAGLE, **changes}
    domains = {name: domain for name, domain in given.items() if isinstance(domain, Choice | IntRange | Interval)}
    flags = {name: value for name, value in given.items() if not isinstance(value, Choice | IntRange | Interval)}
    space = SpaceSpec(parameters=tuple(Parameter(name=name, domain=domain) for name, domain in domains.items()))
    spec = sweep_spec(engine, space, flags, sampler)
    return spec.model_copy(update={"objective": ObjectiveSpec(terms=(Term(workload="w", metric=metric),))})


def test_the_physics_searches_what_it_knows() -> None:
    searched = ", ".join(list(EAGLE)[:4])
    assert search_of(spec_of(), engine_for("sglang")).text == f"search: physics ({searched})"


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        (spec_of(engine="llamacpp"), "nothing is known of how llamacpp drafts"),
        (spec_of(metric="mean_prompt_throughput"), "the objective is mean_prompt_throughput"),
        (spec_of(mem_fraction_static=Interval(low=0.7, high=0.9)), "mem_fraction_static is an interval"),
        (spec_of(chunked_prefill_size=IntRange(low=1, high=2000)), "chunked_prefill_size has 2,000 values"),
        (
            spec_of(speculative_algorithm=Choice(values=("EAGLE3", "NGRAM"))),
            "speculative_algorithm NGRAM does not draft as EAGLE",
        ),
        (spec_of(speculative_algorithm="none"), "no value of speculative_algorithm speculates"),
        (spec_of(speculative_adaptive=Choice(values=(False, True))), "speculative_adaptive changes the number"),
        (
            spec_of(speculative_num_steps=Choice(values=(0, 3))),
            "speculative_num_steps has values that are no whole",
        ),
        (
            spec_of(speculative_num_steps=3, speculative_eagle_topk=1, speculative_num_draft_tokens=4),
            "the space searches none of speculative_num_steps",
        ),
    ],
)
def test_everything_else_falls_to_tpe_with_the_reason(spec: SweepSpec, reason: str) -> None:
    engine = engine_for(spec.engine.name)
    search = search_of(spec, engine)
    assert search.sampler == "tpe"
    assert search.text.startswith(f"search: tpe (not physics: {reason}")
    asked = spec.model_copy(update={"study": spec.study.model_copy(update={"sampler": "physics"})})
    (mistake,) = sampler_mistakes(asked, engine)
    assert mistake.startswith(f"study.sampler: 'physics' does not know this sweep: {reason}")
    assert mistake.endswith("auto or tpe")
    assert sampler_mistakes(spec, engine) == []


def test_a_fixed_number_of_steps_is_known_as_well() -> None:
    assert search_of(spec_of(speculative_num_steps=3), engine_for("sglang")).sampler == "physics"


@pytest.mark.parametrize("name", ["grid", "brute_force"])
def test_a_list_is_only_walked_where_there_can_be_one(name: str) -> None:
    engine = engine_for("sglang")
    endless = spec_of(name, mem_fraction_static=Interval(low=0.7, high=0.9))
    assert f"study.sampler: '{name}' needs listed values" in sampler_mistakes(endless, engine)[0]
    long = spec_of(name, chunked_prefill_size=IntRange(low=1, high=2000))
    assert "would list 576,000 combinations, more than 20,000" in sampler_mistakes(long, engine)[0]
    assert sampler_mistakes(spec_of(name), engine) == []


def test_the_gaussian_process_without_its_library_is_told_with_the_way_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine = engine_for("sglang")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    (mistake,) = sampler_mistakes(spec_of("gp"), engine)
    assert mistake.startswith("study.sampler: 'gp' needs torch, which is not installed here: pip install torch")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    assert sampler_mistakes(spec_of("gp"), engine) == []
