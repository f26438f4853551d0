"""Spaces and how configurations become arrays."""

from __future__ import annotations

import numpy as np
import pytest

from sweeper.samplers.physics import Config, Roles, SearchParameter, SearchSpace
from sweeper.samplers.physics.encoding import Encoding
from sweeper.samplers.physics.ledger import Ledger, Rulebook
from tests.samplers.servers import ROLES, SPACE, all_configs

TOKENS = SearchParameter("draft_tokens", tuple(range(2, 65)), ordered=True)
TREES = (
    SearchParameter("num_steps", tuple(range(1, 9)), ordered=True),
    SearchParameter("topk", (1, 2, 4, 8), ordered=True),
    TOKENS,
)
TREE_ROLES = Roles((), "num_steps", "topk", "draft_tokens")


def test_mistakes_are_told_all_at_once() -> None:
    with pytest.raises(ValueError, match=r"a: declared 2 times; b: depends on c"):
        SearchSpace(
            (SearchParameter("a", (1,)), SearchParameter("a", (2,)), SearchParameter("b", (1,), when={"c": (1,)}))
        )


@pytest.mark.parametrize("values", [(), (1, 1), (1, 1.0)])
def test_values_must_be_there_once(values: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="a:"):
        SearchParameter("a", values)


def test_true_is_not_one() -> None:
    assert SearchParameter("a", (1, True, "1")).values == (1, True, "1")


def test_a_parameter_exists_only_where_its_conditions_hold() -> None:
    config: Config = {"algorithm": "none", "num_steps": 3, "topk": 4, "draft_tokens": 8, "protocol": "LL"}
    assert SPACE.active(config) == {"algorithm": "none", "protocol": "LL"}


def test_every_configuration_comes_back_from_the_arrays() -> None:
    encoding = Encoding(SPACE, ROLES)
    configs = all_configs()
    batch, kept = encoding.encode(configs, np.zeros(len(configs), dtype=bool))
    assert len(kept) == len(configs)
    for index in range(0, len(configs), 7):
        head = encoding.head_of(batch.take([index]))
        if head >= 0:
            assert encoding.config(head, batch.flags[index]) == configs[index]


def test_a_chain_that_is_told_by_its_tokens_alone_drafts_one_less() -> None:
    """As n-grams are, beside a drafter whose steps are told."""
    space = SearchSpace(
        (
            SearchParameter("drafter", ("none", "eagle", "ngram")),
            SearchParameter("num_steps", (1, 3), ordered=True, when={"drafter": ("eagle",)}),
            SearchParameter("draft_tokens", (4, 8, 12), ordered=True, when={"drafter": ("ngram",)}),
        )
    )
    roles = Roles(("drafter",), "num_steps", None, "draft_tokens", lambda config: config["drafter"] != "none")
    heads = Encoding(space, roles).heads
    shapes = {(head.drafter[0], head.num_steps, head.draft_tokens) for head in heads if head.speculative}
    assert shapes == {("eagle", 1, 2), ("eagle", 3, 4), ("ngram", 3, 4), ("ngram", 7, 8), ("ngram", 11, 12)}


def test_each_shape_is_proposed_once_in_the_words_of_the_server() -> None:
    """A chain verifies num_steps + 1 tokens, whatever is asked for; a tree no more than it holds."""
    encoding = Encoding(SearchSpace(TREES), TREE_ROLES)
    shapes = [(head.num_steps, head.topk, head.draft_tokens) for head in encoding.heads]
    assert len(set(shapes)) == len(shapes)
    for head in encoding.heads:
        assert head.values["draft_tokens"] == head.draft_tokens


def test_token_counts_that_fill_tiles_are_among_the_proposed() -> None:
    encoding = Encoding(SearchSpace(TREES), TREE_ROLES)
    tokens = {head.draft_tokens for head in encoding.heads if head.topk == 4}
    assert {8, 16, 24, 32, 48, 64} <= tokens
    assert len(tokens) < 25


def test_flags_that_do_not_exist_are_left_out() -> None:
    parameters = (
        SearchParameter("algorithm", ("none", "EAGLE3")),
        SearchParameter("num_steps", (1, 2), when={"algorithm": ("EAGLE3",)}),
        SearchParameter("verify_backend", ("x", "y"), when={"algorithm": ("EAGLE3",)}),
        SearchParameter("buffer", (1, 2), when={"verify_backend": ("y",)}),
    )
    encoding = Encoding(
        SearchSpace(parameters), Roles(("algorithm",), "num_steps", speculates=lambda c: "num_steps" in c)
    )
    plain = next(i for i, head in enumerate(encoding.heads) if not head.speculative)
    drafting = next(i for i, head in enumerate(encoding.heads) if head.speculative)
    batch = encoding.combine(np.array([plain, drafting, drafting]), np.array([[1, 1], [0, 1], [1, 1]]))
    assert batch.flags.tolist() == [[-1, -1], [0, -1], [1, 1]]
    assert encoding.config(plain, batch.flags[0]) == {"algorithm": "none"}
    assert encoding.config(drafting, batch.flags[1]) == {
        "algorithm": "EAGLE3",
        "num_steps": 1,
        "verify_backend": "x",
    }


def test_rules_are_asked_once_per_configuration() -> None:
    asked: list[Config] = []

    def normal(config: Config) -> Config | None:
        asked.append(config)
        return None if config["a"] == 3 else {"a": int(config["a"]) % 2}

    space = SearchSpace((SearchParameter("a", (1, 2, 3)),), normal)
    ledger = Ledger(Rulebook(space), [{"a": 1}, {}, {"temperature": 0.5}])
    assert [ledger.is_free({"a": a}) for a in (1, 2, 3, 2)] == [False, True, False, True]
    assert len(asked) == 3
