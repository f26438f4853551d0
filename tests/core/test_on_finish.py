"""What is known of a server that was left serving, whatever has become of its note on the host."""

from __future__ import annotations

import json

import pytest

from launchers.base import ServerHandle
from launchers.standing import KeptServer
from sweeper.nights.on_finish import name_of, note_of

WHOLE = json.dumps({"study": "night", "trial": 5, "key": "k5", "name": "ngram n3"})


def kept(note: str) -> KeptServer:
    return KeptServer(ServerHandle("night-1", "here", 4711, 1, "boot", 30000, "", "night-1"), note)


def test_a_note_says_which_trial_is_served() -> None:
    assert note_of(kept(WHOLE))["key"] == "k5"
    assert name_of(kept(WHOLE)) == "trial 5 of study night, ngram n3, on port 30000"


@pytest.mark.parametrize("note", ["", WHOLE[:30], "[1]", "null", '"k5"', "[" * 100_000, '{"trial": "x"}'])
def test_a_damaged_note_is_one_of_an_unknown_trial(note: str) -> None:
    assert note_of(kept(note)).get("key") is None
    assert name_of(kept(note)) == "server night-1, on port 30000"
