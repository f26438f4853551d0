"""A made-up SGLang host for tests of the search: speeds follow from drafts and steps, one flag costs a tenth."""

from __future__ import annotations

from pathlib import Path

from sweeper.deciding.sharing import Ranking
from sweeper.engines.base import HostFacts
from sweeper.engines.registry import engine_for
from sweeper.records import LaunchRecord, Proposal
from sweeper.samplers.choice import SamplerSettings
from sweeper.samplers.physics import Observation
from sweeper.searching.candidates import Candidates
from sweeper.searching.speculation import Physics
from sweeper.spec import BudgetSpec, Choice, FlagValue, IntRange, Parameter, ServerConfig, SpaceSpec
from sweeper.storing.storage import StudyStore
from sweeper.study import Study
from tests.fakes import launch

FACTS = HostFacts(engine_version="0.5.23", model_path="/m")
ENGINE = engine_for("sglang")
BASE = ServerConfig(flags={"attention_backend": "triton", "speculative_draft_model_path": "/draft"})
_DRAFTS = {"speculative_algorithm": ("EAGLE3",)}
SPACE = SpaceSpec(
    parameters=(
        Parameter(name="speculative_algorithm", domain=Choice(values=("EAGLE3", "none"))),
        Parameter(name="speculative_num_steps", domain=IntRange(low=1, high=8), when=_DRAFTS),
        Parameter(name="speculative_eagle_topk", domain=Choice(values=(1, 2, 4)), when=_DRAFTS),
        Parameter(name="speculative_num_draft_tokens", domain=Choice(values=(4, 8, 16)), when=_DRAFTS),
        Parameter(name="disable_cuda_graph", domain=Choice(values=(False, True))),
        Parameter(name="NCCL_PROTO", domain=Choice(values=("LL", "Simple")), is_env=True),
    )
)
BUDGET = BudgetSpec(trials=8, finalists=1, confirm_launches=0)


def candidates_of(space: SpaceSpec = SPACE, base: ServerConfig = BASE) -> Candidates:
    return Candidates(
        space,
        base,
        lambda config: ENGINE.canonical(config, FACTS),
        lambda config: ENGINE.violations(config, FACTS),
    )


def physics_of(
    space: SpaceSpec = SPACE, base: ServerConfig = BASE, earlier: tuple[Observation, ...] = ()
) -> Physics:
    roles = ENGINE.speculation()
    assert roles is not None
    return Physics(candidates_of(space, base), roles, ENGINE.baseline(base, FACTS), earlier)


def open_study(
    directory: Path,
    name: str = "night",
    seed: int = 0,
    earlier: tuple[Observation, ...] = (),
    sampler: str = "physics",
    url: str = "",
) -> Study:
    physics = physics_of(earlier=earlier)
    store = StudyStore.open(url or f"sqlite:///{directory}/optuna.db", name, str(directory), create=True)
    settings = SamplerSettings(sampler, seed, startup_trials=3, physics=physics.sampler)
    return Study(store, physics.candidates, physics.baseline, settings, Ranking("output_throughput"))


def kept(depth: int) -> float:
    """Chance that draft `depth` (from 0) and all before it are accepted."""
    return float(0.7 ** (depth + 1))


def number(value: FlagValue | None, otherwise: int) -> int:
    return value if isinstance(value, int) else otherwise


def shown(config: ServerConfig) -> dict[str, float]:
    """Throughput and, where it drafts, accept_length."""
    slow = 1.4 if config.flags.get("disable_cuda_graph") is True else 1.0
    if not ENGINE.is_speculative(config):
        return {"output_throughput": 100 / slow}
    steps = number(config.flags.get("speculative_num_steps"), 1)
    tokens = number(config.flags.get("speculative_num_draft_tokens"), 2)
    length = 1 + sum(kept(depth) for depth in range(steps))
    step_ms = 10 * slow * (1 + 0.1 * (steps - 1) + 0.01 * tokens)
    return {"output_throughput": 1000 * length / step_ms, "accept_length": length, "num_verify_steps": 1000.0}


def measured(proposal: Proposal) -> LaunchRecord:
    """The launch that this host shows for a proposal."""
    made = launch(None, trial=proposal.trial_number, number=proposal.launch_number, purpose=proposal.purpose)
    metrics = shown(proposal.canonical)
    steps = number(proposal.canonical.flags.get("speculative_num_steps"), 0) if "accept_length" in metrics else 0
    return made.model_copy(
        update={
            "requested": proposal.requested,
            "canonical": proposal.canonical,
            "metrics": metrics,
            "accepted_per_position": tuple(round(1000 * kept(depth)) for depth in range(steps)),
        }
    )


def run(study: Study, budget: BudgetSpec = BUDGET) -> list[Proposal]:
    """Search until the budget is spent."""
    made: list[Proposal] = []
    while (proposal := study.ask(budget)) is not None:
        study.tell(proposal, study.save(measured(proposal), {}))
        made.append(proposal)
    return made
