"""The break-even of drafters, on servers of known truth."""

from __future__ import annotations

import re

from analysis.diagnose import Severity
from tests.diagnose.asking import CHAINS, measured, told
from tests.diagnose.planted import Server, chain, plain


def test_break_even_is_where_the_planted_server_equals_the_baseline() -> None:
    server = Server(keeps={"/d/one": 0.5, "/d/two": 0.3}, overhead_ms=8.0)
    found = told(measured(server, [plain(), chain(2), chain(3), chain(3, drafter="/d/two")]))
    finding = found["break_even"]
    assert finding.severity is Severity.LIMIT
    needed = re.search(r"accept_len ([\d.]+) \(([\d.]+) to ([\d.]+)\)", finding.title)
    assert needed is not None
    best = max((chain(2), chain(3)), key=lambda config: (1 + sum(server.shares(config))) / server.step_ms(config))
    truth = server.step_ms(best) / server.base_ms
    assert float(needed[2]) <= truth <= float(needed[3])
    assert len(finding.evidence) == 2
    assert "draft_limit" in found


def test_a_drafter_that_pays_is_no_limit() -> None:
    found = told(measured(Server(keeps={"/d/one": 0.9}), CHAINS))
    assert found["break_even"].severity is Severity.NOTE
    assert "pays" in found["break_even"].next_step
    assert "draft_limit" not in found


def test_a_step_that_no_drafter_can_pay_is_not_blamed_on_the_drafter() -> None:
    found = told(measured(Server(overhead_ms=40.0), [plain(), chain(1), chain(2)]))
    assert "step_limit" in found
    assert "draft_limit" not in found


def test_a_drafter_within_the_noise_is_not_called_the_limit() -> None:
    server = Server(keeps={"/d/one": 0.55}, overhead_ms=4.1)  # as fast as the baseline, to a percent
    found = told(measured(server, [plain(), chain(1)], noise_pct=3.0))
    assert "draft_limit" not in found
    assert "Confirm" in found["break_even"].next_step
