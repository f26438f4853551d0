"""What is found of the server's program and its models: real folders with every defect, and the engine's rules."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from launchers.gpus import Gpu, GpuLook, GpuReading
from launchers.host import HostLauncher
from launchers.looking import Told, look_at_models
from launchers.shell import LocalShell
from sweeper.doctor.context import Context
from sweeper.doctor.finding import Level
from sweeper.engines.base import HostFacts
from tests.doctor.asking import LLAMACPP, context, said, text, told, worst
from tests.gpu_host.folders import EAGLE3

pytestmark = pytest.mark.compose

TARGET = {
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 7168,
    "vocab_size": 163840,
    "num_hidden_layers": 32,
    "max_position_embeddings": 32768,
}
DRAFT = {**EAGLE3, "max_position_embeddings": 32768}


def folder(path: Path, **files: int | str) -> Path:
    """A model's folder: names (`__` is a dot) to sizes or texts."""
    path.mkdir(parents=True)
    for name, content in files.items():
        raw = content.encode() if isinstance(content, str) else bytes(content)
        path.joinpath(name.replace("__", ".")).write_bytes(raw)
    return path


def index(total: int, *shards: str) -> str:
    return json.dumps(
        {"metadata": {"total_size": total}, "weight_map": {f"w{n}": s for n, s in enumerate(shards)}}
    )


def weights(path: Path) -> str:
    """What the check says of what lies at a path."""
    ctx = context()
    launcher = HostLauncher(LocalShell("gpu1"), ctx.launcher.settings)
    (look,) = look_at_models(launcher, [str(path)])
    return text("weights", context(weights={str(path): look}))


@pytest.mark.host
def test_a_whole_model_is_told_with_its_size(tmp_path: Path) -> None:
    files: dict[str, Any] = {"a__safetensors": 40_000, "b__safetensors": 60_000, "config__json": "{}"}
    files["model__safetensors__index__json"] = index(100_000, "a.safetensors", "b.safetensors")
    assert "ok: " in weights(folder(tmp_path / "it's a model", **files))
    assert "2 files, 0.0 GiB" in weights(tmp_path / "it's a model")


@pytest.mark.host
@pytest.mark.parametrize(
    ("files", "words"),
    [
        (
            {
                "model__safetensors__index__json": index(9, "a.safetensors", "b.safetensors"),
                "a__safetensors": 5000,
            },
            "error: {}: 1 file of its index not there: b.safetensors",
        ),
        ({"a__safetensors": 130, "b__safetensors": 5000}, "error: {}: 1 file smaller than any weights"),
        (
            {"model__safetensors__index__json": index(100_000, "a.safetensors"), "a__safetensors": 60_000},
            "error: {}: 0.0 GiB of weights, its index says 0.0",
        ),
        ({"config__json": "{}"}, "error: {}: no file of weights is there"),
        ({"model__safetensors__index__json": index(10**9)}, "warning: {}: no file of weights"),
        ({"a__safetensors": 5000, "b__incomplete": 1}, "warning: {}: a download is unfinished: b.incomplete"),
    ],
)
def test_each_defect_of_a_folder_is_told(tmp_path: Path, files: dict[str, Any], words: str) -> None:
    path = folder(tmp_path / "m", **files)
    assert words.format(path) in weights(path)


@pytest.mark.host
def test_a_dangling_link_is_a_missing_shard(tmp_path: Path) -> None:
    path = folder(tmp_path / "m", a__safetensors=5000)
    path.joinpath("b.safetensors").symlink_to(tmp_path / "blobs" / "gone")
    assert "1 file of its index not there: b.safetensors" in weights(path)


@pytest.mark.host
def test_a_single_file_is_a_model_too(tmp_path: Path) -> None:
    (tmp_path / "m.gguf").write_bytes(b"GGUF" + bytes(4000))
    assert "ok: " in weights(tmp_path / "m.gguf")


def test_what_cannot_be_read_is_told() -> None:
    look = told(kind=("folder", "closed"))
    assert "may not be read by this user" in text("weights", context(weights={"/m": look}))
    look = told(kind="folder", file="5000 a.safetensors", hidden="a.safetensors")
    assert "1 file cannot be read by this user" in text("weights", context(weights={"/m": look}))


def test_hostile_names_do_no_harm() -> None:
    look = told(file=("99999 \x1b[31m.safetensors", "x y", "5 "), shard="../../\x07etc", total="many")
    assert "\x1b" not in text("weights", context(weights={"/m": look}))


def sglang(target: object = TARGET, draft: object = DRAFT, *overrides: str) -> Context:
    """A context on a host with these two config.json."""
    files = {
        name: (config if isinstance(config, str) else json.dumps(config)) if config is not None else None
        for name, config in (("/models/m/config.json", target), ("/models/d/config.json", draft))
    }
    facts = HostFacts(engine_version="0.5.15.post1", model_path="/models/m", files=files, gpu_names=("H200",))
    return context(
        *overrides, facts=facts, files=files, drafts={"/models/d": "/models/d"}, model=("/models/m", "f")
    )


def test_a_fitting_pair_is_described_and_legal() -> None:
    ctx = sglang()
    assert worst("rules", ctx) is Level.OK, text("rules", ctx)
    assert "m: LlamaForCausalLM, hidden 7168, vocabulary 163840, context 32768" in text("model_config", ctx)
    assert "draft vocabulary 32000" in text("model_config", ctx)


def test_the_published_nights_wrong_flag_is_seen_before_any_launch() -> None:
    ctx = sglang(TARGET, DRAFT, "space.speculative_algorithm=EAGLE", "~space.when")
    with pytest.raises(Exception, match="is an EAGLE3 draft"):
        said("rules", ctx)


@pytest.mark.parametrize(
    ("draft", "reason"),
    [
        ({**DRAFT, "hidden_size": 2048}, "its fusion layer expects"),
        ({**DRAFT, "vocab_size": 32000}, "has 32000 tokens, the target 163840"),
        ({**DRAFT, "max_position_embeddings": 2048}, "is made for 2048"),
        ({"architectures": ["LlamaForCausalLM"], "hidden_size": 7168, "vocab_size": 163840}, "is no EAGLE3 draft"),
        ("{", "its config.json is not JSON"),
    ],
)
def test_each_misfit_of_a_draft_is_the_engines_own_rule(draft: object, reason: str) -> None:
    with pytest.raises(Exception, match=reason):
        said("rules", sglang(TARGET, draft))


def test_a_missing_config_is_a_setting_to_change() -> None:
    ctx = sglang(TARGET, None)
    assert [(each.level, each.is_setting) for each in said("drafts", ctx)] == [(Level.ERROR, True)]
    assert "/models/d/config.json cannot be read" in text("drafts", ctx)


def test_a_draft_that_is_not_downloaded_is_told() -> None:
    ctx = sglang()
    ctx.__dict__["drafts"] = {"org/draft": ValueError("not on this host: download it first")}
    assert "org/draft: not on this host" in text("drafts", ctx)


def test_answers_longer_than_the_context_are_refused() -> None:
    ctx = sglang(TARGET, DRAFT, "engine.flags.context_length=512")
    assert [each.is_setting for each in said("context", ctx)] == [True]
    assert "workload.max_tokens: 1024 do not fit into the context of 512 tokens" in text("context", ctx)
    assert worst("context", sglang(TARGET, DRAFT, "engine.flags.context_length=1030")) is Level.WARNING
    small = context("engine.flags.ctx_size=40", base=LLAMACPP, facts=HostFacts())
    assert "the context of 40 tokens" in text("context", small)


def test_flags_that_the_server_does_not_have_are_settings_to_change() -> None:
    known = frozenset({"model_path", "tp_size"})
    assert any(each.is_setting for each in said("flags", context(known_flags=known)))
    assert worst("flags", context(known_flags=frozenset[str]())) is Level.WARNING


def gib(count: float) -> Told:
    return told(kind="folder", total=str(int(count * 1024**3)))


@pytest.mark.parametrize(("size", "level"), [(60.0, Level.OK), (90.0, Level.WARNING), (120.0, Level.ERROR)])
def test_weights_are_held_to_the_memory_of_the_gpus(size: float, level: Level) -> None:
    gpus = GpuLook(GpuReading((Gpu(0, "H100", "GPU-0", 4, 96 * 1024),)), {})
    ctx = context(gpus=gpus, weights={"/models/m": gib(size), "/models/d": gib(2)}, model=("/models/m", "f"))
    assert worst("gpu_fit", ctx) is level, text("gpu_fit", ctx)


@pytest.mark.parametrize(("size", "level"), [(10.0, Level.OK), (40.0, Level.WARNING)])
def test_weights_are_held_to_the_memory_of_the_host(size: float, level: Level) -> None:
    look = told(memory="MemTotal:       24684092 kB")
    ctx = context(weights={"/models/m": gib(size)}, model=("/models/m", "f"), look=look, drafts={})
    assert worst("page_cache", ctx) is level, text("page_cache", ctx)


def test_a_model_that_is_prepared_first_is_not_prepared_by_looking() -> None:
    ctx = context("model.prepare=[/bin/false]", base=LLAMACPP)
    assert ctx.model == ("", "")
    assert "`/bin/false` (not run here)" in text("model", ctx)
