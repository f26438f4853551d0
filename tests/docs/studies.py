"""The studies that the documentation's examples speak of, each a small SGLang night of planted speeds."""

from __future__ import annotations

from pathlib import Path

from sweeper.engines.base import Placement
from sweeper.kept_search import KeptSearch
from tests.core.drafting import BASE, BUDGET, ENGINE, FACTS, SPACE, measured, open_study

PLACEMENT = Placement(("python3", "-m", "sglang.launch_server"), "/models/m", 30000, "specsweep a")


def make(folder: Path, name: str) -> None:
    """Write the study `name` into `folder`: a searched night of eight trials."""
    study = open_study(folder, name, sampler="random")
    KeptSearch(engine=ENGINE.name, objective="output_throughput", space=SPACE, base=BASE, facts=FACTS).keep(
        study.store
    )
    while (proposal := study.ask(BUDGET)) is not None:
        launch = measured(proposal)
        argv = ENGINE.launch_spec(launch.canonical, PLACEMENT).argv
        study.tell(proposal, study.save(launch.model_copy(update={"argv": argv}), {}))
