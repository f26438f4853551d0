"""What a server's GPUs add up between them, as far as its timing without a server needs to know."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

NCCL = "NCCL_"
"""What the names of NCCL's variables begin with."""

NCCL_TUNING = (
    "NCCL_ALGO",
    "NCCL_BUFFSIZE",
    "NCCL_MAX_CTAS",
    "NCCL_MAX_NCHANNELS",
    "NCCL_MIN_CTAS",
    "NCCL_MIN_NCHANNELS",
    "NCCL_NTHREADS",
    "NCCL_NVLS_ENABLE",
    "NCCL_P2P_LEVEL",
    "NCCL_PROTO",
)
"""Variables by which NCCL is tuned. Those that a host may need to work at all are not among them."""


@dataclass(frozen=True)
class AllReduces:
    """Messages of `hidden_size` numbers of 2 bytes for each token, two for each of `num_layers` layers.

    `num_ranks`: how many GPUs take part, by the flag `ranks_flag`. None: not known (yet). `env`: what the server
    sets before NCCL starts, unless the configuration does.
    """

    num_ranks: int
    ranks_flag: str
    hidden_size: int | None = None
    num_layers: int | None = None
    env: Mapping[str, str] = field(default_factory=dict)
