"""All rules together."""

from __future__ import annotations

from analysis.diagnose import RULES, Finding, Severity, findings
from tests.diagnose.asking import TREES, interval, measured, told
from tests.diagnose.planted import ENGINE, OBJECTIVE, Night, Server, chain, plain, with_env


def test_nothing_measured_gives_no_finding() -> None:
    assert findings([], OBJECTIVE, ENGINE) == []
    assert findings(Night().measure([plain()])[:1], OBJECTIVE, "unheard of") == []


def test_every_finding_says_what_to_do_next() -> None:
    seen: dict[str, Finding] = {}
    for server in (Server(), Server(keeps={"/d/one": 0.4}), Server(slower={"disable_cuda_graph=True": 1.5})):
        seen |= told(measured(server, [*TREES, chain(3, disable_cuda_graph=True)]))
    assert all(finding.next_step.endswith(".") and finding.text and finding.evidence for finding in seen.values())
    assert len(RULES) == len({rule.__name__ for rule in RULES})


def test_noise_alone_is_seldom_called_an_effect() -> None:
    """Twenty nights without any difference but noise: of all contrasts about one of twenty may look like one."""
    server = Server(forward_ms=0.0, token_ms=0.0, falls=0.0)
    claims = 0
    configs = [
        plain(),
        *(with_env(chain(3, disable_cuda_graph=g), NCCL_PROTO=p) for g in (False, True) for p in ("LL", "S")),
    ]
    for seed in range(20):
        found = told(measured(server, configs, noise_pct=2.0, seed=seed))
        claims += found["cuda_graphs"].severity is Severity.LIMIT
        claims += found["nccl"].severity is Severity.LIMIT
        assert not {"communication_bound", "launch_bound", "other_settings"} & found.keys()
    assert claims <= 5


def test_intervals_hold_as_often_as_they_say() -> None:
    """Sixty nights of one server: what was planted lies in nine of ten intervals, and more."""
    server = Server(slower={"disable_cuda_graph=True": 1.3})
    held: list[bool] = []
    for seed in range(60):
        found = told(measured(server, [*TREES, chain(3, disable_cuda_graph=True)], noise_pct=1.5, seed=seed))
        _, low, high = interval(found["cuda_graphs"].title)
        held.append(low <= 30 <= high)
        parts = {one.what: interval(one.value) for one in found["step_split"].evidence}
        held.append(parts["overhead"][1] <= 2.0 <= parts["overhead"][2])
    assert sum(held) >= 0.9 * len(held)
