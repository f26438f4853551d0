"""What system flags usually do on a kind of machine: whether it has one GPU, and what connects several."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from types import MappingProxyType

from sweeper.samplers.physics.roles import FlagPrior, known_name


class Link(StrEnum):
    """What connects the GPUs of a server. NONE: there is only one."""

    NONE = "none"
    PCIE = "pcie"
    NVLINK = "nvlink"


_NOTHING = FlagPrior(0.004, differs=0.002)
"""Next to nothing: what is known of a machine may be wrong, and is then learnt after a while."""

_PRIORS: Mapping[Link, Mapping[str, FlagPrior]] = MappingProxyType(
    {
        Link.NONE: {
            "disable_custom_all_reduce": _NOTHING,
            "nccl_proto": _NOTHING,
            "nccl_algo": _NOTHING,
            "nccl_p2p_level": _NOTHING,
            "attention_backend": FlagPrior(0.065, leaving=0.025, differs=0.065),
        },
        Link.PCIE: {
            "num_continuous_decode_steps": FlagPrior(0.014, leaving=-0.006, differs=0.008),
            "disable_custom_all_reduce": FlagPrior(0.02, leaving=0.02, differs=0.01),
            "nccl_proto": FlagPrior(0.045, {"LL": -0.015, "LL128": -0.025, "Simple": 0.045}, differs=0.045),
            "nccl_algo": FlagPrior(0.022, differs=0.018),
            "nccl_p2p_level": FlagPrior(0.032, {"PIX": 0.055, "PHB": -0.01, "SYS": -0.017}, differs=0.02),
            "attention_backend": FlagPrior(0.05, leaving=0.015, differs=0.055),
        },
        Link.NVLINK: {
            "num_continuous_decode_steps": FlagPrior(0.014, leaving=-0.008, differs=0.014),
            "disable_custom_all_reduce": FlagPrior(0.024, leaving=0.055, differs=0.02),
            "nccl_proto": FlagPrior(0.014, {"Simple": 0.015}, differs=0.01),
            "nccl_algo": FlagPrior(0.014, differs=0.007),
            "nccl_p2p_level": _NOTHING,
            "attention_backend": FlagPrior(0.055, leaving=0.02, differs=0.06),
        },
    }
)
"""Set on simulated servers. One GPU has nobody to talk to; where NVLink connects all, no traffic takes PCIe, and
SGLang's own all-reduce does the small ones, unless it is disabled, which is slower. Decoding sends small ones:
NCCL's LL and LL128 are made for them, Simple is not. PIX sends more through the host's memory, SYS less."""


def flag_priors(link: Link, names: Iterable[str]) -> dict[str, FlagPrior]:
    """For `Roles.flags`: what is expected of flags on such a machine, where it says more than their names."""
    priors = _PRIORS[link]
    return {name: priors[known_name(name)] for name in names if known_name(name) in priors}
