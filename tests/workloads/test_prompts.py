"""Files of prompts: the formats people have, what of them is sent, and every mistake with its line."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeper.prompts import files
from sweeper.prompts.files import choose, read_prompts
from sweeper.workload_spec import Prompt

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def written(*rows: object, name: str = "q.jsonl") -> Path:
        lines = [row if isinstance(row, str) else json.dumps(row, ensure_ascii=False) for row in rows]
        (tmp_path / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
        return tmp_path / name

    return written


def only(path: Path) -> Prompt:
    (prompt,) = read_prompts(path).prompts
    return prompt


def mistake(path: Path) -> str:
    with pytest.raises(ValueError) as caught:
        read_prompts(path)
    text = str(caught.value)
    assert text.startswith(f"{path}: ")
    assert "\n" not in text
    return text.removeprefix(f"{path}: ")


def test_our_own_shape_is_read_as_it_is(write: Write) -> None:
    row = {"id": "queue", "text": " Write a queue.\n", "prompt_class": "code"}
    assert only(write(row)) == Prompt(id="queue", text=" Write a queue.\n", prompt_class="code")


def test_a_prompt_is_a_text(write: Write) -> None:
    assert only(write({"prompt": "Why?", "output_tokens": 3})).text == "Why?"


def test_of_a_sharegpt_conversation_the_first_turn_is_sent(write: Write) -> None:
    turns = [
        {"from": "system", "value": ""},
        {"from": "human", "value": "Why?"},
        {"from": "gpt", "value": "Because."},
        {"from": "human", "value": "And?"},
    ]
    found = only(write({"id": "x_0", "conversations": turns}))
    assert (found.id, found.text, found.prompt_class) == ("x_0", "Why?", "default")


def test_the_turns_of_a_conversation_may_be_written_as_messages(write: Write) -> None:
    turns = [{"role": "system", "content": ""}, {"role": "user", "content": "Why?"}, {"role": "assistant"}]
    assert only(write({"id": "x_0", "conversations": turns})).text == "Why?"
    lost = [{"role": "system", "content": "be nice"}, {"role": "user", "content": "Why?"}]
    assert "begins with a question" in mistake(write({"conversations": lost}))


LOST = [
    [{"from": "gpt", "value": "One."}, {"from": "human", "value": "continue"}],
    [{"from": "system", "value": "be nice"}, {"from": "human", "value": "Why?"}],
]


@pytest.mark.parametrize("turns", LOST)
def test_a_sharegpt_row_whose_question_would_lose_what_was_before_it_is_left_out(
    turns: list[dict[str, str]], write: Write
) -> None:
    whole = {"id": "b", "conversations": [{"from": "human", "value": "What?"}]}
    assert only(write({"id": "a", "conversations": turns}, whole)).text == "What?"


def test_a_sharegpt_file_of_which_nothing_is_left_says_why(write: Write) -> None:
    says = mistake(write(*({"conversations": turns} for turns in LOST)))
    assert says == "holds no prompts: none of its 2 conversations begins with a question"


def test_a_sharegpt_file_may_be_one_list_with_empty_conversations_and_equal_ids(write: Write) -> None:
    rows = [{"id": "x", "conversations": [{"from": "human", "value": f"Why {n}?"}]} for n in range(3)] + [
        {"id": "y", "conversations": []},
        {"id": "z", "conversations": [{"from": "gpt", "value": "Hm."}]},
    ]
    for text in (json.dumps(rows), json.dumps(rows, indent=2)):
        found = read_prompts(write(text, name="sharegpt.json")).prompts
        assert [(prompt.id, prompt.text) for prompt in found] == [
            ("x", "Why 0?"),
            ("x-2", "Why 1?"),
            ("x-3", "Why 2?"),
        ]


EMPTY: list[list[dict[str, object]]] = [
    [],
    [{"from": "human", "value": ""}],
    [{"from": "human", "value": " \n\u200b"}, {"from": "gpt", "value": "Hm."}],
    [{"from": "human"}],
    [{"role": "system", "content": ""}, {"role": "user", "content": None}],
]


@pytest.mark.parametrize("turns", EMPTY)
def test_a_conversation_without_a_question_is_left_out_and_counted(
    turns: list[dict[str, object]], write: Write
) -> None:
    asked = [{"conversations": [{"from": "human", "value": f"Why {n}?"}]} for n in range(2)]
    found = read_prompts(write(asked[0], {"conversations": turns}, asked[1], {"conversations": LOST[0]}))
    assert [prompt.text for prompt in found.prompts] == ["Why 0?", "Why 1?"]
    assert found.left_out == (
        "2 of 4 rows are left out: 1 without a question (the first: line 2), "
        "1 cut out of the middle of a conversation (the first: line 4)"
    )


def test_a_file_of_which_most_conversations_are_empty_is_refused(write: Write) -> None:
    asked = {"conversations": [{"from": "human", "value": "Why?"}]}
    empty: dict[str, object] = {"conversations": []}
    assert (
        read_prompts(write(asked, empty)).left_out
        == "1 of 2 rows is left out: 1 without a question (the first: line 2)"
    )
    assert mistake(write(asked, empty, empty)) == (
        "line 2: holds no question, as 2 of its 3 conversations: is the file whole?"
    )
    assert mistake(write(empty)) == "holds no prompts: none of its 1 conversations begins with a question"


def test_a_file_of_which_most_conversations_are_cut_is_taken(write: Write) -> None:
    asked, cut = {"conversations": [{"from": "human", "value": "Why?"}]}, {"conversations": LOST[0]}
    found = read_prompts(write(asked, cut, cut))
    assert len(found.prompts) == 1
    assert found.left_out.startswith("2 of 3 rows are left out: 2 cut out of the middle")


def test_an_entry_of_a_list_on_one_line_is_named_by_its_number(write: Write) -> None:
    rows: list[dict[str, object]] = [{"conversations": [{"from": "human", "value": "Why?"}]} for _ in range(3)]
    rows[2] = {"conversations": [{"from": "human", "value": "x" * 100_001}]}
    assert "line 1, entry 3: its text has 100,001" in mistake(write(json.dumps(rows)))


def test_of_an_mt_bench_question_the_first_turn_is_sent_and_the_category_is_its_class(write: Write) -> None:
    found = only(write({"question_id": 81, "category": "writing", "turns": ["Write.", "Rewrite."]}))
    assert found == Prompt(id="81", text="Write.", prompt_class="writing")


@pytest.mark.parametrize("content", ["Why?", [{"type": "text", "text": "Wh"}, {"type": "text", "text": "y?"}]])
def test_the_only_question_of_messages_is_sent(content: object, write: Write) -> None:
    messages = [{"role": "user", "content": content}, {"role": "assistant", "content": "Because."}]
    assert only(write({"messages": messages})).text == "Why?"


@pytest.mark.parametrize("roles", [["system", "user"], ["user", "assistant", "user"], ["assistant"], []])
def test_messages_of_which_something_would_be_lost_are_refused(roles: list[str], write: Write) -> None:
    messages = [{"role": role, "content": "x"} for role in roles]
    assert "are more than one question" in mistake(write({"messages": messages}))


def test_a_row_without_an_id_is_named_by_its_text_wherever_it_stands(write: Write) -> None:
    first = [prompt.id for prompt in read_prompts(write({"text": "a"}, {"text": "b"})).prompts]
    later = [prompt.id for prompt in read_prompts(write({"text": "new"}, {"text": "b"}, {"text": "a"})).prompts]
    assert first == [later[2], later[1]]
    assert len(set(later)) == 3


def test_equal_texts_without_ids_are_told_apart(write: Write) -> None:
    names = [prompt.id for prompt in read_prompts(write({"text": "a"}, {"text": "a"}, {"text": "a"})).prompts]
    assert names == [names[0], f"{names[0]}-2", f"{names[0]}-3"]


def test_empty_lines_a_mark_at_the_beginning_and_other_line_ends_are_no_mistakes(tmp_path: Path) -> None:
    path = tmp_path / "q.jsonl"
    path.write_bytes('\ufeff{"text": "a\u2028b"}\r\n\r\n{"text": "b"}'.encode())
    assert [prompt.text for prompt in read_prompts(path).prompts] == ["a\u2028b", "b"]


GOOD = {"text": "fine"}
BROKEN: list[tuple[tuple[object, ...], str]] = [
    ((GOOD, GOOD, '{"text": "x"'), "line 3: is not JSON (Expecting ',' delimiter)"),
    ((GOOD, "plain text"), "line 2: is not JSON (Expecting value)"),
    ((GOOD, "[" * 100_000), "line 2: is not JSON (it is nested too deeply)"),
    ((GOOD, '{"text": ' + "9" * 5000 + "}"), "line 2: is not JSON (Exceeds the limit"),
    ((GOOD, {"question": "x"}), 'line 2: has no text: "text", "prompt"'),
    ((GOOD, {"text": " \n"}), "line 2: its text is empty"),
    ((GOOD, {"text": "\u200b\ufeff \u2060"}), "line 2: its text is empty"),
    ((GOOD, {"text": 3.5}), "line 2: its text should be text, not 3.5"),
    ((GOOD, {"text": {"x": 1}}), "line 2: its text should be text, not {'x': 1}"),
    ((GOOD, {"text": "x" * 100_001}), "line 2: its text has 100,001 characters, more than 100,000"),
    ((GOOD, '{"text": "\\ud800"}'), "line 2: its text holds half a character"),
    ((GOOD, '"only text"'), "line 2: should be an object with a text, not"),
    ((GOOD, {"turns": []}), "line 2: turns should be a list"),
    ((GOOD, {"conversations": "x"}), "line 2: conversations should be a list of objects"),
    (
        (GOOD, {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}),
        "line 2: its message holds somet",
    ),
    ((GOOD, {"text": "x", "id": ["a"]}), "line 2: id should be text or a whole number"),
    ((GOOD, {"text": "x", "category": True}), "line 2: category should be text"),
    (({"id": 1, "text": "a"}, "", {"id": "1", "text": "b"}), "line 3: the id '1' is that of line 1"),
    (('[{"id": 1, "text": "a"}, {"id": 1, "text": "b"}]',), "line 1, entry 2: the id '1' is that of line 1"),
    (("[", '{"text": "a"},', '{"text": "b"}', '{"text": "c"}]'), "line 3: after this entry a comma"),
    (("[", '{"text": "a"},', "{text: 3}]"), "line 3: is not JSON"),
    (('[{"text": "a"}]', "{}"), "line 1: something stands behind"),
    (("[]",), "holds no prompts"),
    (("", "  "), "holds no prompts"),
    (({"conversations": []},), "holds no prompts: none of its 1"),
    # token ids instead of text
    (({"text": [1, 2, 3]},), "line 1: holds token ids instead of text: random tokens tell nothing"),
    (({"prompt": [5]},), "line 1: holds token ids"),
    (({"input_ids": [1, 2, 3]},), "line 1: holds token ids"),
    (([1, 2, 3],), "line 1: holds token ids"),
    (([[1, 2], [3, 4]],), "line 1: holds token ids"),
]


@pytest.mark.parametrize(("rows", "says"), BROKEN, ids=[says for _, says in BROKEN])
def test_a_mistake_names_the_line(rows: tuple[object, ...], says: str, write: Write) -> None:
    assert mistake(write(*rows)).startswith(says)


def test_of_many_mistakes_the_first_is_told_and_the_others_are_counted(write: Write) -> None:
    assert mistake(write(GOOD, {"text": ""}, {"text": ""}, "x")).endswith(
        "its text is empty (and 2 more mistakes)"
    )


def test_what_is_not_utf8_is_told_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "q.jsonl"
    path.write_bytes(b'{"text": "a"}\n{"text": "caf\xe9"}\n')
    assert mistake(path).startswith("line 2: is not UTF-8")


def test_a_folder_is_not_a_file(tmp_path: Path) -> None:
    assert mistake(tmp_path) == "is not a file"
    assert mistake(Path("/dev/zero")) == "is not a file"
    assert mistake(tmp_path / "nowhere") == "there is no such file"


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "q.jsonl"
    with path.open("wb") as file:
        file.truncate(files.MAX_FILE_BYTES + 1)  # a hole: takes no space
    assert "more than 64 MiB" in mistake(path)


KEYS = [(f"id {n}", "abc"[min(2, n // 10)]) for n in range(60)]  # 10 of a, 10 of b, 40 of c
SEEDS = st.integers(0, 2**32 - 1)


@given(st.integers(1, 60), SEEDS)
def test_as_many_of_each_class_are_chosen_as_there_are(count: int, seed: int) -> None:
    chosen = choose(KEYS, count, seed)
    assert chosen == sorted(set(chosen))
    assert len(chosen) == count
    found = Counter(KEYS[index][1] for index in chosen)
    share = count / 3 if count <= 30 else 10
    assert all(int(share) <= found[kind] <= -(-share // 1) for kind in "ab")


@given(st.permutations(KEYS), SEEDS)
def test_the_choice_depends_on_the_seed_and_not_on_the_order(keys: list[tuple[str, str]], seed: int) -> None:
    assert {keys[index] for index in choose(keys, 7, seed)} == {KEYS[index] for index in choose(KEYS, 7, seed)}


def test_more_prompts_include_the_fewer_and_another_seed_chooses_others() -> None:
    assert set(choose(KEYS, 10, 1)) < set(choose(KEYS, 25, 1))
    assert choose(KEYS, 10, 1) != choose(KEYS, 10, 2)
