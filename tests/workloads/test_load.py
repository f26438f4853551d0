"""What is sent in each pass: the same in every launch, and in no pass what a cache knows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pydantic import ValidationError

from sweeper.measuring.load import Load, loads_of, once_each
from sweeper.workload_spec import MAX_REQUESTS, Prompt, WorkloadSpec
from tests.fakes import load_of


def workload(name: str = "w", count: int = 3, **changed: object) -> WorkloadSpec:
    settings: dict[str, object] = {
        "name": name,
        "prompts": tuple(Prompt(id=f"p{n}", text=f"text {n}") for n in range(count)),
        "max_tokens": 8,
        "temperature": 0.0,
        "seed": 0,
        "repeats": 2,
        "max_repeats": 4,
        "request_timeout_s": 60.0,
    }
    return WorkloadSpec.model_validate(settings | changed)


def texts(load: Load) -> list[str]:
    return [prompt.text for prompts in load.passes for prompt in prompts]


def once_cycle(load: Load) -> Load:
    return replace(load, passes=load.passes[: load.workload.repeats])


def test_the_first_pass_sends_the_prompts_as_they_are() -> None:
    assert load_of(workload()).passes[0] == workload().prompts


def test_there_is_a_pass_for_every_repeat_that_may_be_made() -> None:
    assert len(load_of(workload()).passes) == 4
    assert len(load_of(workload(max_repeats=0)).passes) == 2


def test_no_text_is_sent_twice_in_a_cycle_and_further_cycles_are_the_same_work() -> None:
    sent = texts(load_of(workload()))
    half = len(sent) // 2
    assert len(set(sent[:half])) == half
    assert sent[half:] == sent[:half]


def test_a_cycle_is_never_begun_that_cannot_be_ended() -> None:
    assert len(load_of(workload(max_repeats=3)).passes) == 2


def test_a_server_that_remembers_is_sent_the_first_pass_alone() -> None:
    load = load_of(workload())
    once = once_each(load)
    assert once.passes == load.passes[:1]
    assert (once.workload.repeats, once.workload.max_repeats) == (1, 0)


def test_prompts_that_are_fewer_than_the_places_come_again_under_prefixes_of_their_own() -> None:
    (first,) = load_of(workload(concurrency=4, repeats=1, max_repeats=0)).passes
    assert len(first) == 9  # three prompts, two requests for each place: eight at least
    assert len({prompt.id for prompt in first}) == 9
    assert len({prompt.text[:5] for prompt in first}) == 7  # the first three as they are
    assert [prompt.text for prompt in first[:3]] == [prompt.text for prompt in workload().prompts]
    alike = load_of(workload(concurrency=4, fresh_prefixes=False))
    assert len(alike.passes[0]) == 3


@pytest.mark.parametrize("ids", [("a", "a+2"), ("a+2", "a", "a++2"), ("a", "a+", "a+2", "a+3")])
def test_the_copies_of_prompts_have_names_that_no_prompt_has(ids: tuple[str, ...]) -> None:
    prompts = tuple(Prompt(id=name, text=f"text of {name}") for name in ids)
    (first,) = load_of(workload(prompts=prompts, concurrency=6, repeats=1, max_repeats=0)).passes
    assert len(first) >= 12
    assert len({prompt.id for prompt in first}) == len(first)


def test_prompts_that_arrive_by_themselves_fill_no_places() -> None:
    load = load_of(workload(concurrency=1024, request_rate=2.0))
    assert load.passes[0] == load.workload.prompts


def test_the_same_prompts_in_another_workload_are_other_texts() -> None:
    sent = [
        text
        for load in loads_of([workload("a"), workload("b", repeats=3), workload("c")])
        for text in texts(once_cycle(load))
    ]
    assert len(set(sent)) == len(sent)


def test_equal_texts_under_two_ids_are_told_apart() -> None:
    twins = (Prompt(id="a", text="same"), Prompt(id="b", text="same"))
    sent = texts(load_of(workload(prompts=twins, max_repeats=0)))
    assert sent[0] == "same"
    assert len(set(sent)) == len(sent)


def test_a_prefix_stands_at_the_very_beginning_and_keeps_id_and_class() -> None:
    first, later = (prompts[0] for prompts in load_of(workload()).passes[:2])
    assert later.text.endswith(f") {first.text}")
    assert later.text[:3] != first.text[:3]
    assert (later.id, later.prompt_class) == (first.id, first.prompt_class)


def test_two_passes_share_no_beginning_that_a_cache_could_keep() -> None:
    begins = [text[:5] for text in texts(load_of(workload(repeats=4)))[3:]]
    assert len(set(begins)) == len(begins)


def test_every_launch_sends_the_same() -> None:
    assert loads_of([workload("a"), workload("b")]) == loads_of([workload("a"), workload("b")])


def test_more_passes_of_one_workload_change_no_text_of_another() -> None:
    few = loads_of([workload("a"), workload("b")])[1]
    many = loads_of([workload("a", max_repeats=9), workload("b", max_repeats=9)])[1]
    assert many.passes[:4] == few.passes


def test_another_name_changes_nothing_that_is_sent() -> None:
    assert texts(load_of(workload("a"))) == texts(load_of(workload("b")))


def test_another_seed_has_other_prefixes() -> None:
    assert set(texts(load_of(workload()))) & set(texts(load_of(workload(seed=1)))) == {
        "text 0",
        "text 1",
        "text 2",
    }


def test_without_fresh_prefixes_all_passes_are_alike() -> None:
    load = load_of(workload(fresh_prefixes=False))
    assert set(load.passes) == {workload().prompts}


@pytest.mark.parametrize("chat", [True, False])
def test_the_warm_up_is_none_of_the_prompts_and_asks_for_a_long_answer(chat: bool) -> None:
    load = load_of(workload(chat=chat))
    assert load.warmup.text not in texts(load)
    assert load.warmup.text.endswith("." if chat else "January:")


def test_a_load_beyond_all_measure_is_refused() -> None:
    with pytest.raises(ValidationError, match=r"100 prompts x 201 passes are 20,100 requests .* more than 20,000"):
        workload(count=100, max_repeats=201)
    with pytest.raises(ValidationError, match="more than 20,000"):
        workload(count=30, repeats=700, max_repeats=0)
    assert len(texts(load_of(workload(count=100, repeats=200, max_repeats=200)))) == MAX_REQUESTS


def test_the_copies_that_fill_the_places_count_too() -> None:
    def many(**changed: Any) -> WorkloadSpec:
        return workload(count=4, repeats=100, max_repeats=0, **changed)

    words = r"4 prompts x 2,048 \(to fill 4,096 places twice\) x 100 passes are 819,200 requests"
    with pytest.raises(ValidationError, match=words):
        many(concurrency=4096)
    assert many(concurrency=4096, fresh_prefixes=False).num_copies == 1
    assert many(concurrency=4096, request_rate=9.0).num_copies == 1
    assert len(texts(load_of(many(concurrency=100)))) == MAX_REQUESTS


@pytest.mark.parametrize("rate", [1e-9, 0.0019])
def test_arrivals_that_outlast_the_time_to_measure_are_refused(rate: float) -> None:
    with pytest.raises(ValidationError, match=r"3 prompts arrive in .* more than max_measure_s \(1000\)"):
        workload(request_rate=rate, concurrency=8, max_measure_s=1000)
    assert workload(request_rate=0.002, concurrency=8, max_measure_s=1000).request_rate == 0.002


def test_the_passes_asked_for_are_made_whatever_the_most_is() -> None:
    for most in (0, 1, 4):
        wanted = workload(repeats=4, max_repeats=most)
        assert len(load_of(wanted).passes) == 4


def test_arriving_requests_need_room() -> None:
    with pytest.raises(ValidationError, match="concurrency above 1"):
        workload(request_rate=2.0)
    assert not workload(request_rate=2.0, concurrency=8).sequential
