"""What the study keeps of the timings, and what the search makes of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from sweeper.probing.findings import Findings, Timing, all_reduce_of, findings_of, restart_s
from sweeper.samplers.physics import predict
from sweeper.spec import FlagValue
from sweeper.storing.storage import StudyStore
from sweeper.study import Study
from tests.core.drafting import BUDGET, open_study, physics_of, run
from tests.fakes import trial

pytestmark = pytest.mark.study

LL: Mapping[str, FlagValue] = {"env.NCCL_PROTO": "LL"}
SIMPLE: Mapping[str, FlagValue] = {"env.NCCL_PROTO": "Simple"}


def timing(
    values: Mapping[str, FlagValue], us: float = 0.0, failure: str = "", *, default: bool = False
) -> Timing:
    times = () if failure else ((1, us), (16, 2 * us))
    name = " ".join(map(str, values.values())) or "nothing set"
    return Timing(
        name=name, values=(values,), microseconds=times, failure=failure, took_s=10.0, is_default=default
    )


def findings(*timings: Timing, given_up: str = "") -> Findings:
    return Findings(
        program="torch",
        num_ranks=8,
        hidden_size=7168,
        num_layers=61,
        num_settings=len(timings),
        timings=timings,
        given_up=given_up,
    )


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory) -> Study:
    """A study that has searched for a while, in steps of some 10 ms."""
    study = open_study(tmp_path_factory.mktemp("night"))
    run(study, BUDGET.model_copy(update={"trials": 4}))
    return study


def expected(night: Study, values: Mapping[str, FlagValue], found: Findings) -> tuple[float, float]:
    """Throughput and chance to start of a chain under a setting."""
    found.keep(night.store)
    sampler = replace(physics_of(), all_reduce=lambda: all_reduce_of(night.store)).sampler(seed=0)
    chain: dict[str, FlagValue] = {
        "speculative_algorithm": "EAGLE3",
        "speculative_num_steps": 3,
        "speculative_eagle_topk": 1,
        "speculative_num_draft_tokens": 4,
        "disable_cuda_graph": False,
    }
    forecast = predict(sampler, night.store.optuna, {**chain, **values})
    assert forecast.throughput is not None
    return forecast.throughput.mean, forecast.p_start


def test_it_survives_the_study(tmp_path: Path) -> None:
    store = StudyStore.open(f"sqlite:///{tmp_path}/o.db", "night", str(tmp_path), create=True)
    assert findings_of(store) is None
    assert all_reduce_of(store) is None
    kept = findings(timing({}, 30.0, default=True), timing({"env.NCCL_MIN_NCHANNELS": 8}, failure="hung"))
    kept.keep(store)
    again = StudyStore.open(f"sqlite:///{tmp_path}/o.db", "night", str(tmp_path), create=False)
    assert findings_of(again) == kept


def test_what_another_version_kept_is_as_good_as_nothing(tmp_path: Path) -> None:
    store = StudyStore.open(f"sqlite:///{tmp_path}/o.db", "night", str(tmp_path), create=True)
    store.set_fact("all_reduce", {"timings": "?"})
    assert findings_of(store) is None


def test_the_search_expects_more_of_the_faster_setting(night: Study) -> None:
    default = timing({}, 30.0, default=True)

    def gain(us: float) -> float:
        """How much faster the search expects Simple to be than LL, when an all-reduce under it takes so long."""
        found = findings(default, timing(LL, 30.0), timing(SIMPLE, us))
        return expected(night, SIMPLE, found)[0] / expected(night, LL, found)[0]

    assert gain(15.0) > 1.05 * gain(30.0)
    assert gain(30.0) > 1.05 * gain(60.0)


def test_a_setting_that_hung_is_not_expected_to_start(night: Study) -> None:
    default = timing({}, 30.0, default=True)
    works = expected(night, SIMPLE, findings(default, timing(LL, 30.0), timing(SIMPLE, 30.0)))[1]
    hangs = expected(night, SIMPLE, findings(default, timing(LL, 30.0), timing(SIMPLE, failure="hung")))[1]
    assert hangs < 0.1 * works


def test_the_baselines_setting_works_whatever_its_timing_did(night: Study) -> None:
    plain = findings(timing(LL, 30.0, default=True), timing(SIMPLE, 30.0))
    failed = findings(timing(LL, failure="died", default=True), timing(SIMPLE, 30.0))
    assert expected(night, LL, failed)[1] == expected(night, LL, plain)[1]
    assert failed.failed == ()


def test_a_probe_that_was_given_up_says_nothing(night: Study) -> None:
    found = findings(timing({}, failure="died"), timing(SIMPLE, failure="died"), given_up="died")
    found.keep(night.store)
    assert all_reduce_of(night.store) is None
    assert found.failed == ()


def test_its_cost_is_told_in_seconds_and_in_restarts() -> None:
    made = trial(0, [50.0])  # two seconds from the start to ready, and no stop
    found = findings(timing({}, 30.0, default=True), timing(SIMPLE, 30.0))
    assert found.cost_text(restart_s([made])) == "2 settings of NCCL timed in 20 s, 10.0 restarts"
    assert found.cost_text(300.0) == "2 settings of NCCL timed in 20 s, 7 % of a restart"
    assert findings(timing({}, 30.0)).cost_text(restart_s([])) == "1 setting of NCCL timed in 10 s"
