"""Hooks that lack the secret that a study did not keep."""

from __future__ import annotations

import pytest

from sweeper.config import load, load_place

pytestmark = pytest.mark.compose


@pytest.mark.parametrize(
    ("word", "setting"),
    [
        ("notify.webhook=***", "notify.webhook"),
        ("notify={webhook:***}", "notify.webhook"),
        ("notify.command=[curl,-H,'Authorization: Bearer ***']", "notify.command"),
        ("notify.command=[tell,--token,***]", "notify.command"),
        ("notify.command=[curl,https://***@example.org/x]", "notify.command"),
    ],
)
def test_a_hook_that_lacks_its_secret_is_left_out_and_said(word: str, setting: str) -> None:
    loaded = load([word, "notify.events=[finished]"])
    assert (loaded.spec.notify.webhook, loaded.spec.notify.command) == ("", ())
    assert loaded.spec.notify.events == ("finished",)
    (line,) = loaded.untold
    assert line.startswith(f"{setting}: no longer ")
    assert load_place([word]).notify.webhook == ""


@pytest.mark.parametrize(
    "words",
    [
        ("notify.command=[mail,-s,'*** night ***',me@example.org]",),
        ("notify.webhook=***", "notify.webhook_env=HOOK"),
        ("notify.webhook=***", "notify.webhook=https://example.org/x"),
        (),
    ],
)
def test_nothing_is_said_where_somebody_is_told_as_before(words: tuple[str, ...]) -> None:
    loaded = load(words)
    assert loaded.untold == ()
    asked = loaded.spec.notify
    assert bool(asked.command or asked.webhook or asked.webhook_env) is bool(words)
