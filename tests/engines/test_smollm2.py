"""The packaged model's higher-precision copies: made once, never trusted blindly, never half-made."""

from __future__ import annotations

import fcntl
import hashlib
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import gguf
import numpy as np
import pytest

from launchers import smollm2
from launchers.smollm2 import ModelError, cache_dir, main, prepare

MATRIX = np.linspace(-1, 1, 4 * 64, dtype=np.float32).reshape(4, 64)
VECTOR = np.arange(8, dtype=np.float32)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A tiny GGUF file with one quantised matrix and one vector."""
    path = tmp_path / "source.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_file_type(3)
    writer.add_array("tokenizer.ggml.tokens", ["a", "b"])
    quantised = gguf.quants.quantize(MATRIX, gguf.GGMLQuantizationType.Q8_0)
    writer.add_tensor("blk.0.w", quantised, raw_dtype=gguf.GGMLQuantizationType.Q8_0)
    writer.add_tensor("norm", VECTOR)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def copy(source: Path, tmp_path: Path, kind: str = "F16") -> Path:
    return prepare(kind, source, tmp_path / "cache", sha256(source))


@pytest.mark.parametrize(("kind", "dtype"), [("F16", np.float16), ("F32", np.float32)])
def test_copy_holds_the_same_numbers_in_a_wider_type(source: Path, tmp_path: Path, kind: str, dtype: type) -> None:
    reader = gguf.GGUFReader(copy(source, tmp_path, kind))
    matrix, vector = reader.tensors
    assert (matrix.name, vector.name) == ("blk.0.w", "norm")
    assert matrix.data.dtype == dtype
    assert np.allclose(matrix.data, MATRIX, atol=0.01)
    assert vector.data.dtype == np.float32
    assert np.array_equal(vector.data, VECTOR)
    assert reader.fields["tokenizer.ggml.tokens"].contents() == ["a", "b"]
    assert reader.fields["general.file_type"].contents() == {"F16": 1, "F32": 0}[kind]


def test_as_it_is_means_the_packaged_file_itself(source: Path, tmp_path: Path) -> None:
    assert copy(source, tmp_path, "Q4_1") == source
    assert not list((tmp_path / "cache").glob("*.gguf"))


def test_second_time_nothing_is_written(source: Path, tmp_path: Path) -> None:
    made = copy(source, tmp_path)
    before = made.stat()
    assert copy(source, tmp_path) == made
    assert (made.stat().st_ino, made.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


@pytest.mark.parametrize("damage", [b"", b"shorter"])
def test_truncated_copy_is_made_again(source: Path, tmp_path: Path, damage: bytes) -> None:
    made = copy(source, tmp_path)
    whole = sha256(made)
    made.write_bytes(damage)
    assert sha256(copy(source, tmp_path)) == whole


def test_changed_copy_of_the_same_size_is_made_again(source: Path, tmp_path: Path) -> None:
    made = copy(source, tmp_path)
    whole = made.read_bytes()
    made.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    assert copy(source, tmp_path).read_bytes() == whole


def test_touched_copy_is_hashed_and_kept(source: Path, tmp_path: Path) -> None:
    made = copy(source, tmp_path)
    inode = made.stat().st_ino
    os.utime(made, ns=(1, 1))
    assert copy(source, tmp_path).stat().st_ino == inode


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"recipe": 1, "source": {}, "result": 7}', "\0"])
def test_damaged_manifest_means_a_new_copy(source: Path, tmp_path: Path, text: str) -> None:
    whole = sha256(copy(source, tmp_path))
    (tmp_path / "cache" / "smollm2-F16.json").write_text(text)
    assert sha256(copy(source, tmp_path)) == whole


def test_copy_of_an_older_recipe_is_made_again(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inode = copy(source, tmp_path).stat().st_ino
    monkeypatch.setattr(smollm2, "RECIPE", 2)
    assert copy(source, tmp_path).stat().st_ino != inode


def test_rest_of_a_killed_build_is_no_copy(source: Path, tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    rest = tmp_path / "cache" / "SmolLM2-135M-Instruct.F16.gguf.part"
    rest.write_bytes(b"half")
    made = copy(source, tmp_path)
    assert gguf.GGUFReader(made).tensors
    assert not rest.exists()


def test_second_process_waits_for_the_first(source: Path, tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    with ThreadPoolExecutor(1) as pool, (tmp_path / "cache" / "smollm2-F16.lock").open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        made = pool.submit(copy, source, tmp_path)
        with pytest.raises(TimeoutError):
            made.result(timeout=0.5)
        fcntl.flock(other, fcntl.LOCK_UN)
        assert made.result(timeout=60).is_file()


def test_damaged_source_is_named_and_nothing_is_made(source: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"source\.gguf is damaged .*reinstall"):
        prepare("F16", source, tmp_path / "cache", "0" * 64)
    assert not list((tmp_path / "cache").glob("*.gguf*"))


def test_source_that_was_damaged_later_is_noticed(source: Path, tmp_path: Path) -> None:
    wanted = sha256(source)
    copy(source, tmp_path)
    source.write_bytes(b"damaged")
    with pytest.raises(ModelError, match="is damaged"):
        prepare("F16", source, tmp_path / "cache", wanted)


def test_cache_follows_xdg_and_ignores_a_relative_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", "/c")
    assert cache_dir() == Path("/c/specsweep/models")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache_dir() == tmp_path / ".cache/specsweep/models"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_dir() == tmp_path / ".cache/specsweep/models"


@pytest.mark.engine
def test_path_is_the_last_line_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["Q4_1"]) == 0
    path = Path(capsys.readouterr().out.splitlines()[-1])
    assert path.name == smollm2.SOURCE_NAME
    assert path.is_file()


def test_cache_that_cannot_be_written_is_one_clear_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert main(["F16"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "cannot provide the F16 model" in line
    assert str(tmp_path / "file") in line


def test_unknown_type_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["F64"])
    assert caught.value.code == 2
    assert "F16" in capsys.readouterr().err
