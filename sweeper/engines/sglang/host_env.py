"""What of a host's own environment must not reach a server of SGLang: what it would fake, what it would change."""

from __future__ import annotations

from collections.abc import Mapping

from sweeper.engines.all_reduces import NCCL_TUNING

FAKE_ACCEPTANCE = ("SIMULATE_ACC_", "SGLANG_SIMULATE_ACC_", "SGL_SIMULATE_ACC_")
"""Beginnings of the variables that make SGLang pretend an accept length. Without prefix: before 0.5.8."""

_LENGTH = tuple(f"{beginning}LEN" for beginning in FAKE_ACCEPTANCE)
_EXPERTS = tuple(
    f"{prefix}SIMULATE_{how}_EXPERTS" for prefix in ("SGLANG_", "SGL_") for how in ("UNIFORM", "ROUND_ROBIN")
)

FAKERS = (*FAKE_ACCEPTANCE, *_EXPERTS)
"""Beginnings of all variables that `faked` judges by."""

_OWN = (
    # Fake acceptance: a server with one of them measures nothing.
    "SIMULATE_ACC_GREEDY",
    "SIMULATE_ACC_LEN",
    "SIMULATE_ACC_METHOD",
    "SIMULATE_ACC_TOKEN_MODE",
    "SIMULATE_UNIFORM_EXPERTS",
    "SIMULATE_ROUND_ROBIN_EXPERTS",
    # Settings of the host that would be measured without being recorded.
    "ENABLE_SPEC_V2",
    "ENABLE_OVERLAP_PLAN_STREAM",
    "ENABLE_PP_SPEC",
    # With it switched off /health says yes whatever happens.
    "ENABLE_HEALTH_ENDPOINT_GENERATION",
)

UNSET_ENV: tuple[str, ...] = (
    "SIMULATE_ACC_LEN",
    "SIMULATE_ACC_METHOD",
    "SIMULATE_ACC_TOKEN_MODE",
    # Whatever is called SGL_NAME is renamed to SGLANG_NAME when SGLang is imported (environ.py, 0.5.8 to 0.5.23).
    *(f"{prefix}{name}" for prefix in ("SGLANG_", "SGL_") for name in _OWN),
    *NCCL_TUNING,
)
"""Unset at every launch, unless the configuration sets it. NCCL variables that a host may need to work at all
(NCCL_P2P_DISABLE, NCCL_SOCKET_IFNAME, ...) are left as they are."""


def faked(environ: Mapping[str, str]) -> str:
    """Why a server that runs with these variables measures nothing; empty when it does.

    A length that is not above 0 or no number switches nothing on; the other variables of simulated acceptance
    say only how it is done (spec_utils.py).
    """
    for name in _LENGTH:
        if _number(environ.get(name, "")) > 0:
            return f"{name}={environ[name][:40]} in the server's environment: it pretends to accept drafts"
    for name in _EXPERTS:
        if environ.get(name, "").strip().lower() in ("1", "true", "yes", "y"):
            return f"{name}={environ[name][:40]} in the server's environment: it sends tokens to experts at random"
    return ""


def _number(text: str) -> float:
    """The number, or 0 where there is none."""
    try:
        return float(text)
    except ValueError:
        return 0.0
