"""What SGLang's GPUs add up between them: how many there are, how large the messages, under which variables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sweeper.engines.all_reduces import AllReduces
from sweeper.engines.base import HostFacts
from sweeper.engines.sglang.case import case_of
from sweeper.spec import FlagValue

_RANKS = "tp_size"


def all_reduces(flags: Mapping[str, Sequence[FlagValue]], facts: HostFacts) -> AllReduces:
    """Of the widest server with these flags. None of what the model's config.json does not say.

    SGLang sets two variables itself unless they are set (entrypoints/engine.py, 0.5.8 to 0.5.23): without them
    NCCL would choose other ways on hosts with NVSwitch than it does in the server.
    """
    model = case_of({}, {}, facts).target
    symmetric = _always(flags, "enable_symm_mem")
    return AllReduces(
        num_ranks=max((v for v in flags.get(_RANKS, ()) if type(v) is int), default=1),
        ranks_flag=_RANKS,
        hidden_size=model.hidden_size if model else None,
        num_layers=model.num_layers if model else None,
        env={
            "NCCL_CUMEM_ENABLE": str(int(symmetric)),
            "NCCL_NVLS_ENABLE": str(int(symmetric or _always(flags, "enable_nccl_nvls"))),
        },
    )


def _always(flags: Mapping[str, Sequence[FlagValue]], name: str) -> bool:
    return tuple(flags.get(name, ())) == (True,)
