"""What every engine must keep to; runs over every engine that has a configuration."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import conf
from sweeper.engines.base import Counters, Engine, HostFacts, Placement, StreamedResponse
from sweeper.engines.registry import ENGINE_NAMES, engine_for
from sweeper.spec import ServerConfig
from sweeper.workload_spec import Prompt, WorkloadSpec

CONFIGURED = sorted(path.stem for path in (Path(conf.__file__).parent / "engine").glob("*.yaml"))
PLACEMENT = Placement(("the-server", "--quiet"), "/models/a model.gguf", 31000, "nonce-7")
WORKLOAD = WorkloadSpec(
    name="w",
    prompts=(Prompt(id="p", text="hello"),),
    max_tokens=8,
    repeats=1,
    warmup_max_requests=0,
    temperature=0,
    seed=3,
    request_timeout_s=5,
)

flag_values = st.one_of(
    st.booleans(), st.integers(-5, 2000), st.floats(allow_nan=False, allow_infinity=False), st.text()
)
configs = st.builds(
    ServerConfig,
    flags=st.dictionaries(st.from_regex(r"[a-z][a-z0-9_]{0,20}", fullmatch=True), flag_values, max_size=6),
)


@pytest.fixture(params=CONFIGURED)
def engine(request: pytest.FixtureRequest) -> Engine:
    return engine_for(request.param)


def test_every_engine_has_a_configuration_and_every_configuration_an_engine() -> None:
    assert tuple(CONFIGURED) == ENGINE_NAMES


def test_unknown_engine_is_refused_with_the_valid_names() -> None:
    with pytest.raises(ValueError, match=r"unknown engine 'sgl'.*llamacpp"):
        engine_for("sgl")


def test_engine_knows_its_own_name(engine: Engine) -> None:
    assert engine_for(engine.name).name == engine.name


def test_paths_are_absolute(engine: Engine) -> None:
    assert all(p.startswith("/") for p in (engine.health_path, engine.info_path, engine.metrics_path))


@given(config=configs)
def test_canonical_of_canonical_is_itself(config: ServerConfig) -> None:
    for name in CONFIGURED:
        engine = engine_for(name)
        once = engine.canonical(config, HostFacts())
        assert engine.canonical(once, HostFacts()) == once
        assert engine.canonical(once, HostFacts()).key() == once.key()


@given(config=configs)
def test_baseline_is_canonical_and_does_not_speculate(config: ServerConfig) -> None:
    for name in CONFIGURED:
        engine = engine_for(name)
        baseline = engine.baseline(config, HostFacts())
        assert not engine.is_speculative(baseline)
        assert engine.canonical(baseline, HostFacts()) == baseline
        assert engine.baseline(baseline, HostFacts()) == baseline


@given(config=configs)
def test_violations_of_any_configuration_are_readable_lines(config: ServerConfig) -> None:
    for name in CONFIGURED:
        for line in engine_for(name).violations(config, HostFacts()):
            assert line.strip()


def test_empty_configuration_is_legal_and_the_simplest(engine: Engine) -> None:
    empty = engine.canonical(ServerConfig(), HostFacts())
    assert engine.violations(empty, HostFacts()) == []
    assert engine.simplicity(empty) <= engine.simplicity(ServerConfig(flags={"ctx_size": 512}))


def test_launch_carries_model_port_and_nonce(engine: Engine) -> None:
    spec = engine.launch_spec(ServerConfig(env={"A": "b"}), PLACEMENT)
    assert spec.argv[:2] == PLACEMENT.command
    assert {"/models/a model.gguf", "31000", "nonce-7"} <= set(spec.argv)
    assert (spec.port, spec.nonce, spec.env["A"]) == (31000, "nonce-7", "b")


def test_a_variable_that_is_configured_is_not_unset(engine: Engine) -> None:
    for name in engine.launch_spec(ServerConfig(), PLACEMENT).unset_env:
        spec = engine.launch_spec(ServerConfig(env={name: "1"}), PLACEMENT)
        assert name not in spec.unset_env
        assert spec.env[name] == "1"


def test_request_is_deterministic_and_limited(engine: Engine) -> None:
    request = engine.request(WORKLOAD.prompts[0], WORKLOAD, 5)
    assert request == engine.request(WORKLOAD.prompts[0], WORKLOAD, 5)
    assert request.json is not None
    asked = {**request.json, **request.json.get("sampling_params", {})}
    seed = asked.get("seed", asked.get("sampling_seed"))
    assert (asked["stream"], seed, asked["temperature"]) == (True, 3, 0)
    assert 5 in asked.values()


@given(lines=st.lists(st.binary(max_size=200), max_size=8))
def test_parsing_random_bytes_raises_nothing_but_value_errors(lines: list[bytes]) -> None:
    for name in CONFIGURED:
        with pytest.raises(ValueError):
            engine_for(name).parse(StreamedResponse(tuple((1.0, line) for line in lines), 1.0))


@given(text=st.text(max_size=300))
def test_counters_of_random_text_are_empty(text: str) -> None:
    for name in CONFIGURED:
        assert engine_for(name).counters(text) == Counters()


@given(text=st.text(max_size=300), code=st.none() | st.integers(-1, 256))
def test_any_log_can_be_looked_at(text: str, code: int | None) -> None:
    for name in CONFIGURED:
        engine = engine_for(name)
        assert engine.readiness(text)
        engine.diagnose(text, code)


@pytest.mark.parametrize("code", [None, 0, 1, 137, 143])
def test_an_exit_code_that_anybody_can_cause_shows_nothing(engine: Engine, code: int | None) -> None:
    assert engine.diagnose("", code) is None


def test_silence_is_not_a_version(engine: Engine) -> None:
    with pytest.raises(ValueError):
        engine.parse_version("\n")


def test_an_empty_info_page_identifies_nobody(engine: Engine) -> None:
    assert engine.effective({}) == {}
    with pytest.raises(ValueError):
        engine.identity({})
