"""Passwords in text that others wrote: in addresses, options, JSON, environments."""

from __future__ import annotations

import json
import shlex
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from launchers.masking import MASK, hide_shapes, shaped_secrets
from sweeper.errors import ConfigError
from sweeper.storing.addresses import masked
from sweeper.storing.storage import StudyStore

MARK = "zq7"
"""Stands in each piece of every password: none of them may be left."""

SIGNS = "/@:?#%!$&*()+,;=._-~[]{}|^\\"
STORES = ("postgresql", "postgresql+psycopg", "postgres", "mysql+pymysql", "redis", "amqp")
WEB = ("http", "https", "git+ssh", "ftp")
HOSTS = ("db", "db.example", "127.0.0.1:5432", "[::1]:5432", "[fe80::1%25eth0]", "a:1,b:2", "gpu-1.local:8000", "")
PATHS = ("", "/", "/study", "/study?sslmode=require", "/a/b/c")

pieces = st.lists(
    st.tuples(st.sampled_from(SIGNS), st.text(st.sampled_from("abXY019"), max_size=3)), min_size=0, max_size=4
)


@st.composite
def passwords(draw: st.DrawFn, signs: str = SIGNS) -> str:
    """A password of pieces between signs; never one that reads as an option (`?name=`)."""
    found = draw(pieces)
    told = MARK + "".join(f"{sign}{text}{MARK}" for sign, text in found if sign in signs)
    return told if not set("?&;,") & set(told) else told.replace("=", "-")


def addresses(schemes: tuple[str, ...], secrets: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    users = st.sampled_from(["u", "me", "spec_sweep", "me%40corp"])
    return st.builds(
        lambda scheme, user, secret, host, path: f"{scheme}://{user}:{secret}@{host}{path}",
        *(st.sampled_from(schemes), users, secrets, st.sampled_from(HOSTS), st.sampled_from(PATHS)),
    )


encoded = passwords().map(lambda secret: quote(secret, safe=""))
any_address = st.one_of(
    addresses(STORES, passwords()),
    addresses(STORES, st.integers(0, 99999).map(lambda number: f"{number}/{MARK}")),
    addresses(WEB, passwords("/@!$*+=_-~")),
    addresses(WEB, st.integers(0, 99999).map(lambda number: f"{number}/{MARK}")),
    addresses((*STORES, *WEB), encoded),
)


@settings(max_examples=300)
@given(
    st.lists(any_address, min_size=1, max_size=3),
    st.sampled_from(["{}", "cannot reach {}: refused", "'{}'", '("{}",)', "url={} ok", "[{}]", "<{}>"]),
    st.sampled_from([" ", ", ", "\n", " and "]),
)
def test_no_piece_of_a_password_in_an_address_is_left(found: list[str], around: str, between: str) -> None:
    text = around.format(between.join(found))
    hidden = hide_shapes(text)
    assert MARK not in hidden
    assert hidden.count("://***@") == len(found)
    assert hide_shapes(hidden) == hidden


@settings(max_examples=300)
@given(
    st.sampled_from(["postgresql", "https"]),
    st.sampled_from(["db", "db.example:5432", "[::1]:5432", "localhost:8000", "10.0.0.7"]),
    st.sampled_from(["", "/", "/study", "/v1/models/m@main", "/x?mail=a@b.c", "/@scope/package"]),
)
def test_an_address_without_a_user_stays(scheme: str, host: str, path: str) -> None:
    if scheme == "https" or "@" not in path.partition("?")[0]:
        assert hide_shapes(f"GET {scheme}://{host}{path}: 404") == f"GET {scheme}://{host}{path}: 404"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgresql://u:pa@ss/w0rd@host/db", "postgresql://***@host/db"),
        ("postgresql://u:12345/x@host/db", "postgresql://***@host/db"),
        ("http://u:1/x@mlflow:5000/api", "http://***@mlflow:5000/api"),
        ("http://u:pa@ss/w0rd@host/", "http://***@host/"),
        ("postgresql://me@corp:pa/ss@host/db", "postgresql://***@host/db"),
        ("git+ssh://git@github.com/org/repo@v1.2", "git+ssh://***@github.com/org/repo@v1.2"),
        ("ssh://git@host:22/org/repo@v1", "ssh://***@host:22/org/repo@v1"),
        ("http://u:p@host.example/a@b", "http://***@host.example/a@b"),
        ("http://u:p@host/x?mail=a@b.c", "http://***@host/x?mail=a@b.c"),
        ("postgresql://me:hush@db:port/x", "postgresql://***@db:port/x"),
        ("http://u:p@$HOST", "http://***@$HOST"),
        ("a://u:p@h,b://v:q@i", "a://***@h,b://***@i"),
        ("http://registry:4873/@scope/p", "http://registry:4873/@scope/p"),
        ("docker://registry:5000/image@sha256:0123abcd", "docker://registry:5000/image@sha256:0123abcd"),
        ("https://host/a@b/c", "https://host/a@b/c"),
        ("file:///home/me/x@y", "file:///home/me/x@y"),
        ("sqlite:////tmp/a@b.db", "sqlite:////tmp/a@b.db"),
    ],
)  # fmt: skip
def test_where_the_host_begins_is_told(text: str, shown: str) -> None:
    assert hide_shapes(text) == shown


blanks = st.builds(
    lambda secret, more: f"{secret} {more}{MARK}", passwords(), st.sampled_from(["", "b ", "x, y "])
)
SPELLINGS = (
    lambda secret: f"connect(host='db', password={secret!r}, user='me')",
    lambda secret: f"host=db password='{secret.replace(chr(92), chr(92) * 2)}' user=me",
    lambda secret: f'{{"user": "me", "password": {json.dumps(secret)}, "port": 5432}}',
    lambda secret: json.dumps({"text": json.dumps({"db_password": secret, "user": "me"})}),
    lambda secret: f"PGPASSWORD={shlex.quote(secret)} psql",
    lambda secret: f"specsweep run --password {shlex.quote(secret)} --user me",
    lambda secret: f'--db-password="{secret.replace(chr(92), chr(92) * 2)}" --user me',
    lambda secret: f"password: {json.dumps(secret)}\nuser: me",
)


@settings(max_examples=300)
@given(st.one_of(passwords(), blanks), st.sampled_from(SPELLINGS))
def test_no_piece_of_a_quoted_password_is_left(secret: str, spelling: object) -> None:
    assert callable(spelling)
    hidden = hide_shapes(spelling(secret))
    assert MARK not in hidden
    assert MASK in hidden
    assert "me" in hidden or "psql" in hidden


@settings(max_examples=300)
@given(
    passwords("/@:?#%!$*()+._-~[]{}|^"),
    st.sampled_from(["PGPASSWORD={}", "password={} user=me", "password = {}\nuser = me", "a=b&password={}&c=d"]),
    st.sampled_from(["", "\n", ", user=me", ")"]),
)
def test_no_piece_of_a_bare_password_is_left(secret: str, spelling: str, after: str) -> None:
    hidden = hide_shapes(spelling.format(secret) + after)
    assert MARK not in hidden
    assert hidden.endswith(after)


def test_a_whole_environment_shows_no_password_and_all_else() -> None:
    dump = (
        "HOME=/root\nPGPASSWORD=a,b;c&d e\nMYSQL_PWD=x'y\nPWD=/root/x\nDB=postgresql://u:1/2@h/d\nSHELL=/bin/sh\n"
    )
    assert hide_shapes(dump) == (
        "HOME=/root\nPGPASSWORD=*** e\nMYSQL_PWD=***\nPWD=/root/x\nDB=postgresql://***@h/d\nSHELL=/bin/sh\n"
    )


@pytest.mark.parametrize(
    "text",
    [
        "password='' host='db'",
        "password=None, user='me'",
        "password=$PGPASSWORD psql",
        "password=${oc.env:PGPASSWORD}",
        "the password, if any, is asked for",
        "password authentication failed for user \"me\"",
        "fe_sendauth: no password supplied",
        '{"password": null, "user": "me"}',
        "--password-file /etc/x",
        "2 passwords were tried",
    ],
)  # fmt: skip
def test_what_only_speaks_of_passwords_stays(text: str) -> None:
    assert hide_shapes(text) == text


def test_a_password_is_learned_whole() -> None:
    assert shaped_secrets("postgresql://u:pa@ss/w0rd@host/db") == ("pa@ss/w0rd",)
    assert shaped_secrets("host=db password='a b, c' user=me") == ("a b, c",)


@pytest.mark.parametrize("url", ["postgresql://u:pa@ss/w0rd@host/db", "postgresql://u:pa@ss@host/db"])
def test_an_address_that_would_be_taken_for_another_is_refused_and_not_shown(url: str) -> None:
    assert masked(url) == "postgresql://***@host/db"
    with pytest.raises(ConfigError, match="write it as %40") as seen:
        StudyStore.open(url, "night", "sweeps", create=False)
    assert "ss" not in str(seen.value).replace("password", "").replace("pgpass", "").replace("PGPASSWORD", "")
