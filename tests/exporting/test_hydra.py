"""The preset: specsweep itself composes it, and finds the configuration that was handed over."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sweeper import config as composing
from sweeper.errors import ConfigError
from sweeper.exporting.bundle import Bundle, write
from sweeper.exporting.handover import Handover
from sweeper.exporting.hydra_preset import preset
from sweeper.space import grid, to_config
from sweeper.spec import FlagValue, ServerConfig, SweepSpec
from tests.exporting.made import flags, handover, texts

pytestmark = pytest.mark.compose

SGLANG: dict[str, FlagValue] = {
    "max_running_requests": 4,
    "mem_fraction_static": 0.85,
    "attention_backend": "triton",
    "speculative_draft_attention_backend": "triton",
}
CHAIN: dict[str, FlagValue] = {
    "speculative_algorithm": "EAGLE3",
    "speculative_draft_model_path": "/models/d",
    "speculative_num_steps": 3,
    "speculative_eagle_topk": 1,
    "speculative_num_draft_tokens": 4,
}


def composed(made: Handover, folder: Path) -> SweepSpec:
    files = preset(made)
    write(Bundle(files), folder)
    (name,) = (Path(path).stem for path in files if "/preset/" in path)
    return composing.load([f"preset={name}"], folder / "hydra").spec


def configurations(spec: SweepSpec) -> Iterator[ServerConfig]:
    base = ServerConfig(flags=spec.engine.flags, env=spec.engine.env)
    return (to_config(base, values, spec.space) for values in grid(spec.space))


def test_the_preset_is_a_sweep_of_the_one_configuration(tmp_path: Path) -> None:
    won = flags(**SGLANG, **CHAIN, disable_cuda_graph=True)
    made = handover(won, base=flags(**SGLANG), model="/models/m", start_s=600.2)
    spec = composed(made, tmp_path)
    assert list(configurations(spec)) == [won]
    assert spec.engine.command == made.serving.command
    assert (spec.model.path, spec.model.name) == ("/models/m", "kimi")
    assert (spec.budget.trials, spec.limits.start_s, spec.study.name) == (2, 1801, "night-server-tuned")
    assert spec.host.name == "local"


def test_a_host_that_is_not_this_machine_is_reached_over_ssh(tmp_path: Path) -> None:
    made = handover(flags(**SGLANG, **CHAIN), base=flags(**SGLANG), host="gpu1")
    spec = composed(made, tmp_path)
    assert spec.host.ssh is not None
    assert (spec.host.name, spec.host.ssh.destination) == ("gpu1", "gpu1")


def test_a_baseline_is_searched_from_with_the_packaged_space(tmp_path: Path) -> None:
    base = flags(threads=2, ctx_size=512)
    made = handover(base, engine="llamacpp", base=flags(threads=9), is_baseline=True)
    spec = composed(made, tmp_path)
    assert spec.engine.flags == base.flags
    assert len(spec.space.parameters) > 1


@given(words=st.lists(texts.filter(lambda text: text != "???"), min_size=16, max_size=16))
@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_text_comes_back_as_it_is(tmp_path: Path, words: list[str]) -> None:
    env = {f"V{number}": word for number, word in enumerate(words[:6])}
    base = ServerConfig(flags={"threads": 1, "chat_template": words[6] or "x"}, env=env)
    noted: dict[str, FlagValue] = {f"note_{number}": word or "y" for number, word in enumerate(words[7:12])}
    won = ServerConfig(flags={**base.flags, **noted, "spec_type": "ngram-simple"}, env={**env, "B": words[12]})
    made = handover(won, engine="llamacpp", base=base, model=f"/m/{words[13]}", command=("sh", *words[14:]))
    spec = composed(made, tmp_path)
    assert list(configurations(spec)) == [won]
    assert spec.engine.command == ("sh", *words[14:])
    assert spec.model.path == f"/m/{words[13]}"


@pytest.mark.parametrize(("name", "value", "told"), [("api_key", "k", "secret"), ("x", "???", "missing")])
def test_what_a_preset_cannot_hold_is_said(name: str, value: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        preset(handover(ServerConfig(flags={name: value})))
