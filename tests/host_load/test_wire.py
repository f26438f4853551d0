"""The client's packing and un-framing, and what is read back of its answer: without loss, or one clear error."""

from __future__ import annotations

import ast
import base64
import json
import subprocess
import sys
import zlib
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeper.engines.sglang.answers import parse_generate
from sweeper.measuring.host_load import PIECES_AT_ONCE, client_text
from sweeper.measuring.load_http import Body, Failed
from sweeper.measuring.load_packing import Packer
from sweeper.measuring.load_wire import PIECE_CHARS, Exchange, pieces, read_answer, unpacked

LINES = st.lists(st.binary(max_size=200).map(lambda line: line.replace(b"\n", b"")), max_size=30)
JSON_LIKE = st.lists(st.text('"\\{}:,ab ', max_size=60).map(str.encode), max_size=30)


def packed(lines: Sequence[bytes], gap_s: float = 0.01) -> bytes:
    packer = Packer()
    for number, line in enumerate(lines):
        packer.add(number * gap_s, line)
    packer.end()
    return b"".join(packer.packed)


def told(**changes: Any) -> dict[str, Any]:
    lines = base64.b64encode(packed([b"data: 1"])).decode()
    exchange = {"sent_ms": 0.5, "late_ms": 0.0, "e2e_ms": 7.0, "lines": lines, "error": "", "hung": False}
    return {"exchanges": [{**exchange, **changes}], "cpu_s": 0.25, "wall_s": 1.5}


def printed(answer: object) -> bytes:
    return b"\nspecsweep-load " + base64.b64encode(zlib.compress(json.dumps(answer).encode())) + b" end\n"


def sglang_lines(count: int) -> list[bytes]:
    """A real shape: each event repeats the whole text and all token ids."""
    text, ids, found = "", [], []
    for number in range(count):
        text += f' word{number * number % 991}"' if number % 5 == 3 else f" word{number * number % 991}"
        ids.append(number * 7919 % 160000)
        reason = {"type": "length", "length": count} if number == count - 1 else None
        meta = {"id": "f60136", "finish_reason": reason, "prompt_tokens": 235, "completion_tokens": number + 1}
        event = {"text": text, "output_ids": ids, "meta_info": meta}
        found.append(b"data: " + json.dumps(event, separators=(",", ":")).encode())
    return [*found, b"data: [DONE]"]


@given(LINES | JSON_LIKE)
def test_packed_lines_come_back_as_they_were(lines: list[bytes]) -> None:
    assert [line for _, line in unpacked(packed(lines))] == lines


@given(st.lists(st.floats(0, 0.5), max_size=50))
def test_times_come_back_to_the_microsecond(gaps_s: list[float]) -> None:
    packer, at_s, sent = Packer(), 0.0, []
    for gap_s in gaps_s:
        at_s += gap_s
        sent.append(at_s * 1000)
        packer.add(at_s, b"data: x")
    packer.end()
    times = [at_ms for at_ms, _ in unpacked(b"".join(packer.packed))]
    assert times == pytest.approx(sent, abs=0.001)
    assert all(earlier <= later for earlier, later in pairwise(times))


def test_an_answer_that_repeats_its_whole_text_is_small_and_still_understood() -> None:
    lines = sglang_lines(1024)
    small = packed(lines)
    assert sum(map(len, lines)) > 6_000_000
    assert len(small) < 40_000  # 64 of them, as base64: 3.4 MB of the 8 MiB that a script may say
    answer = parse_generate(Exchange(0.0, e2e_latency_ms=11_000, packed=small).response())
    assert (answer.num_output_tokens, answer.finish_reason) == (1024, "length")
    assert answer.text == json.loads(lines[-2].removeprefix(b"data: "))["text"]


@given(st.data())
def test_damaged_lines_are_one_clear_error(data: st.DataObject) -> None:
    whole = packed(sglang_lines(20))
    assert_clear(lambda: unpacked(damage(data, whole)))


@given(st.data())
def test_damaged_records_are_one_clear_error(data: st.DataObject) -> None:
    """Damage that the checksum does not see: a client that speaks another dialect."""
    records = zlib.decompress(packed(sglang_lines(5)))
    pack = zlib.compressobj(6, zlib.DEFLATED, 13)
    hurt = pack.compress(damage(data, records)) + pack.flush()
    assert_clear(lambda: unpacked(hurt))


@given(st.data())
def test_a_damaged_answer_is_one_clear_error(data: st.DataObject) -> None:
    assert_clear(lambda: read_answer(damage(data, printed(told())), 1))


def damage(data: st.DataObject, whole: bytes) -> bytes:
    """Something else in the place of a piece."""
    start = data.draw(st.integers(0, len(whole)))
    end = data.draw(st.integers(start, min(len(whole), start + 30)))
    return whole[:start] + data.draw(st.binary(max_size=30)) + whole[end:]


def assert_clear(read: Any) -> None:
    said = ""
    try:
        read()
    except ValueError as error:
        said = str(error)
    assert not said or "damaged" in said or "answers in" in said or "answers for" in said
    assert len(said) < 1000


def test_chatter_around_the_answer_is_ignored() -> None:
    exchanges, cpu_s, wall_s = read_answer(b"Welcome!\n" + printed(told()) + b"bye\n", 1)
    assert (cpu_s, wall_s) == (0.25, 1.5)
    assert exchanges[0].response().lines == ((0.0, b"data: 1"),)
    assert exchanges[0].e2e_latency_ms == 7.0


@pytest.mark.parametrize(
    "stdout",
    [b"", b"Traceback", printed(told()) * 2, printed(told())[:-6], printed({}), printed([]), printed(None)],
)
def test_no_whole_answer_is_an_error(stdout: bytes) -> None:
    with pytest.raises(ValueError, match="answer"):
        read_answer(stdout, 1)


@pytest.mark.parametrize(
    "wrong",
    [{"sent_ms": -1}, {"sent_ms": None}, {"e2e_ms": float("nan")}, {"e2e_ms": True}, {"e2e_ms": 0},
     {"error": 5}, {"lines": 7}, {"lines": "?"}],
)  # fmt: skip
def test_nonsense_in_the_answer_is_an_error(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="damaged"):
        read_answer(printed(told(**wrong)), 1)


def test_an_answer_for_other_requests_is_an_error() -> None:
    with pytest.raises(ValueError, match="1 of 2 requests"):
        read_answer(printed(told()), 2)


def test_a_bomb_is_not_unpacked() -> None:
    pack = zlib.compressobj(9, zlib.DEFLATED, 13)
    with pytest.raises(ValueError, match="damaged"):
        unpacked(pack.compress(b"0,0,0,80000000:" + b"x" * 80_000_000) + pack.flush())
    grown = b"0,0,0,1000000:" + b"x" * 1_000_000 + b";" + b"0;" * 100  # lines that repeat the one before
    pack = zlib.compressobj(9, zlib.DEFLATED, 13)
    with pytest.raises(ValueError, match="damaged"):
        unpacked(pack.compress(grown) + pack.flush())


@given(st.lists(st.binary(min_size=1, max_size=40), max_size=8), st.lists(st.integers(0, 600), max_size=12))
def test_a_chunked_body_is_the_same_however_it_is_cut(chunks: list[bytes], cuts: list[int]) -> None:
    framed = b"".join(b"%X;x=y\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\n\r\n"
    whole = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n" + framed
    marks = sorted({0, len(whole), *(cut % len(whole) for cut in cuts)})
    body = Body()
    assert b"".join(body.feed(whole[a:b]) for a, b in pairwise(marks)) == b"".join(chunks)
    assert body.is_complete


@pytest.mark.parametrize("text", [b"SSH-2.0-x\r\n\r\n", b"HTTP/1.1 abc\r\n\r\n", b"\r\n\r\n",
                                  b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n", b"x" * 70_000,
                                  b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\n",
                                  b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"])  # fmt: skip
def test_what_is_not_http_is_said_so(text: bytes) -> None:
    with pytest.raises(Failed, match=r"not HTTP/1\.1"):
        Body().feed(text)


@given(st.binary(max_size=300))
def test_no_bytes_break_the_client(text: bytes) -> None:
    body = Body()
    for start in (b"", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"):
        try:
            body.feed(start + text)
        except Failed:
            body = Body()


def test_the_client_fits_into_an_argument_and_into_python_3_8() -> None:
    assert len(client_text()) < 32_000
    starter = ast.parse(client_text(), feature_version=(3, 8))
    (texts,) = [ast.literal_eval(node) for node in ast.walk(starter) if isinstance(node, ast.Dict)]
    sent: set[str] = set()
    for module, text in texts.items():
        tree = ast.parse(text, feature_version=(3, 8))
        names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
        names |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        assert {name for name in names - sent if name.partition(".")[0] not in sys.stdlib_module_names} == set()
        sent.add(module)
    assert len(sent) == 3


@pytest.mark.host
def test_the_client_needs_no_file_on_the_host_and_names_the_line_of_an_error(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    argv = [sys.executable, "-I", "-S", "-B", "-c", client_text()]
    told = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, env={}, check=False)
    assert told.returncode == 1
    assert told.stderr.startswith("SPECSWEEP_LOAD_0 is not set")
    broken = subprocess.run(
        argv, cwd=tmp_path, capture_output=True, text=True, env={"SPECSWEEP_LOAD_0": "?"}, check=False
    )
    assert 'File "sweeper.measuring.load_client", line ' in broken.stderr


@given(st.integers(0, 3 * PIECE_CHARS))
def test_no_piece_of_a_job_is_longer_than_an_argument_may_be(length: int) -> None:
    cut = pieces("x" * length)
    assert "".join(cut) == "x" * length
    assert max(map(len, cut), default=0) < 128 * 1024 - 100
    assert PIECES_AT_ONCE * PIECE_CHARS < 1_500_000
