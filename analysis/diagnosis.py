"""What the rules of the diagnosis find in a study that has been read."""

from __future__ import annotations

from analysis.diagnose import Finding, findings
from analysis.reading import Reading


def findings_of(reading: Reading) -> list[Finding]:
    """What the rules find in a study."""
    return findings(
        reading.trials, reading.objective, reading.fingerprint.get("engine.name", ""), _concurrency(reading)
    )


def _concurrency(reading: Reading) -> float:
    """Requests under way at once; one where nothing else was written down."""
    text = reading.fingerprint.get("workload.concurrency", "")
    return float(text) if text.isdecimal() and int(text) > 0 else 1.0
