"""What a sweep's owner is told before it begins."""

from __future__ import annotations

import pytest

from sweeper.commands.notes import shown_secrets_notes, zone_notes
from sweeper.config import load

pytestmark = pytest.mark.compose


@pytest.mark.parametrize("zone", ["Mars/Olympus", "CET-1CEST,M3.5.0,M10.5.0/3"])
def test_an_end_in_a_zone_that_nobody_knows_is_told_unless_it_names_its_own(
    zone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", zone)
    (note,) = zone_notes(load(["budget.until=07:00"]).spec)
    assert note.startswith(f"budget.until: TZ={zone} is no zone that this machine knows by its rules; 07:00 is ")
    assert zone_notes(load(["budget.until=07:00 UTC"]).spec) == []
    assert zone_notes(load([]).spec) == []
    monkeypatch.setenv("TZ", "UTC")
    assert zone_notes(load(["budget.until=07:00"]).spec) == []


def test_a_secret_that_was_taken_out_is_shown_to_nobody() -> None:
    assert shown_secrets_notes(["notify.webhook=***", "budget.trials=3"]) == []
    (note,) = shown_secrets_notes(["notify.webhook=https://hooks.example.org/T0"])
    assert note.startswith("notify.webhook=***: every user of this machine can read it")
