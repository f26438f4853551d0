"""Troubleshooting quotes what specsweep really prints, and has an entry for all that it may stop with."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from sweeper.errors import ExitCode, FailureKind
from tests.docs.pages import DOCS, ROOT

PAGE = (DOCS / "troubleshooting.md").read_text(encoding="utf-8")
REFUSALS = {"StudyMismatch", "SweepAborted", "HostBusy", "AlreadyAtWork", "StopFailed", "SshRefused"}
GAP = "…"
"""Stands for a value in a message."""

HINT = "Either put these back"

ENTRIES = re.findall(r"^### ([^\n]+)\n\n(.*?)(?=^##|\Z)", PAGE, re.M | re.S)
QUOTED = [
    quote
    for line in re.findall(r"^\*\*Printed:\*\* (.*)$", PAGE, re.M)
    for quote in re.findall(r"`([^`]+)`", line)
]
QUOTED += re.findall(r"`(…[^`]*)` and `(…[^`]*)` say why", PAGE)[0] if "say why that" in PAGE else ()


def text_of(node: ast.AST) -> str | None:
    """A string in the code, `…` for what is filled in."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else GAP for part in node.values)
    return None


@cache
def trees() -> list[ast.AST]:
    files = [
        file for folder in ("sweeper", "launchers", "analysis") for file in sorted((ROOT / folder).rglob("*.py"))
    ]
    return [ast.parse(file.read_text(encoding="utf-8")) for file in files]


@cache
def said() -> frozenset[str]:
    """Every text in the code."""
    return frozenset(text for tree in trees() for node in ast.walk(tree) if (text := text_of(node)))


def refusals() -> list[str]:
    """The longest text of what each place that raises one of REFUSALS says first; what to do may follow apart."""
    found = []
    for tree in trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in REFUSALS:
                first = node.args[0] if node.args else node
                texts = [text for part in ast.walk(first) if (text := text_of(part))]
                told = [text for text in texts if re.search(r"\w{3}.*\w{3}", text) and not text.startswith(HINT)]
                longest = max(told, key=len, default="")
                if longest:
                    found.append(longest)
    return found


def quotes(quote: str, message: str) -> bool:
    """Whether the pieces of `quote` follow one another in `message`."""
    pieces = [re.escape(piece.strip()) for piece in quote.split(GAP) if piece.strip(" :;,().")]
    return bool(pieces) and re.search(".*".join(pieces), message, re.S) is not None


@pytest.mark.parametrize("quote", QUOTED)
def test_a_message_is_one_that_is_printed(quote: str) -> None:
    if quote in {kind.value for kind in FailureKind} or quote.startswith("specsweep "):
        return
    assert any(quotes(quote, message) for message in said()), f"nothing prints {quote!r}"


@pytest.mark.parametrize("kind", FailureKind)
def test_every_kind_of_failure_has_an_entry(kind: FailureKind) -> None:
    assert f"[`{kind.value}`](reference/failures.md#{kind.value})" in PAGE


@pytest.mark.parametrize("message", sorted(set(refusals())))
def test_every_refusal_has_an_entry(message: str) -> None:
    if message.startswith("stopped: "):  # what is stopped is told by another message
        return
    assert any(quotes(quote, message) for quote in QUOTED), message


def test_every_exit_code_that_needs_help_is_named() -> None:
    asked = {code.value for code in ExitCode} - {0, 130, 143}
    assert {int(code) for code in re.findall(r"exit code (\d+)", PAGE)} == asked


def test_every_entry_says_what_is_printed_and_what_to_do() -> None:
    assert len(ENTRIES) >= 25
    assert [title for title, text in ENTRIES if "**Printed:**" not in text or "**You:**" not in text] == []


def test_a_message_that_nothing_prints_is_found() -> None:
    assert not any(quotes("GPU memory on … is still hold after … s", message) for message in said())
    assert Path(DOCS / "troubleshooting.md").is_file()
