"""All rows of the table, in the order in which they are played and shown."""

from __future__ import annotations

from tests.chaos import clocks, databases, disks, engines, files, gpus, link, orchestrator, swaps, views
from tests.chaos.table import ROWS, Row

STRUCK = ("orchestrator", "way", "host", "engine", "stores")
PARTS = (orchestrator, clocks, link, disks, gpus, engines, databases, views, files, swaps)


def all_rows() -> list[Row]:
    """By what they strike."""
    return sorted(ROWS, key=lambda row: STRUCK.index(row.where))
