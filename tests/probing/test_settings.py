"""Which settings of NCCL are timed, and why none is."""

from __future__ import annotations

import pytest

from sweeper.engines.all_reduces import AllReduces
from sweeper.engines.registry import engine_for
from sweeper.probing.settings import messages_of, probe_mistakes, settings_of
from sweeper.spec import Choice, FlagValue, Parameter, ProbeSpec, ServerConfig, SpaceSpec, SweepSpec
from tests.core.drafting import SPACE
from tests.core.specs import sweep_spec

PROTO = Parameter(name="NCCL_PROTO", domain=Choice(values=("LL", "Simple")), is_env=True)
CHANNELS = Parameter(name="NCCL_MIN_NCHANNELS", domain=Choice(values=(8, 16)), is_env=True)
P2P = Parameter(name="NCCL_P2P_DISABLE", domain=Choice(values=(0, 1)), is_env=True)
LEVEL = Parameter(
    name="NCCL_P2P_LEVEL",
    domain=Choice(values=("PHB", "SYS")),
    is_env=True,
    when={"NCCL_P2P_DISABLE": (0,)},
)
GRAPHS = Parameter(name="disable_cuda_graph", domain=Choice(values=(False, True)))
OTHER = Parameter(name="OMP_NUM_THREADS", domain=Choice(values=(1, 2)), is_env=True)


def same(config: ServerConfig) -> ServerConfig:
    return config


def texts(*parameters: Parameter, canonical: object = same) -> list[str]:
    assert callable(canonical)
    return [setting.text for setting in settings_of(SpaceSpec(parameters=parameters), ServerConfig(), canonical)]


def spec_of(
    space: SpaceSpec = SPACE, engine: str = "sglang", sampler: str = "auto", **flags: FlagValue
) -> SweepSpec:
    fixed = {"attention_backend": "triton", "speculative_draft_model_path": "/draft", "tp_size": 8, **flags}
    return sweep_spec(engine, space, fixed, sampler).model_copy(update={"probe": ProbeSpec(nccl=True)})


def mistake(spec: SweepSpec) -> str:
    (line,) = probe_mistakes(spec, engine_for(spec.engine.name))
    return line


def test_every_combination_is_timed_and_the_baselines_first() -> None:
    assert texts(GRAPHS, PROTO, OTHER, CHANNELS) == [
        "nothing set",
        "NCCL_PROTO=LL NCCL_MIN_NCHANNELS=8",
        "NCCL_PROTO=LL NCCL_MIN_NCHANNELS=16",
        "NCCL_PROTO=Simple NCCL_MIN_NCHANNELS=8",
        "NCCL_PROTO=Simple NCCL_MIN_NCHANNELS=16",
    ]


def test_a_variable_that_hangs_on_another_is_unset_where_that_forbids_it() -> None:
    assert texts(P2P, LEVEL)[1:] == [
        "NCCL_P2P_DISABLE=0 NCCL_P2P_LEVEL=PHB",
        "NCCL_P2P_DISABLE=0 NCCL_P2P_LEVEL=SYS",
        "NCCL_P2P_DISABLE=1",
    ]


def test_a_variable_that_hangs_on_a_flag_is_timed_set_and_unset() -> None:
    conditional = PROTO.model_copy(update={"when": {"disable_cuda_graph": (True,)}})
    assert texts(GRAPHS, conditional, CHANNELS)[1:] == [
        "NCCL_PROTO=LL NCCL_MIN_NCHANNELS=8",
        "NCCL_PROTO=LL NCCL_MIN_NCHANNELS=16",
        "NCCL_PROTO=Simple NCCL_MIN_NCHANNELS=8",
        "NCCL_PROTO=Simple NCCL_MIN_NCHANNELS=16",
        "NCCL_MIN_NCHANNELS=8",
        "NCCL_MIN_NCHANNELS=16",
    ]


def test_what_means_the_same_is_timed_once_and_what_is_illegal_not_at_all() -> None:
    def canonical(config: ServerConfig) -> ServerConfig | None:
        env = {name: value for name, value in config.env.items() if (name, value) != ("NCCL_P2P_DISABLE", "0")}
        return None if config.env.get("NCCL_PROTO") == "Simple" else ServerConfig(env=env)

    space = SpaceSpec(parameters=(P2P, PROTO))
    default, *rest = settings_of(space, ServerConfig(), canonical)
    assert default.is_default
    assert default.values == ({},)
    assert [(s.text, s.is_default) for s in rest] == [
        ("NCCL_P2P_DISABLE=0 NCCL_PROTO=LL", False),
        ("NCCL_P2P_DISABLE=1 NCCL_PROTO=LL", False),
    ]
    alone, other = settings_of(SpaceSpec(parameters=(P2P,)), ServerConfig(), canonical)
    assert alone.is_default
    assert alone.values == ({}, {"env.NCCL_P2P_DISABLE": 0})
    assert other.values == ({"env.NCCL_P2P_DISABLE": 1},)


def test_nothing_is_wrong_with_a_probe_that_can_be_made_or_is_not_asked_for() -> None:
    assert probe_mistakes(spec_of(), engine_for("sglang")) == []
    unasked = sweep_spec("llamacpp", SPACE, {}, "auto")
    assert probe_mistakes(unasked, engine_for("llamacpp")) == []


def test_why_no_probe_can_be_made_is_said_before_anything_runs() -> None:
    without = SpaceSpec(parameters=tuple(p for p in SPACE.parameters if not p.is_env))
    many = tuple(
        Parameter(name=f"NCCL_{n}", domain=Choice(values=(1, 2, 3, 4, 5, 6, 7, 8)), is_env=True) for n in "ABC"
    )
    spec = spec_of()
    spread = spec.model_copy(update={"host": spec.host.model_copy(update={"nodes": ("gpu2",)})})
    assert "llamacpp does not use NCCL" in mistake(spec_of(engine="llamacpp"))
    assert "searches none of NCCL's variables (space.env.NCCL_...)" in mistake(spec_of(without))
    assert "engine.flags.tp_size says how many" in mistake(spec_of(tp_size=1))
    assert "only physics makes use of it, and this search is tpe (as asked)" in mistake(spec_of(sampler="tpe"))
    assert "this server spans several" in mistake(spread)
    assert "512 settings of NCCL" in mistake(spec_of(SpaceSpec(parameters=(*without.parameters, *many))))


def test_the_widest_server_counts_where_the_space_searches_its_width() -> None:
    widths = Parameter(name="tp_size", domain=Choice(values=(1, 4)))
    assert (
        probe_mistakes(spec_of(SpaceSpec(parameters=(*SPACE.parameters, widths)), tp_size=2), engine_for("sglang"))
        == []
    )


@pytest.mark.parametrize(
    ("used", "num_gpus", "reason"),
    [
        (AllReduces(8, "tp_size", None, 61), 8, "hidden size"),
        (AllReduces(8, "tp_size", 7168, None), 8, "layers"),
        (AllReduces(8, "tp_size", 7168, 61), 4, "the server uses 8 GPUs, and 4 can be used"),
        (AllReduces(2, "tp_size", 7168, 61), 1, "the server uses 2 GPUs, and 1 can be used"),
    ],
)
def test_what_only_the_host_tells_can_stand_against_it(used: AllReduces, num_gpus: int, reason: str) -> None:
    with pytest.raises(ValueError, match=reason.replace("(", r"\(")):
        messages_of(used, num_gpus, (1, 8))


def test_a_message_is_tokens_times_hidden_times_two_bytes() -> None:
    messages = messages_of(AllReduces(8, "tp_size", 7168, 61), 0, (1, 8))
    assert [messages.num_bytes(n) for n in messages.tokens] == [14336, 114688]
