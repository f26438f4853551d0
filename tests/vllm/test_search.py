"""The sampler that knows how drafts are made searches vLLM's chains: no branches, and no draft tokens."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from sweeper.config.compose import load
from sweeper.deciding.sharing import Ranking
from sweeper.engines.base import HostFacts
from sweeper.engines.vllm import Vllm
from sweeper.records import Proposal
from sweeper.samplers.choice import SamplerSettings
from sweeper.searching.candidates import Candidates
from sweeper.searching.choice import search_of
from sweeper.searching.speculation import NO_GRAPHS, Physics
from sweeper.spec import BudgetSpec, Choice, FlagValue, IntRange, Parameter, ServerConfig, SpaceSpec
from sweeper.storing.storage import StudyStore
from sweeper.study import Study
from tests.fakes import launch

ENGINE, FACTS = Vllm(), HostFacts(engine_version="0.32.0", model_path="/m")
BASE = ServerConfig(flags={"max_num_seqs": 4, "spec_model": "/draft"})
DRAFTS: dict[str, tuple[FlagValue, ...]] = {"spec_method": ("eagle3",)}
SPACE = SpaceSpec(
    parameters=(
        Parameter(name="spec_method", domain=Choice(values=("eagle3", "none"))),
        Parameter(name="spec_tokens", domain=IntRange(low=1, high=8), when=DRAFTS),
        Parameter(name="enforce_eager", domain=Choice(values=(False, True))),
    )
)
GIVEN = ("preset=vllm_any", "host.ssh.destination=gpu1", "model.path=/m")


def physics() -> Physics:
    candidates = Candidates(
        SPACE,
        BASE,
        lambda config: ENGINE.canonical(config, FACTS),
        lambda config: ENGINE.violations(config, FACTS),
    )
    roles = ENGINE.speculation()
    assert roles is not None
    return Physics(candidates, roles, ENGINE.baseline(BASE, FACTS))


def test_its_roles_are_those_of_chains_and_switching_graphs_off_is_expected_to_cost() -> None:
    roles = physics().sampler_roles
    assert (roles.num_steps, roles.topk, roles.draft_tokens) == ("spec_tokens", None, None)
    assert roles.flags == {"enforce_eager": NO_GRAPHS}


def speed(config: ServerConfig) -> dict[str, float]:
    """A made-up server: of each further draft 70 % are kept, each costs a tenth of a step."""
    slow = 1.4 if config.flags.get("enforce_eager") is True else 1.0
    if not ENGINE.is_speculative(config):
        return {"output_throughput": 100 / slow}
    steps = config.flags["spec_tokens"]
    assert isinstance(steps, int)
    length = 1 + sum(0.7 ** (depth + 1) for depth in range(steps))
    return {
        "output_throughput": 100 * length / (slow * (1 + 0.1 * steps)),
        "accept_length": length,
        "num_verify_steps": 1000.0,
    }


@pytest.mark.study
def test_the_best_of_eighteen_is_found_in_six_launches(tmp_path: Path) -> None:
    made = physics()
    store = StudyStore.open(f"sqlite:///{tmp_path}/optuna.db", "v", str(tmp_path), create=True)
    settings = SamplerSettings("physics", 0, startup_trials=3, physics=made.sampler)
    study = Study(store, made.candidates, made.baseline, settings, Ranking("output_throughput"))
    budget = BudgetSpec(trials=6, finalists=1, confirm_launches=0, least_gain_pct=0)
    best: dict[str, FlagValue] = {}
    fastest = 0.0
    while (proposal := study.ask(budget)) is not None:
        record = measured(study, proposal)
        if record > fastest:
            fastest, best = record, dict(proposal.canonical.flags)
    assert best.get("spec_method") == "eagle3"
    assert best.get("spec_tokens") in (3, 4, 5)
    assert "enforce_eager" not in best


def measured(study: Study, proposal: Proposal) -> float:
    """Tells the study what the server shows for a proposal."""
    made = launch(None, trial=proposal.trial_number, number=proposal.launch_number, purpose=proposal.purpose)
    metrics = speed(proposal.canonical)
    record = made.model_copy(
        update={
            "metrics": metrics,
            "requested": proposal.requested,
            "canonical": proposal.canonical,
            "effective": dict(proposal.canonical.flags),
        }
    )
    study.tell(proposal, study.save(record, {}))
    return metrics["output_throughput"]


@pytest.mark.compose
@pytest.mark.parametrize(
    ("given", "search"),
    [
        ((*GIVEN, "space.spec_model=/d"), "search: physics (spec_method, spec_model, spec_tokens)"),
        ((*GIVEN, "space.spec_model=/d", "space.spec_method=choice(mtp,eagle3,none)"), "search: physics ("),
        ((*GIVEN, "space=vllm_ngram"), "search: tpe (not physics: spec_method ngram does not draft"),
    ],
)
def test_chains_are_searched_by_their_physics_and_n_grams_are_not(given: tuple[str, ...], search: str) -> None:
    assert search_of(load(given).spec, ENGINE).text.startswith(search)


def test_a_fixed_method_without_a_number_of_tokens_is_no_search_for_it() -> None:
    roles = ENGINE.speculation()
    assert roles is not None
    assert roles.numbers == ("spec_tokens",)
    assert dataclasses.replace(roles, topk="x").numbers == ("spec_tokens", "x")
