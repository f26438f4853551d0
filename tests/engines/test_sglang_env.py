"""SGLang's environment: legal values, equal spellings, what is never passed on, what has no effect."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeper.engines.sglang.env import (
    canonical_env,
    env_mistakes,
    env_violations,
    no_effect,
    plain_env,
    spec_v2,
)
from sweeper.engines.sglang.host_env import FAKERS, UNSET_ENV, faked
from sweeper.engines.sglang.version import version_of

NEW, OLD = version_of("0.5.23"), version_of("0.5.10.post1")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("NCCL_PROTO", "LL"),
        ("NCCL_PROTO", "ll,simple"),
        ("NCCL_PROTO", "^LL128"),
        ("NCCL_PROTO", "allreduce:LL;allgather:Simple"),
        ("NCCL_PROTO", "^LL128;allreduce:LL"),
        ("NCCL_ALGO", "Ring,Tree"),
        ("NCCL_ALGO", "allreduce:tree"),
        ("NCCL_ALGO", "^NVLSTree,PAT"),
        ("NCCL_P2P_LEVEL", "SYS"),
        ("NCCL_P2P_LEVEL", "phb"),
        ("NCCL_P2P_LEVEL", "4"),
        ("NCCL_BUFFSIZE", "4194304"),
        ("NCCL_NTHREADS", "512"),
        ("NCCL_MIN_NCHANNELS", "8"),
        ("NCCL_MAX_CTAS", "32"),
        ("NCCL_CUMEM_ENABLE", "0"),
        ("NCCL_NVLS_ENABLE", "2"),
        ("NCCL_P2P_DISABLE", "1"),
        ("SGLANG_ENABLE_SPEC_V2", "True"),
        ("NCCL_SOCKET_IFNAME", "eth0"),
        ("ANYTHING_ELSE", "-x; rm"),
    ],
)
def test_legal_values_have_no_mistakes(name: str, value: str) -> None:
    assert env_mistakes({name: (value,)}) == []


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("NCCL_PROTO", "LL256", "LL, LL128, Simple"),
        ("NCCL_PROTO", "LL128", "corrupts data"),
        ("NCCL_PROTO", "LL,LL128", "corrupts data"),
        ("NCCL_PROTO", "allreduce:LL128", "corrupts data"),
        ("NCCL_PROTO", "", "LL, LL128, Simple"),
        ("NCCL_PROTO", "everything:LL", "is not a collective"),
        ("NCCL_ALGO", "Rings", "Ring, Tree"),
        ("NCCL_P2P_LEVEL", "PCI", "ignore it silently"),
        ("NCCL_P2P_LEVEL", "-1", "ignore it silently"),
        ("NCCL_BUFFSIZE", "4000000", "power of 2"),
        ("NCCL_BUFFSIZE", "4M", "power of 2"),
        ("NCCL_NTHREADS", "100", "64, 128, 256, 512"),
        ("NCCL_MIN_NCHANNELS", "0", "from 1 to 64"),
        ("NCCL_MAX_CTAS", "65", "from 1 to 64"),
        ("NCCL_CUMEM_ENABLE", "yes", "0, 1"),
        ("NCCL_SHM_DISABLE", "true", "0, 1"),
        ("NCCL_NVLS_ENABLE", "3", "0, 1, 2"),
        ("SGLANG_ENABLE_SPEC_V2", "on", "false"),
    ],
)
def test_illegal_value_is_told_with_the_name_first(name: str, value: str, words: str) -> None:
    (line,) = env_mistakes({name: (value,)})
    assert line.startswith(f"{name}: ")
    assert words in line


@pytest.mark.parametrize(
    "name",
    [
        "SGLANG_SIMULATE_ACC_LEN",
        "SIMULATE_ACC_LEN",
        "SGL_SIMULATE_ACC_LEN",
        "SGLANG_SIMULATE_ACC_METHOD",
        "SGLANG_SIMULATE_ACC_NEW_ONE",
    ],
)
def test_fake_acceptance_is_refused(name: str) -> None:
    assert "pretend an accept length" in env_mistakes({name: ("0",)})[0]


def test_fake_acceptance_and_unrecorded_tuning_are_always_unset() -> None:
    assert {"SGLANG_SIMULATE_ACC_LEN", "SIMULATE_ACC_LEN", "SGLANG_ENABLE_SPEC_V2", "NCCL_PROTO"} <= set(UNSET_ENV)


def test_the_old_spelling_of_a_variable_is_unset_too() -> None:
    assert {"SGL_SIMULATE_ACC_LEN", "SGL_ENABLE_SPEC_V2"} <= set(UNSET_ENV)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SGLANG_SIMULATE_ACC_LEN", "3.5"),
        ("SGL_SIMULATE_ACC_LEN", "1"),
        ("SIMULATE_ACC_LEN", " 2 "),
        ("SGLANG_SIMULATE_ACC_LEN", "inf"),
        ("SGLANG_SIMULATE_UNIFORM_EXPERTS", "true"),
    ],
)
def test_a_server_that_pretends_is_told_with_the_variable(name: str, value: str) -> None:
    assert faked({name: value, "SGLANG_SIMULATE_ACC_METHOD": "x"}).startswith(f"{name}={value} in the server's")
    assert name.startswith(FAKERS)


@pytest.mark.parametrize("value", ["-1", "0", "", "off", "nan"])
def test_what_switches_nothing_on_fakes_nothing(value: str) -> None:
    assert faked({"SGLANG_SIMULATE_ACC_LEN": value, "SGLANG_SIMULATE_ROUND_ROBIN_EXPERTS": "0"}) == ""
    assert faked({"SGLANG_SIMULATE_ACC_METHOD": "multinomial"}) == ""


def test_what_a_host_may_need_to_work_at_all_is_left_to_it() -> None:
    assert not {"NCCL_P2P_DISABLE", "NCCL_SOCKET_IFNAME", "NCCL_IB_DISABLE"} & set(UNSET_ENV)


@pytest.mark.parametrize(
    ("low", "high"), [("NCCL_MIN_NCHANNELS", "NCCL_MAX_NCHANNELS"), ("NCCL_MIN_CTAS", "NCCL_MAX_CTAS")]
)
def test_minimum_above_the_maximum_is_refused(low: str, high: str) -> None:
    assert low in env_violations({low: "16", high: "8"})[0]
    assert env_violations({low: "8", high: "8"}) == []
    assert env_violations({low: "16"}) == []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"NCCL_PROTO": "simple,ll"}, {"NCCL_PROTO": "LL,Simple"}),
        ({"NCCL_PROTO": "ALLREDUCE:ll"}, {"NCCL_PROTO": "allreduce:LL"}),
        ({"NCCL_ALGO": "^tree,ring"}, {"NCCL_ALGO": "^Ring,Tree"}),
        ({"NCCL_P2P_LEVEL": "3"}, {"NCCL_P2P_LEVEL": "phb"}),
        ({"NCCL_P2P_LEVEL": "7"}, {"NCCL_P2P_LEVEL": "SYS"}),
        ({"NCCL_P2P_LEVEL": "LOC"}, {"NCCL_P2P_DISABLE": "1"}),
        ({"NCCL_P2P_LEVEL": "0"}, {"NCCL_P2P_DISABLE": "1"}),
        ({"NCCL_P2P_LEVEL": "SYS", "NCCL_P2P_DISABLE": "1"}, {"NCCL_P2P_DISABLE": "1"}),
        ({"SGLANG_RECORD_STEP_TIME": "yes"}, {"SGLANG_RECORD_STEP_TIME": "1"}),
        ({"CUDA_DEVICE_MAX_CONNECTIONS": "1"}, {}),
    ],
)
def test_equal_environments_are_one(one: dict[str, str], other: dict[str, str]) -> None:
    assert canonical_env(one, {}, NEW) == canonical_env(other, {}, NEW)


@pytest.mark.parametrize(
    ("env", "flags", "words"),
    [
        ({"CUDA_DEVICE_MAX_CONNECTIONS": "1"}, {}, "sets it to 8"),
        ({"SGLANG_ENABLE_SPEC_V2": "1"}, {"speculative_algorithm": "EAGLE3"}, "0.5.14 and later"),
        ({"NCCL_P2P_LEVEL": "SYS", "NCCL_P2P_DISABLE": "1"}, {}, "switches off"),
        ({"NCCL_CUMEM_ENABLE": "0"}, {"enable_symm_mem": True}, "enable_symm_mem overwrites"),
        ({"NCCL_NVLS_ENABLE": "0"}, {"enable_nccl_nvls": True}, "enable_nccl_nvls overwrites"),
        ({"NCCL_ALGO": "Ring"}, {"enable_deterministic_inference": True}, "allreduce:tree"),
    ],
)
def test_variable_without_effect_is_dropped_and_told(
    env: dict[str, str], flags: dict[str, bool], words: str
) -> None:
    name = next(iter(env))
    assert words in no_effect(name, plain_env(env), flags, NEW)
    assert name not in canonical_env(env, flags, NEW)


def test_only_the_variable_that_is_overruled_is_dropped() -> None:
    env = {"NCCL_P2P_DISABLE": "1", "NCCL_PROTO": "LL", "NCCL_NTHREADS": "512"}
    assert canonical_env(env, {"enable_deterministic_inference": True, "enable_symm_mem": True}, NEW) == env


def test_memory_of_nccl_is_a_knob_of_its_own_otherwise() -> None:
    env = {"NCCL_CUMEM_ENABLE": "1", "NCCL_NVLS_ENABLE": "0"}
    assert canonical_env(env, {}, NEW) == env


def test_second_worker_is_chosen_by_the_environment_up_to_0_5_10_only() -> None:
    flags = {"speculative_algorithm": "EAGLE3"}
    assert canonical_env({"SGLANG_ENABLE_SPEC_V2": "true"}, flags, OLD) == {"SGLANG_ENABLE_SPEC_V2": "1"}
    assert canonical_env({"SGLANG_ENABLE_SPEC_V2": "0"}, flags, OLD) == {}
    assert canonical_env({"SGLANG_ENABLE_SPEC_V2": "true"}, {}, OLD) == {}
    assert canonical_env({"SGLANG_ENABLE_SPEC_V2": "0"}, flags, version_of("0.5.12")) == {}


def test_second_worker_is_off_by_default_up_to_0_5_10_and_on_from_0_5_11() -> None:
    assert not spec_v2({}, OLD)
    assert spec_v2({"SGLANG_ENABLE_SPEC_V2": "1"}, OLD)
    assert spec_v2({}, version_of("0.5.11"))


NAMES = st.sampled_from(
    ["NCCL_PROTO", "NCCL_ALGO", "NCCL_P2P_LEVEL", "NCCL_BUFFSIZE", "SGLANG_ENABLE_SPEC_V2", "X"]
)
VALUES = st.one_of(
    st.text(max_size=20), st.sampled_from(["LL", "ll,Simple", "^Tree", "a:b;c", ";", ":", "^", "00", "٣"])
)


@given(st.dictionaries(NAMES, VALUES, max_size=4))
def test_hostile_values_are_told_not_raised_and_canonical_stays(env: dict[str, str]) -> None:
    assert all(line.split(":")[0] in env for line in env_mistakes({name: (value,) for name, value in env.items()}))
    env_violations(env)
    once = canonical_env(env, {}, NEW)
    assert canonical_env(once, {}, NEW) == once
