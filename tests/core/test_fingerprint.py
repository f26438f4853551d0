"""What changed between two starts of a study is told in the words in which a space is written."""

from __future__ import annotations

import functools

import pytest

from sweeper.config import load
from sweeper.engines.base import HostFacts
from sweeper.errors import StudyMismatch
from sweeper.fingerprint import fingerprint, require_same, with_new_facts
from sweeper.objective import ObjectiveSpec, Term
from sweeper.spec import SweepSpec
from sweeper.workload_spec import Prompt, WorkloadSpec

pytestmark = pytest.mark.compose


def settings(*overrides: str, facts: HostFacts | None = None) -> dict[str, str]:
    """What a study with these overrides must keep."""
    return fingerprint(composed(*overrides), facts or HostFacts())


@functools.cache
def composed(*overrides: str) -> SweepSpec:
    return load(overrides).spec


def working(**changes: object) -> dict[str, str]:
    """What a study with another workload must keep."""
    spec = composed()
    changed = spec.workload.model_copy(update=changes)
    return fingerprint(spec.model_copy(update={"workload": changed}), HostFacts())


BUILD = {"commit": "a1", "cuda": "13.0", "nccl": "2.27", "driver": "570", "gpu_policy": "power limit 600 W"}


def built(**changes: str) -> HostFacts:
    """A host's facts, some changed."""
    return HostFacts(gpu_names=("RTX",), build={**BUILD, "draft /d": "0123", **changes})


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("choice(1,2,on)", "choice(1, 2, on)"),
        ("choice('4',4.5,true,false,'true','a b','')", "choice('4', 4.5, true, false, 'true', 'a b', '')"),
        ("range(1,8)", "range(1, 8)"),
        ("range(0,10,step=2)", "range(0, 9, step=2)"),
        ("int(interval(1,8))", "range(1, 9)"),
        ("interval(0.123456789,1)", "interval(0.123456789, 1.0)"),
        ("tag(log,interval(0.5,1))", "tag(log, interval(0.5, 1.0))"),
    ],
)
def test_a_parameter_is_told_as_it_could_be_written(written: str, told: str) -> None:
    assert settings(f"space.some_flag={written}")["space.some_flag"] == told


def test_text_that_looks_like_a_number_differs_from_the_number() -> None:
    one, other = (settings(f"space.some_flag={values}") for values in ("choice('4',5)", "choice(4,5)"))
    assert one["space.some_flag"] != other["space.some_flag"]


def test_a_mismatch_names_values_and_condition_in_the_users_own_syntax() -> None:
    condition = "space.when.spec_ngram_simple_size_n.spec_type=[ngram-simple,ngram-map-k]"
    with pytest.raises(StudyMismatch) as caught:
        require_same("mine", settings(), settings("space.spec_ngram_simple_size_n=range(2,4)", condition))
    assert (
        "  space.spec_ngram_simple_size_n: choice(2, 3, 4) when spec_type is ngram-simple then, "
        "range(2, 4) when spec_type is ngram-simple or ngram-map-k now"
    ) in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"driver": "580"}, "host.driver: 570 then, 580 now"),
        ({"cuda": "13.1"}, "engine.build.cuda: 13.0 then, 13.1 now"),
        ({"nccl": "2.28"}, "engine.build.nccl: 2.27 then, 2.28 now"),
        ({"commit": "b2"}, "engine.build.commit: a1 then, b2 now"),
        ({"gpu_policy": "power limit 450 W"}, "host.gpu_policy: power limit 600 W then, power limit 450 W now"),
        ({"draft /d": "4567"}, "model.draft /d: 0123 then, 4567 now"),
    ],
)
def test_a_host_that_has_changed_is_refused_with_what_changed(changes: dict[str, str], line: str) -> None:
    with pytest.raises(StudyMismatch) as caught:
        require_same("mine", settings(facts=built()), settings(facts=built(**changes)))
    assert str(caught.value).count(" then, ") == 1
    assert f"  {line}\n" in str(caught.value)


@pytest.mark.parametrize(
    ("overrides", "now"),
    [
        (["engine.command=[numactl,-N,'0',llama-server]"], "numactl -N 0 llama-server"),
        (['engine.command=[llama-server,"--api-key=hunter2"]'], "llama-server '--api-key=***'"),
        (["host.gpus=[3,1]"], "all then, 1, 3"),
    ],
)
def test_another_way_to_start_the_server_is_refused(overrides: list[str], now: str) -> None:
    plain = "engine.command=[llama-server]"
    with pytest.raises(StudyMismatch) as caught:
        require_same("mine", settings(plain), settings(plain, *overrides))
    assert f"{now} now\n" in str(caught.value)


def test_an_environment_may_move() -> None:
    there, here = (
        settings(f"engine.command=[{name},-m,server]") for name in ("/old/bin/python3.11", "/new/bin/python")
    )
    require_same("mine", there, here)


def test_a_study_from_before_a_fact_was_read_goes_on_and_keeps_it_from_then_on() -> None:
    old, now = settings(), settings(facts=built())
    require_same("mine", old, now)
    kept = with_new_facts(old, now)
    assert kept == now
    with pytest.raises(StudyMismatch, match=r"host\.driver"):
        require_same("mine", kept, settings(facts=built(driver="580")))


def test_a_fact_that_cannot_be_read_for_once_stops_no_study() -> None:
    require_same("mine", settings(facts=built()), settings())


def test_a_revision_of_the_same_content_is_the_same() -> None:
    require_same("mine", settings(facts=built(model_revision="1")), settings(facts=built(model_revision="2")))


KEPT = {
    "chat": False,
    "concurrency": 7,
    "fresh_prefixes": False,
    "ignore_eos": True,
    "max_tokens": 7,
    "prompts": (Prompt(id="p", text="another"),),
    "repeats": 7,
    "request_rate": 7.5,
    "seed": 7,
    "temperature": 0.7,
}
FREE = {
    "name": "renamed",
    "max_measure_s": 7,
    "max_repeats": 7,
    "precision_pct": 7,
    "request_timeout_s": 7,
    "stop_hopeless": False,
    "warmup_max_requests": 7,
    "warmup_max_s": 7,
}


def test_it_is_decided_of_each_setting_of_a_workload_whether_it_may_change() -> None:
    assert KEPT.keys() | FREE.keys() == set(WorkloadSpec.model_fields)


@pytest.mark.parametrize("name", KEPT.keys())
def test_what_changes_the_work_may_not_change(name: str) -> None:
    with pytest.raises(StudyMismatch, match=rf"workload\.{name}: "):
        require_same("mine", settings(), working(**{name: KEPT[name]}))


def test_what_changes_only_how_long_or_how_well_it_is_measured_may() -> None:
    assert working(**{name: value for name, value in FREE.items() if name != "name"}) == settings()


def test_each_workload_and_the_objective_are_kept() -> None:
    spec = composed()
    busy = spec.workload.model_copy(update={"name": "busy", "concurrency": 16})
    terms = (
        Term(workload=spec.workload.name, metric="output_throughput"),
        Term(workload="busy", metric="ttft_ms"),
    )
    both = spec.model_copy(update={"more_workloads": (busy,), "objective": ObjectiveSpec(terms=terms)})
    one, two = fingerprint(spec, HostFacts()), fingerprint(both, HostFacts())
    assert two["more_workloads.busy.concurrency"] == "16"
    assert two["more_workloads.busy.prompts"] == two["workload.prompts"]
    assert (one["objective"], two["objective"]) == ("output_throughput", "output_throughput x 1, busy.ttft_ms x 1")
