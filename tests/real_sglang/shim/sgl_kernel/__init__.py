"""What SGLang 0.5.23 needs of sgl_kernel to serve and speculate on a CPU, in plain torch.

The published wheel (sglang-kernel) holds CUDA kernels only; the CPU's are built from source with AMX. These have
the same names, arguments and effects, checked by SGLang's own greedy output being the same with and without
speculation. They are slow on purpose: readable first.
"""

from __future__ import annotations

import torch  # type: ignore[import-not-found]

from .attention import build_draft_decode_metadata_cpu, decode_attention_cpu, extend_attention_cpu
from .cache import (
    assign_draft_cache_locs_contiguous_cpu,
    assign_extend_cache_locs_cpu,
    assign_req_to_token_pool_cpu,
    copy_all_layer_kv_cache_cpu,
    fill_accept_out_cache_loc_cpu,
    fill_bonus_tokens_cpu,
)
from .speculative import build_tree_kernel_efficient_cpu, verify_tree_greedy_cpu

__all__ = [
    "assign_draft_cache_locs_contiguous_cpu",
    "assign_extend_cache_locs_cpu",
    "assign_req_to_token_pool_cpu",
    "build_draft_decode_metadata_cpu",
    "build_tree_kernel_efficient_cpu",
    "copy_all_layer_kv_cache_cpu",
    "fill_accept_out_cache_loc_cpu",
    "fill_bonus_tokens_cpu",
    "verify_tree_greedy_cpu",
]
__version__ = "0.4.10"

# SGLang reaches these two through torch's registry of operators. Plain attributes do: nothing compiles them.
torch.ops.sgl_kernel.decode_attention_cpu = decode_attention_cpu
torch.ops.sgl_kernel.extend_attention_cpu = extend_attention_cpu
