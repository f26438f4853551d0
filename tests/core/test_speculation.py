"""The physics sampler at work in a study: what it is told, what it foretells, and what it may propose."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from sweeper.engines.base import HostFacts
from sweeper.errors import FailureKind
from sweeper.records import LaunchRecord, Proposal, Purpose
from sweeper.samplers.physics import Observation
from sweeper.space import grid
from sweeper.spec import BudgetSpec, Choice, FlagValue, Parameter, ServerConfig, SpaceSpec
from sweeper.study import Study
from tests.core.drafting import BASE, BUDGET, SPACE, candidates_of, measured, open_study, physics_of, run, shown
from tests.fakes import launch

pytestmark = pytest.mark.study


def observations(study: Study) -> list[Observation | None]:
    return [physics_of().observe(trial) for trial in study.store.optuna.get_trials()]


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory) -> tuple[Study, list[Proposal]]:
    """A finished search and what it proposed."""
    study = open_study(tmp_path_factory.mktemp("night"))
    return study, run(study)


Night = tuple[Study, list[Proposal]]


def test_the_baseline_comes_first_once_and_every_proposal_is_legal_and_new(night: Night) -> None:
    made = night[1]
    keys = [p.canonical.key() for p in made]
    assert made[0].is_baseline
    assert len(set(keys)) == len(keys) == BUDGET.trials
    assert not any(candidates_of().violations(p.canonical) for p in made)
    assert not any(p.canonical == made[0].canonical for p in made[1:])


def test_it_finds_what_is_fast_on_a_host_that_follows_the_physics(night: Night) -> None:
    best = max(shown(p.canonical)["output_throughput"] for p in night[1])
    every = map(candidates_of().canonical, map(candidates_of().requested, grid(SPACE)))
    top = max(shown(config)["output_throughput"] for config in every if not candidates_of().violations(config))
    assert best >= 0.98 * top


def test_a_resumed_search_proposes_what_an_uninterrupted_one_would(tmp_path: Path, night: Night) -> None:
    resumed: list[Proposal] = []
    while (proposal := (study := open_study(tmp_path)).ask(BUDGET)) is not None:
        study.tell(proposal, study.save(measured(proposal), {}))
        resumed.append(proposal)
    assert resumed == night[1]


def test_a_proposal_and_its_record_carry_what_is_expected_of_it(night: Night) -> None:
    study, made = night
    assert made[0].forecast is None
    assert all(p.forecast is not None for p in made[1:])  # each is what was planned, none a random one
    last = made[-1].forecast
    assert last is not None
    assert last.throughput is not None
    assert 0 < last.p_start <= 1
    assert last.reason
    assert study.trials()[-1].forecast == last
    value = measured(made[-1]).metrics["output_throughput"]
    assert abs(last.throughput.error_pct(value)) < 10


def test_the_histogram_is_told_as_shares_and_the_baseline_in_terms_of_the_space(night: Night) -> None:
    baseline, probe = observations(night[0])[:2]
    assert baseline is not None
    assert baseline.config == {"speculative_algorithm": "none", "disable_cuda_graph": False}
    assert (baseline.throughput, baseline.accept_length, baseline.survival) == (100.0, None, None)
    assert probe is not None
    assert probe.survival is not None
    assert probe.survival[:3] == pytest.approx((0.7, 0.49, 0.343), abs=0.001)
    assert probe.accept_length == pytest.approx(1 + sum(probe.survival), abs=0.01)


@pytest.mark.parametrize(
    ("kind", "launches", "failed"),
    [
        (FailureKind.OUT_OF_MEMORY, 1, True),
        (FailureKind.SERVER_CRASH, 2, True),
        (FailureKind.BENCHMARK_FAILED, 2, None),
    ],
)
def test_only_a_configurations_own_failure_is_held_against_it(
    tmp_path: Path, kind: FailureKind, launches: int, failed: bool | None
) -> None:
    study = open_study(tmp_path)
    run(study, BudgetSpec(trials=1, finalists=1, confirm_launches=0))
    for _ in range(launches):
        proposal = study.ask(BUDGET)
        assert proposal is not None
        study.tell(proposal, study.save(_failed(proposal, kind), {}))
    seen = observations(study)[1]
    assert (seen.failed if seen else None) is failed


def test_a_fixed_algorithm_leaves_the_baseline_the_only_one_that_does_not_draft() -> None:
    space = SpaceSpec(parameters=(Parameter(name="speculative_num_steps", domain=Choice(values=(2, 3, 5))),))
    base = BASE.with_flags({"speculative_algorithm": "EAGLE3", "speculative_eagle_topk": 1})
    physics = physics_of(space, base)
    assert physics.baseline_config == {}
    assert not physics.speculates({})
    assert physics.speculates({"speculative_num_steps": 2})
    assert physics.sampler_roles.fixed["speculative_eagle_topk"] == 1


def test_the_baseline_has_what_changes_nothing_about_it_also_where_one_flag_hangs_on_another() -> None:
    graphs = Parameter(name="disable_cuda_graph", domain=Choice(values=(True, False)))
    sizes = Parameter(
        name="cuda_graph_max_bs", domain=Choice(values=(8, 16)), when={"disable_cuda_graph": (False,)}
    )
    base = BASE.with_flags({"cuda_graph_max_bs": 16})
    steps = Parameter(name="speculative_num_steps", domain=Choice(values=(2, 3)))
    physics = physics_of(SpaceSpec(parameters=(graphs, sizes, steps)), base)
    assert physics.baseline_config == {"disable_cuda_graph": False, "cuda_graph_max_bs": 16}
    assert physics.sampler_roles.default == physics.baseline_config


def test_the_canonical_form_says_what_is_one_and_what_is_illegal() -> None:
    normal = physics_of().space.normal
    chain: dict[str, FlagValue] = {
        "speculative_algorithm": "EAGLE3",
        "speculative_num_steps": 3,
        "speculative_eagle_topk": 1,
    }
    rest: dict[str, FlagValue] = {"disable_cuda_graph": False, "env.NCCL_PROTO": "LL"}
    four, eight = (normal({**chain, "speculative_num_draft_tokens": n, **rest}) for n in (4, 8))
    assert four == eight
    assert four is not None
    assert four["env.NCCL_PROTO"] == "LL"
    tree = {**chain, "speculative_eagle_topk": 2, "speculative_num_draft_tokens": 64}
    assert candidates_of().violations(candidates_of().requested(tree))
    assert normal({**tree, **rest}) is None


def _failed(proposal: Proposal, kind: FailureKind) -> LaunchRecord:
    made = launch(None, trial=proposal.trial_number, number=proposal.launch_number, failure=kind)
    return made.model_copy(update={"requested": proposal.requested, "canonical": proposal.canonical})


@pytest.mark.parametrize(
    ("tp_size", "gpu", "still"),
    [
        (1, "NVIDIA H100 80GB HBM3", {"NCCL_P2P_LEVEL", "NCCL_PROTO"}),
        (4, "NVIDIA H100 80GB HBM3", {"NCCL_P2P_LEVEL"}),
        (4, "NVIDIA L40S", set()),
        (4, "a card that nobody knows", set()),
    ],
)
def test_little_is_expected_of_flags_that_do_nothing_on_the_machine(
    tp_size: int, gpu: str, still: set[str]
) -> None:
    level = Parameter(name="NCCL_P2P_LEVEL", domain=Choice(values=("PHB", "SYS")), is_env=True)
    space = SpaceSpec(parameters=(*SPACE.parameters, level))
    base = ServerConfig(flags={**BASE.flags, "tp_size": tp_size})
    physics = replace(physics_of(space, base), facts=HostFacts("0.5.23", "/m", gpu_names=(gpu,) * tp_size))
    priors = physics.sampler_roles.flags
    assert {name.removeprefix("env.") for name, prior in priors.items() if prior.size < 0.01} == still


def test_over_how_many_gpus_is_searched_says_nothing_of_them() -> None:
    sizes = Parameter(name="tp_size", domain=Choice(values=(1, 2)))
    physics = physics_of(SpaceSpec(parameters=(*SPACE.parameters, sizes)))
    assert physics.sampler_roles.flags == {}


def test_the_search_ends_when_little_is_left_and_a_person_may_go_on(tmp_path: Path) -> None:
    budget = BudgetSpec(trials=40, finalists=1, confirm_launches=2, least_gain_pct=1.0)
    study = open_study(tmp_path)
    searched = 0
    while (proposal := study.ask(budget)) is not None and proposal.purpose is not Purpose.CONFIRM:
        assert study.search_is_over(budget) == ""
        study.tell(proposal, study.save(measured(proposal), {}))
        searched += 1
    assert proposal is not None
    assert 8 <= searched < 40
    why = study.search_is_over(budget)
    assert why.startswith("the search ends: no untested configuration is expected to bring more than 0.")
    assert study.progress(budget).trials_total == searched
    study.store.optuna.enqueue_trial({"speculative_num_steps": 8})
    assert study.search_is_over(budget) == ""
    never = budget.model_copy(update={"least_gain_pct": 0.0})
    going_on = study.ask(never)
    assert going_on is not None
    assert going_on.purpose is Purpose.SEARCH


def test_another_sampler_does_not_end_for_what_the_physics_foretold(tmp_path: Path) -> None:
    budget = BudgetSpec(trials=40, finalists=1, confirm_launches=0, least_gain_pct=100.0)
    study = open_study(tmp_path)
    run(study, budget)
    assert len(study.trials()) < 20
    other = open_study(tmp_path, sampler="random")
    assert other.search_is_over(budget) == ""
    assert other.ask(budget) is not None
