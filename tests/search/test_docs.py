"""The example of docs/search.md runs as it stands there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from sweeper.samplers.physics import stored_forecast

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "search.md"


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


def test_the_files_that_one_may_copy_import_no_others() -> None:
    words = PAGE.read_text().partition("or copy ")[2].partition(" `measure`")[0]
    copied = re.findall(r"`(sweeper/[\w/.]*)`", words)
    waiting = [ROOT / "sweeper" / "samplers" / "physics" / "__init__.py"]
    seen: set[Path] = set()
    while waiting:
        file = waiting.pop()
        assert str(file.relative_to(ROOT)).startswith(tuple(copied))
        seen.add(file)
        for name in re.findall(r"^ *from (sweeper[\w.]*) import", file.read_text(), re.M):
            package = ROOT / name.replace(".", "/")
            found = package / "__init__.py" if package.is_dir() else package.with_suffix(".py")
            waiting += {found} - seen - set(waiting)
    assert len(seen) > 20
