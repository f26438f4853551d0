"""A space of which nothing that was asked about is legal is refused; values that never are, are told."""

from __future__ import annotations

import pytest

from sweeper.errors import ConfigError
from sweeper.searching.candidates import Candidates
from sweeper.spec import Choice, Parameter, ServerConfig, SpaceSpec

SPACE = SpaceSpec(
    parameters=(
        Parameter(name="algorithm", domain=Choice(values=("none", "draft"))),
        Parameter(name="length", domain=Choice(values=(2, 4, 9)), when={"algorithm": ("draft",)}),
    )
)


def candidates(*forbidden: int) -> Candidates:
    def violations(config: ServerConfig) -> list[str]:
        length = config.flags.get("length")
        return [f"length {length} is too long"] if length in forbidden else []

    return Candidates(SPACE, ServerConfig(), lambda config: config, violations)


def speculates(config: ServerConfig) -> bool:
    return config.flags["algorithm"] != "none"


def test_a_night_without_what_was_asked_about_is_refused_with_the_reasons() -> None:
    with pytest.raises(ConfigError, match="none of the 3 speculative combinations is legal") as caught:
        candidates(2, 4, 9).require_any(speculates)
    assert len(caught.value.mistakes) == 3


def test_one_legal_configuration_is_enough_and_dead_values_are_told() -> None:
    some = candidates(9)
    some.require_any(speculates)
    assert some.never_legal() == ["length: 9 is never legal here: no configuration with it is tried"]
    assert candidates().never_legal() == []


def test_values_that_are_rewritten_into_one_trial_are_legal_all_the_same() -> None:
    def canonical(config: ServerConfig) -> ServerConfig:
        return config.with_flags({"length": 2}) if "length" in config.flags else config

    same = Candidates(SPACE, ServerConfig(), canonical, lambda config: [])
    assert len(same.enumerated or {}) == 2
    assert same.never_legal() == []
