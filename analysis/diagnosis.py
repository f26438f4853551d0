"""The part of the report that says why: what the rules found, what it is drawn from, and what to do next."""

from __future__ import annotations

from analysis.diagnose import Evidence, Finding, findings
from analysis.markup import Markdown, inline, trials
from analysis.reading import Reading

MAX_EVIDENCE = 10

INTERVALS = (
    "Intervals hold with 95 % confidence, those of several settings that are compared all together. What lies "
    "within them is not claimed."
)


def diagnosis(reading: Reading) -> list[str]:
    """Every finding, the most pressing first."""
    found = findings_of(reading)
    if not found:
        return []
    lines = ["## Why", "", INTERVALS]
    for finding in found:
        lines += ["", *_lines(finding)]
    return lines


def findings_of(reading: Reading) -> list[Finding]:
    """What the rules find in a study."""
    return findings(
        reading.trials, reading.objective, reading.fingerprint.get("engine.name", ""), _concurrency(reading)
    )


def _concurrency(reading: Reading) -> float:
    """Requests under way at once; one where nothing else was written down."""
    text = reading.fingerprint.get("workload.concurrency", "")
    return float(text) if text.isdecimal() and int(text) > 0 else 1.0


def _lines(finding: Finding) -> list[str]:
    lines = [f"### {inline(finding.title)}", "", f"{inline(finding.text, 1500)}", ""]
    lines += [f"- {_evidence(one)}" for one in finding.evidence[:MAX_EVIDENCE]]
    if left := len(finding.evidence) - MAX_EVIDENCE:
        lines += [f"- {left} more"] if left > 0 else []
    return [*lines, "", f"**Next:** {inline(finding.next_step, 600)}"]


def _evidence(one: Evidence) -> Markdown:
    where = f" ({trials(one.trials)})" if one.trials else ""
    return Markdown(f"{inline(one.what)}: {inline(one.value)}{where}")
