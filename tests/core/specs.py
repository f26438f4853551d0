"""Specifications of sweeps that are never run."""

from __future__ import annotations

from collections.abc import Mapping

from sweeper.host_spec import HostSpec
from sweeper.objective import ObjectiveSpec, Term
from sweeper.spec import (
    BudgetSpec,
    EngineSpec,
    FlagValue,
    LimitsSpec,
    ModelSpec,
    SpaceSpec,
    StudySpec,
    SweepSpec,
    TrackingSpec,
)
from sweeper.workload_spec import Prompt, WorkloadSpec


def sweep_spec(engine: str, space: SpaceSpec, flags: Mapping[str, FlagValue], sampler: str) -> SweepSpec:
    """A sweep of `space` on this machine under one workload, `w`."""
    study = {
        "name": "night",
        "dir": "d",
        "storage": "sqlite://",
        "sampler": sampler,
        "seed": 0,
        "startup_trials": 1,
    }
    return SweepSpec(
        engine=EngineSpec(name=engine, command=("server",), flags=flags),
        host=HostSpec(name="here", state_dir="/state", port_low=18200, port_high=18201),
        model=ModelSpec(name="m", path="/m"),
        space=space,
        workload=WorkloadSpec(
            name="w",
            prompts=(Prompt(id="a", text="b"),),
            max_tokens=8,
            repeats=1,
            warmup_max_requests=0,
            temperature=0.0,
            seed=0,
            request_timeout_s=5.0,
        ),
        study=StudySpec.model_validate(study),
        budget=BudgetSpec(trials=5, finalists=1, confirm_launches=2),
        limits=LimitsSpec(start_s=10, stop_grace_s=1, identical_failures=3),
        tracking=TrackingSpec(uri="", artifact_location="", sync_s=1.0),
        objective=ObjectiveSpec(terms=(Term(workload="w", metric="output_throughput"),)),
    )
