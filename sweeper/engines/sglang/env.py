"""Environment variables under which SGLang runs: legal values, equal spellings, and what is never passed on.

Sources: NVIDIA/nccl docs env.rst, src/graph/paths.cc and tuning.cc; sglang/srt/environ.py, entrypoints/engine.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from sweeper.engines.sglang.host_env import FAKE_ACCEPTANCE
from sweeper.engines.sglang.version import Version
from sweeper.near_names import meant
from sweeper.spec import FlagValue

SPEC_V2 = "SGLANG_ENABLE_SPEC_V2"

OVERWRITTEN = {
    "CUDA_DEVICE_MAX_CONNECTIONS": "SGLang sets it to 8 at every start (entrypoints/engine.py, 0.5.8 to 0.5.23)",
}

BOOLEANS = frozenset(
    {
        "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN",
        "SGLANG_ENABLE_OVERLAP_PLAN_STREAM",
        "SGLANG_ENABLE_PCIE_IPC_ALLREDUCE",
        "SGLANG_ENABLE_PP_SPEC",
        "SGLANG_ENABLE_SPEC_V2",
        "SGLANG_RECORD_STEP_TIME",
    }
)
_TRUE, _FALSE = frozenset({"true", "1", "yes", "y"}), frozenset({"false", "0", "no", "n"})

_PROTOCOLS = {"ll": "LL", "ll128": "LL128", "simple": "Simple"}
_ALGORITHMS = {
    name.lower(): name for name in ("Ring", "Tree", "CollnetChain", "CollnetDirect", "NVLS", "NVLSTree", "PAT")
}
_COLLECTIVES = frozenset({"allgather", "allreduce", "broadcast", "reduce", "reducescatter", "sendrecv"})
_LEVELS = ("LOC", "NVL", "PIX", "PXB", "PHB", "SYS")
_LEGACY_LEVELS = {"0": "LOC", "1": "PIX", "2": "PXB", "3": "PHB", "4": "SYS"}  # paths.cc, ncclGetLevel


def env_mistakes(env: Mapping[str, Sequence[str]]) -> list[str]:
    """Mistakes that can be seen in single values; `env` maps a variable to all values it may take.

    Each line starts with the variable's name.
    """
    found = []
    for name, values in env.items():
        if name.startswith(FAKE_ACCEPTANCE):
            found.append(
                f"{name}: makes SGLang pretend an accept length; nothing measured under it means anything"
            )
        elif rule := _rule(name):
            found += [f"{name}: {mistake}" for value in values if (mistake := rule(value))]
    return found


def env_violations(env: Mapping[str, str]) -> list[str]:
    """What is wrong with variables that are each legal alone."""
    return [
        f"{low}={env[low]} > {high}={env[high]}: NCCL needs the minimum below the maximum"
        for low, high in (("NCCL_MIN_NCHANNELS", "NCCL_MAX_NCHANNELS"), ("NCCL_MIN_CTAS", "NCCL_MAX_CTAS"))
        if low in env and high in env and _whole(env[low]) > _whole(env[high])
    ]


def canonical_env(env: Mapping[str, str], flags: Mapping[str, FlagValue], version: Version) -> dict[str, str]:
    """`env` with equal things spelt equally, and without variables that change nothing under `flags`."""
    plain = plain_env(env)
    names = [name for name in sorted(plain) if not no_effect(name, plain, flags, version)]
    return {name: plain[name] for name in names if name != SPEC_V2 or _chooses_worker(plain[name], version)}


def _chooses_worker(value: str, version: Version) -> bool:
    """Whether SGLANG_ENABLE_SPEC_V2 says more than disable_overlap_schedule, which stands for it since 0.5.11."""
    return value != "0" and not version.since(0, 5, 11)


def plain_env(env: Mapping[str, str]) -> dict[str, str]:
    """`env` with equal values spelt equally."""
    plain = {name: _plain(name, value) for name, value in env.items()}
    if plain.get("NCCL_P2P_LEVEL") == "LOC":
        plain["NCCL_P2P_DISABLE"] = "1"  # the same thing by another name
    return plain


def no_effect(name: str, env: Mapping[str, str], flags: Mapping[str, FlagValue], version: Version) -> str:
    """Why a variable changes nothing under these flags; empty when it does. `env` has plain values."""
    if name in OVERWRITTEN:
        return OVERWRITTEN[name]
    if name == SPEC_V2:
        return _spec_v2_no_effect(flags, version)
    if name == "NCCL_P2P_LEVEL" and env.get("NCCL_P2P_DISABLE") == "1":
        return "NCCL_P2P_DISABLE=1 switches off what it would tune"
    if name in ("NCCL_CUMEM_ENABLE", "NCCL_NVLS_ENABLE") and flags.get("enable_symm_mem") is True:
        return "enable_symm_mem overwrites it (entrypoints/engine.py)"
    if name == "NCCL_NVLS_ENABLE" and flags.get("enable_nccl_nvls") is True:
        return "enable_nccl_nvls overwrites it (entrypoints/engine.py)"
    if name == "NCCL_ALGO" and flags.get("enable_deterministic_inference") is True:
        return "enable_deterministic_inference overwrites it with allreduce:tree"
    return ""


def _spec_v2_no_effect(flags: Mapping[str, FlagValue], version: Version) -> str:
    """The variable chose the worker up to 0.5.12, only the schedule in 0.5.13, and is not read from 0.5.14 on."""
    if version.since(0, 5, 14):
        return "SGLang 0.5.14 and later do not read it; the knob is disable_overlap_schedule"
    if flags.get("speculative_algorithm") not in ("EAGLE", "EAGLE3", "STANDALONE"):
        return "only EAGLE, EAGLE3 and STANDALONE have a second worker"
    return ""


def spec_v2(env: Mapping[str, str], version: Version) -> bool:
    """Whether the overlapping worker is asked for: off by default up to 0.5.10, on from 0.5.11 (environ.py)."""
    return env.get(SPEC_V2, "1" if version.since(0, 5, 11) else "0").lower() in _TRUE


def is_true(env: Mapping[str, str], name: str) -> bool:
    """Whether a boolean variable of SGLang that is off by default is switched on."""
    return env.get(name, "0").strip().lower() in _TRUE


def _rule(name: str) -> Callable[[str], str] | None:
    """What looks for mistakes in the values of a variable; None for one that is not known."""
    if name in BOOLEANS:
        return lambda value: _member(value.lower(), sorted(_TRUE | _FALSE))
    return _RULES.get(name)


def _member(value: str, legal: Sequence[str]) -> str:
    return "" if value in legal else f"{value!r} is not one of its values: {', '.join(legal)}{meant(value, legal)}"


def _p2p_level(value: str) -> str:
    """NCCL ignores a level that it does not know, silently."""
    if value.upper() in _LEVELS or re.fullmatch(r"[0-9]{1,3}", value):
        return ""
    return f"{value!r} is not one of its values: {', '.join(_LEVELS)}; NCCL would ignore it silently"


def _listed(value: str, known: Mapping[str, str]) -> str:
    """NCCL's `[^]A,B`, and from NCCL 2.24 on `[function:][^]A,B;...`."""
    for part in value.split(";"):
        function, colon, words = part.rpartition(":")
        if colon and function.strip().lower() not in _COLLECTIVES:
            return f"{function!r} is not a collective: {', '.join(sorted(_COLLECTIVES))}"
        for word in words.strip().removeprefix("^").split(","):
            if word.strip().lower() not in known:
                return f"{word!r} is not one of its values: {', '.join(known.values())}"
    return ""


def _protocol(value: str) -> str:
    if mistake := _listed(value, _PROTOCOLS):
        return mistake
    lists = [part.rpartition(":")[2].strip() for part in value.lower().split(";")]
    if any("ll128" in words.split(",") for words in lists if not words.startswith("^")):
        return (
            f"{value!r} forces LL128: where the interconnect does not support it NCCL corrupts data silently, "
            "so it is never swept"
        )
    return ""


def _power_of_two(value: str) -> str:
    number = _whole(value)
    return "" if number >= 4096 and number & (number - 1) == 0 else f"{value!r} should be a power of 2 of bytes"


def _channels(value: str) -> str:
    return "" if 1 <= _whole(value) <= 64 else f"{value!r} should be from 1 to 64"


def _whole(value: str) -> int:
    """The number, or -1."""
    return int(value) if re.fullmatch(r"[0-9]{1,12}", value) else -1


def _switch(value: str) -> str:
    return _member(value, ("0", "1"))


_RULES: Mapping[str, Callable[[str], str]] = {
    "NCCL_PROTO": _protocol,
    "NCCL_ALGO": lambda value: _listed(value, _ALGORITHMS),
    "NCCL_P2P_LEVEL": _p2p_level,
    "NCCL_NET_GDR_LEVEL": _p2p_level,
    "NCCL_BUFFSIZE": _power_of_two,
    "NCCL_NTHREADS": lambda value: _member(value, ("64", "128", "256", "512")),
    **dict.fromkeys(("NCCL_MIN_NCHANNELS", "NCCL_MAX_NCHANNELS", "NCCL_MIN_CTAS", "NCCL_MAX_CTAS"), _channels),
    **dict.fromkeys(("NCCL_P2P_DISABLE", "NCCL_SHM_DISABLE", "NCCL_IB_DISABLE", "NCCL_CUMEM_ENABLE"), _switch),
    **dict.fromkeys(("NCCL_CUMEM_HOST_ENABLE", "NCCL_P2P_DIRECT_DISABLE", "NCCL_GRAPH_MIXING_SUPPORT"), _switch),
    "NCCL_NVLS_ENABLE": lambda value: _member(value, ("0", "1", "2")),
}


def _plain(name: str, value: str) -> str:
    """The value as it is usually written; values are case-insensitive in NCCL and in SGLang's booleans."""
    if name in BOOLEANS and value.lower() in _TRUE | _FALSE:
        return "1" if value.lower() in _TRUE else "0"
    if name in ("NCCL_P2P_LEVEL", "NCCL_NET_GDR_LEVEL"):
        legacy = "SYS" if _whole(value) > 4 else _LEGACY_LEVELS.get(value.lstrip("0") or "0", value.upper())
        return legacy if _whole(value) >= 0 else value.upper()
    if name in ("NCCL_PROTO", "NCCL_ALGO") and not _listed(
        value, _PROTOCOLS if name == "NCCL_PROTO" else _ALGORITHMS
    ):
        return ";".join(_plain_list(part, {**_PROTOCOLS, **_ALGORITHMS}) for part in value.split(";"))
    return value


def _plain_list(part: str, known: Mapping[str, str]) -> str:
    function, colon, words = part.rpartition(":")
    inverse = "^" if words.strip().startswith("^") else ""
    names = sorted({known[word.strip().lower()] for word in words.strip().removeprefix("^").split(",")})
    return f"{function.strip().lower()}{colon}{inverse}{','.join(names)}"
