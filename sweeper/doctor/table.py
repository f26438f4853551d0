"""The table of checks, in the order of the way from here to the first token. docs/doctor.md is made from it."""

from __future__ import annotations

from collections.abc import Iterator

from sweeper.doctor.context import Context
from sweeper.doctor.finding import Check, Place, Said, ok
from sweeper.doctor.gpu_checks import GPU_CHECKS
from sweeper.doctor.gpu_state_checks import GPU_STATE_CHECKS
from sweeper.doctor.host_checks import HOST_CHECKS
from sweeper.doctor.model_checks import MODEL_CHECKS
from sweeper.doctor.store_checks import HERE_CHECKS, STORE_CHECKS
from sweeper.doctor.way_checks import WAY_CHECKS
from sweeper.doctor.weight_checks import WEIGHT_CHECKS
from sweeper.space import num_combinations

CONFIGURATION = "configuration"

PLACES: dict[Place, str] = {
    Place.HERE: "Here",
    Place.WAY: "The way",
    Place.HOST: "The host",
    Place.GPUS: "GPUs",
    Place.MODEL: "Model",
    Place.STORES: "Stores",
}


def settings_compose(ctx: Context) -> Iterator[Said]:
    """The settings can be read. Where they cannot, no context exists, and `refused` says why."""
    count = num_combinations(ctx.spec.space)
    space = "a space without end" if count is None else f"{count:,} combinations"
    yield ok(f"{ctx.spec.engine.name}, {space}, {ctx.spec.budget.trials} trials at most")


_FIRST: Check[Context] = Check(
    CONFIGURATION, Place.HERE, "do the settings compose, with every value right", settings_compose
)
_IN_ORDER = list(PLACES)

CHECKS: tuple[Check[Context], ...] = tuple(
    sorted(
        (
            _FIRST,
            *HERE_CHECKS,
            *WAY_CHECKS,
            *HOST_CHECKS,
            *MODEL_CHECKS,
            *WEIGHT_CHECKS,
            *GPU_CHECKS,
            *GPU_STATE_CHECKS,
            *STORE_CHECKS,
        ),
        key=lambda check: _IN_ORDER.index(check.place),
    )
)
"""Each stands after the checks that it needs; a test holds the table to that."""


def markdown() -> str:
    """The table for the documentation."""
    rows = ["| where | check | what it asks | waits for |", "|---|---|---|---|"]
    for check in CHECKS:
        waits = ", ".join(f"`{name}`" for name in check.needs)
        rows.append(f"| {PLACES[check.place].lower()} | `{check.name}` | {check.asks} | {waits} |")
    return "\n".join(rows) + "\n"
