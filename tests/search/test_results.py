"""The results file and the tables made of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.bench.search import results, tables
from tests.bench.search.harness import missing
from tests.bench.search.methods import METHODS
from tests.bench.search.results import RESULTS, Foretold, Run, from_line, to_line


def run(shares: list[float], **changed: object) -> Run:
    """A run of as many restarts as there are shares."""
    plain = Run("ours", 0.0, 7, 0, "pcie_moe1t", "fair", False, 1, tuple(shares))
    return replace(plain, **changed)  # type: ignore[arg-type]


def test_a_run_survives_its_line() -> None:
    whole = run([0.5, 0.5, 0.9], gains_pct=(None, 3.2, 0.1), stops_after=2, foretold=Foretold(3, 2, 1.5))
    assert from_line(to_line(whole)) == whole
    with pytest.raises(ValueError, match="not a run"):
        from_line('{"method":"ours"}')


def test_an_interrupted_bench_goes_on_with_what_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    assert len(missing(path, ["tpe", "ours"], range(3), 0.0, 2)) == 12
    results.append(path, [run([0.9], seed=1, repeat=0), run([0.8], seed=1, repeat=0)])
    left = missing(path, ["tpe", "ours"], range(3), 0.0, 2)
    assert len(left) == 11
    assert run([]).key._replace(seed=1) not in left
    assert [found.shares for found in results.load(path)] == [(0.8,)]
    assert len(missing(path, ["ours"], range(3), 0.3, 1)) == 3


def test_a_line_that_a_kill_cut_off_is_no_run(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    results.append(path, [run([0.9], seed=1), run([0.9], seed=2)])
    path.write_text(path.read_text()[:-5])
    assert [found.seed for found in results.load(path)] == [1]


def test_restarts_are_counted_to_the_first_name_that_is_close_enough() -> None:
    found = run([0.0, 0.94, 0.96, 0.981, 0.97])
    assert found.restarts_to(2) == 4
    assert found.restarts_to(5) == 3
    assert found.restarts_to(1) is None
    assert found.regret_pct(2) == pytest.approx(6)
    assert found.regret_pct(40) == pytest.approx(3)


def test_a_median_over_runs_that_never_arrive_is_not_a_number_of_restarts() -> None:
    slow, quick = run([0.5, 0.6, 0.7]), run([0.5, 1.0, 1.0])
    assert "| > 3 | > 3 |" in tables.comparison([slow, slow, quick])
    assert "| 2 | > 3 |" in tables.comparison([slow, quick, quick])


def test_the_stopping_rule_is_charged_with_what_it_left_behind() -> None:
    runs = [
        run([0.9, 0.97, 1.0], gains_pct=(5.0, 1.0, 0.1), stops_after=2),
        run([0.9, 0.97, 1.0], gains_pct=(5.0, 1.0, 0.5)),
    ]
    assert "| ours | 0 | 0.2 | 2 | 2 | 3 | 50 % | 1.50 | 50 % | 0 % |" in tables.stopping(runs)


def test_what_another_threshold_would_have_cost_is_told_from_the_gains_that_were_shown() -> None:
    falling = run([0.9] * 9 + [0.99] * 3, gains_pct=(None, *[3.0] * 6, 0.45, 0.44, None, 0.2, 0.1))
    assert falling.stops_below(0.5) == 9
    assert falling.stops_below(0.4) == 12  # what nothing was said before does not count
    assert falling.stops_below(0.1) is None
    assert run([0.9] * 4, gains_pct=(0.1,) * 4).stops_below(0.5) is None  # too early
    table = tables.stopping([falling])
    assert "| ours | 0 | 0.5 | 1 | 9 | 9 | 0 % | 10.00 | 100 % | 100 % |" in table
    assert "| ours | 0 | 0.4 | 1 | 12 | 12 | 0 % | 1.00 | 0 % | 0 % |" in table


def test_forecasts_are_judged_together_and_their_misses_run_by_run() -> None:
    runs = [run([1.0], foretold=Foretold(30, 30, 1.0)), run([1.0], foretold=Foretold(10, 4, 5.0)), run([1.0])]
    assert "| ours | 0 | 40 | 85 % | 1.0 % | 5.0 % |" in tables.forecasts(runs)


def test_wrong_physics_is_judged_server_by_server_against_tpe() -> None:
    runs = [
        run([0.80], method="tpe", wrong=1.0, seed=1),
        run([0.90], method="tpe", wrong=1.0, seed=2),
        run([0.70], wrong=1.0, seed=1),
        run([0.95], wrong=1.0, seed=2),
    ]
    assert "| 1 | ours | 2 | 17.5 / 17.5 | 1 of 2 | +10.0 % |" in tables.wrong_physics(runs)
    assert "| 1 | ours | 2 | 17.5 / 17.5 | – | – |" in tables.wrong_physics(runs[2:])


def test_only_servers_whose_best_is_a_baseline_are_in_their_table() -> None:
    table = tables.baseline_is_best([run([0.99], baseline_is_best=True), run([0.5])])
    assert "| ours | 1 | 1.0 / 1.0 / 1.0 |" in table


def test_the_committed_results_are_of_this_bench_and_of_development_seeds_only() -> None:
    kept = results.load(RESULTS)
    assert {found.method for found in kept} <= set(METHODS)
    assert {found.seed for found in kept} == set(range(40))
    assert {len(found.shares) for found in kept} == {40}
    assert RESULTS.read_text() == "".join(to_line(r) + "\n" for r in sorted(kept, key=lambda r: r.key))
