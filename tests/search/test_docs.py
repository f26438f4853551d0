"""The example of docs/search.md runs as it stands there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from sweeper.samplers.physics import stored_forecast

PAGE = Path(__file__).parents[2] / "docs" / "search.md"


class Result:
    """What a benchmark of the reader's might return."""

    def __init__(self, draft: str, num_steps: int, graphs: bool) -> None:
        self.started = (draft, num_steps) != ("eagle3", 8)
        chance = 0.6
        self.accept_histogram = [round(1000 * chance**n * (1 - chance if n < num_steps else 1)) for n in range(9)]
        self.accept_histogram = self.accept_histogram[: num_steps + 1]
        self.accept_length = sum(chance**n for n in range(num_steps + 1))
        self.tok_s = 1000 * self.accept_length / ((10 + 1.2 * num_steps) * (1 if graphs else 1.6))


def test_the_example_finds_the_best_and_explains_itself() -> None:
    (example,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    names: dict[str, Any] = {"measure": Result}
    exec(example, names)
    study = names["study"]
    assert study.best_params == {"draft": "eagle3", "num_steps": 3, "cuda_graphs": True}
    assert len(study.trials) < 20
    forecast = stored_forecast(study.trials[-1])
    assert forecast is not None
    assert forecast.reason
    assert names["forecast"].throughput.low < names["forecast"].throughput.high
    assert 1 < names["needed"].mean < 4
