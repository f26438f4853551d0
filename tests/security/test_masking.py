from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from launchers.masking import hide_shapes, masked_words, secret_words
from sweeper.known_secrets import KnownSecrets

SHOWN = (
    "ServerArgs(model_path='/m', api_key='{}', admin_api_key=None)",
    "HF_TOKEN={} other",
    "  hf_token: {}",
    "Authorization: Bearer {}",
    "{{'authorization': 'Basic {}'}}",
    "postgresql+psycopg://specsweep:{}@db.example/study",
    "ftp://{}@proxy:3128",
    "--api-key {} --port 3",
    "--hub-token={}",
    "engine.command=[python,--api-key,{},--port]",
    "['--hf-token', '{}']",
    '{{"password": "{}"}}',
    "password={}",
    "export AWS_SECRET_ACCESS_KEY={}",
    "MY_OWN_TOKEN='{}'",
)
INNOCENT = (
    "#new-seq: 1, #new-token: 123, #cached-token: 0, token usage: 0.05",
    "BOS token = 1 '<s>'; EOS token        = 2 '</s>'",
    "max_total_num_tokens=412345, chunked_prefill_size=8192",
    "--special-token 5 --num-tokens 7",
    "--api-key, -k KEY",
    "api_key=None, hf_token: null, password=False",
    "password: refused by the host",
    "a token may be wrong; see --help",
    "http://127.0.0.1:30000/v1/completions",
    "http://127.0.0.1:30000/v1/models/m@main",
    "key: value",
)


@pytest.mark.parametrize("text", SHOWN)
def test_a_secret_is_hidden_however_a_program_shows_it(text: str) -> None:
    shown = text.format("s3same99")
    assert "s3same99" not in hide_shapes(shown)
    assert hide_shapes(shown).split("***")[0] == shown.split("s3same99")[0].removesuffix("specsweep:")
    assert hide_shapes(hide_shapes(shown)) == hide_shapes(shown)


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("postgresql://me:s3/same@db/x", "postgresql://***@db/x"),
        ("postgresql://:s3same@db/x", "postgresql://***@db/x"),
        ("postgresql://me:s3@same@db:5432/x", "postgresql://***@db:5432/x"),
        ("postgresql:///x?user=me&sslpassword=s3same&host=db", "postgresql:///x?user=me&sslpassword=***&host=db"),
        ("postgresql:///x?password=s3same", "postgresql:///x?password=***"),
    ],
)
def test_the_password_of_an_address_is_hidden_wherever_it_stands(address: str, shown: str) -> None:
    assert hide_shapes(address) == shown
    assert masked_words([f"study.storage={address}"]) == (f"study.storage={shown}",)


@pytest.mark.parametrize("text", INNOCENT)
def test_what_is_no_secret_stays(text: str) -> None:
    assert hide_shapes(text) == text


@pytest.mark.parametrize("token", ["hf_" + "a1" * 17, "sk-" + "x" * 40, "ghp_" + "A" * 36, "AKIA" + "Q" * 16])
def test_tokens_that_name_their_kind_are_hidden_anywhere(token: str) -> None:
    assert hide_shapes(f"loading with {token}, then") == "loading with ***, then"


def test_a_command_line_shows_names_and_no_values() -> None:
    words = [
        "run",
        "--api-key",
        "a",
        "--hf-token=b",
        "engine.env.HF_TOKEN=c",
        "tracking.uri=http://u:d@h",
        "--top-k",
        "3",
    ]
    assert masked_words(words) == (
        "run", "--api-key", "***", "--hf-token=***", "engine.env.HF_TOKEN=***", "tracking.uri=http://***@h",
        "--top-k", "3",
    )  # fmt: skip
    assert list(secret_words(words)) == ["a", "b", "c", "d"]


def test_a_reference_to_a_variable_is_no_secret() -> None:
    assert (
        list(secret_words(["engine.env.HF_TOKEN=${oc.env:HF_TOKEN}", "engine.env.HF_TOKEN='${oc.env:X}'"])) == []
    )


def test_of_the_environment_only_what_its_name_gives_away_is_a_secret() -> None:
    known = KnownSecrets()
    known.learn_environment(
        {"HF_TOKEN": "abcdefgh1", "SHORT_KEY": "true", "HOME": "/home/someone", "P": "http://u:longpassword@p"}
    )
    assert known.values == {"abcdefgh1", "longpassword"}
    assert "abcdefgh1" not in repr(known)


@given(secret=st.text(min_size=4, max_size=40), before=st.text(max_size=20), after=st.text(max_size=20))
def test_a_known_secret_is_hidden_in_any_text_bytes_and_json(secret: str, before: str, after: str) -> None:
    known = KnownSecrets()
    known.learn([secret])
    text = f"{before}{secret}{after}"
    assert secret == "***" * (len(secret) // 3) or secret not in known.hide(text)
    assert known.hide_json({"a": [text, {"b": text}], "n": 1.5}) == {
        "a": [known.hide(text), {"b": known.hide(text)}],
        "n": 1.5,
    }


@given(content=st.binary(max_size=200))
def test_bytes_that_are_no_text_stay_as_they_are(content: bytes) -> None:
    known = KnownSecrets()
    known.learn(["planted-secret"])
    assert (
        known.hide_bytes(b"\xff\xfe" + content.replace(b"=", b"").replace(b":", b"").replace(b"-", b""))[:2]
        == b"\xff\xfe"
    )


def test_the_longer_of_two_secrets_is_hidden_whole() -> None:
    known = KnownSecrets()
    known.learn(["abcd", "abcdefgh"])
    assert known.hide("abcdefgh abcd") == "*** ***"
